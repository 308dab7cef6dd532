"""The store of chunks: what is cut again and why, what is never opened, what survives kills and tampering."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crumb_nb.chunkers import store as module
from crumb_nb.chunkers.contextual import chunk_corpus
from crumb_nb.chunkers.handlers import HANDLERS, chunk_text
from crumb_nb.chunkers.store import CutSettings, Diff, diff_store, open_store, scan_folder, update_store
from crumb_nb.records import DataError, corpus_frame

SMALL = CutSettings(budget=60, capacity=120)


@pytest.fixture()
def folder(tmp_path):
    "Seven documents of four handlers."
    docs = tmp_path / "docs"
    (docs / "sub" / "deep").mkdir(parents=True)
    for n in range(4):
        (docs / f"page{n}.md").write_text(f"# Page {n}\n\n" + f"Sentence number {n} says something. " * 8 + "\n", newline="")
    (docs / "sub" / "code.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    (docs / "sub" / "deep" / "crlf.txt").write_text("First line.\r\nSecond line.\r\n", newline="")
    (docs / "empty.txt").write_text("")
    return docs


def names(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and not p.is_symlink())


def same_as_cut(store, folder, how=SMALL):
    "The store holds exactly what cutting the folder gives."
    opened = open_store(store)
    for name in names(folder):
        text = (folder / name).read_bytes().decode()
        assert opened.chunks(name) == chunk_text(text, name, name, how.handler, how.budget, how.capacity)
        assert "".join(c.text for c in opened.chunks(name)) == text
    assert sorted(opened.manifest["files"]) == names(folder)


def test_first_and_second_run(folder, tmp_path):
    store = tmp_path / "store"
    first = update_store(folder, store, SMALL)
    assert sorted(first.added) == names(folder) and first.to_cut == tuple(names(folder))
    same_as_cut(store, folder)
    before = {p.name: p.stat().st_mtime_ns for p in store.iterdir() if p.name.startswith("part")}
    second = update_store(folder, store)  # settings come from the store
    assert second.to_cut == () and len(second.kept) == 7
    assert {p.name: p.stat().st_mtime_ns for p in store.iterdir() if p.name.startswith("part")} == before, "no part is written again"


def test_rows_carry_what_made_them(folder, tmp_path):
    update_store(folder, tmp_path / "s", SMALL)
    opened = open_store(tmp_path / "s")
    frame = opened.table.to_pandas()
    assert set(frame["capacity"]) == {120} and set(frame["header"]) == {f"{n}\n" for n in names(folder) if n != "empty.txt"}
    assert set(zip(frame["handler"], frame["handler_version"])) == {(h, HANDLERS[h].version) for h in ("markdown", "python", "plain")}
    manifest = opened.manifest
    assert manifest["chunks"] == len(frame) and manifest["wordless"] == 0 and opened.settings == SMALL
    renamed = tmp_path / "elsewhere"
    folder.rename(renamed)
    update_store(renamed, tmp_path / "s2", SMALL)
    assert open_store(tmp_path / "s2").manifest["corpus_fingerprint"] == manifest["corpus_fingerprint"], "the fingerprint names contents, not places"


def test_the_contextual_store_equals_chunk_corpus(folder, tmp_path):
    how = CutSettings("contextual", max_tokens=24)
    update_store(folder, tmp_path / "s", how, part_documents=2)
    corpus = corpus_frame(names(folder), [(folder / n).read_bytes().decode() for n in names(folder)], metadata=[json.dumps({"filename": n}) for n in names(folder)])
    passages, wanted = open_store(tmp_path / "s").passages(), chunk_corpus(corpus, max_tokens=24)
    assert passages["text"].to_dict() == wanted["text"].to_dict() and passages["metadata"].to_dict() == wanted["metadata"].to_dict()
    assert passages["parent_id"].to_dict() == wanted["parent_id"].to_dict() and len(open_store(tmp_path / "s").fingerprint()) == 64


def test_changes_are_found_by_content(folder, tmp_path):
    store = tmp_path / "store"
    update_store(folder, store, SMALL, part_documents=3)
    os.utime(folder / "page0.md", (1, 1))  # touched only
    text = (folder / "page1.md").read_text()
    stamp = (folder / "page1.md").stat()
    (folder / "page1.md").write_text(text.replace("Sentence", "sentence"), newline="")
    os.utime(folder / "page1.md", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # same size, same time, other bytes
    (folder / "page2.md").unlink()
    (folder / "new.txt").write_text("A new file.\n")
    seen = diff_store(folder, store)
    assert (seen.changed, seen.added, seen.removed) == (("page1.md",), ("new.txt",), ("page2.md",)) and seen.recut == ()
    stored = {p.name: p.read_bytes() for p in store.iterdir()}
    assert {p.name: p.read_bytes() for p in store.iterdir()} == stored, "a diff writes nothing"
    assert update_store(folder, store) == seen
    same_as_cut(store, folder)
    assert diff_store(folder, store).to_cut == ()
    assert str(seen).splitlines() == ["5 kept, 1 added, 1 changed, 0 recut, 1 removed, 0 skipped, 0 damaged", "+ new.txt", "~ page1.md", "- page2.md"]


def test_a_raised_version_cuts_only_its_files(folder, tmp_path, monkeypatch):
    store = tmp_path / "store"
    update_store(folder, store, SMALL)
    cut = []
    real = CutSettings.chunks
    monkeypatch.setattr(CutSettings, "chunks", lambda self, text, name, counter=None: cut.append(name) or real(self, text, name, counter))
    monkeypatch.setitem(HANDLERS, "python", HANDLERS["python"]._replace(version=99))
    done = update_store(folder, store)
    assert done.recut == ("sub/code.py",) == tuple(cut) and len(done.kept) == 6
    assert {c.handler_version for c in open_store(store).chunks("sub/code.py")} == {99}
    assert update_store(folder, store).to_cut == ()


def test_other_settings_cut_everything(folder, tmp_path):
    store = tmp_path / "store"
    update_store(folder, store, SMALL)
    done = update_store(folder, store, CutSettings(budget=500))
    assert len(done.recut) == 7 and not done.kept and open_store(store).settings.budget == 500
    assert len(list(store.glob("part-*"))) == 1, "the old parts are gone"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_it_resumes(folder, tmp_path):
    "Killed after two parts of two documents: the next run cuts the other three documents."
    store = tmp_path / "store"
    script = f"""
        import os, signal
        from crumb_nb.chunkers import store as s
        real, written = s._write_part, []
        def write(*a):
            if len(written) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            written.append(1)
            return real(*a)
        s._write_part = write
        s.update_store({str(folder)!r}, {str(store)!r}, s.CutSettings(budget=60, capacity=120), part_documents=2)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(DataError, match="no finished store"):
        open_store(store)
    assert len(diff_store(folder, store).kept) == 4, "the settings of an unfinished store come from its parts"
    rest = update_store(folder, store)
    assert len(rest.kept) == 4 and len(rest.added) == 3
    same_as_cut(store, folder)


@pytest.mark.parametrize("step", ["_tidy", "_write_manifest"])
def test_stopped_late_it_resumes(folder, tmp_path, monkeypatch, step):
    "Stopped when all parts are written, or before the manifest: nothing is cut twice, nothing doubled."
    store = tmp_path / "store"
    update_store(folder, store, SMALL, part_documents=3)
    (folder / "page0.md").write_text("# Other\n\nText.\n")

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, step, stop)
        with pytest.raises(KeyboardInterrupt):
            update_store(folder, store)
    assert update_store(folder, store).to_cut == ()
    same_as_cut(store, folder)
    frame = open_store(store).table.to_pandas()
    assert not frame.duplicated(["doc_id", "number"]).any()


def test_damaged_parts_are_named_and_cut_again(folder, tmp_path):
    store = tmp_path / "store"
    update_store(folder, store, SMALL, part_documents=3)
    first, second, third = sorted(store.glob("part-*"))
    held = json.loads((store / "manifest.json").read_text())["parts"]
    first.write_bytes(first.read_bytes()[:-20])  # cut off
    second.unlink()
    with pytest.raises(DataError, match="is missing or is not what the last run wrote"):
        open_store(store)
    lost = sorted(d["name"] for p in (first, second) for d in held[p.name]["documents"])
    seen = diff_store(folder, store)
    assert seen.damaged == (first.name, second.name) and sorted(seen.recut) == lost, "the files did not change, their chunks are lost"
    update_store(folder, store)
    same_as_cut(store, folder)


def test_edited_rows_are_noticed(folder, tmp_path):
    "A part rewritten with one other text is valid parquet; its hash tells."
    store = tmp_path / "store"
    update_store(folder, store, SMALL)
    [part] = store.glob("part-*")
    table = pq.read_table(part)
    rows = table.to_pylist()
    rows[0]["text"] = rows[0]["text"].replace("P", "B")
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), part)
    with pytest.raises(DataError, match="not what the last run wrote"):
        open_store(store)
    with pytest.raises(DataError, match="rows are not those"):
        module._read_part(part)
    assert len(update_store(folder, store).recut) == 7
    same_as_cut(store, folder)


@pytest.mark.parametrize("old, new", [('"corpus_fingerprint": "', '"corpus_fingerprint": "0'), ('"chunks": ', '"chunks": 1'), ('"format": 1', '"format": 2'), ("{", "["), ('"seal"', '"deal"')])
def test_an_edited_manifest_is_refused_and_made_anew(folder, tmp_path, old, new):
    store = tmp_path / "store"
    update_store(folder, store, SMALL)
    good = (store / "manifest.json").read_text()
    (store / "manifest.json").write_text(good.replace(old, new, 1))
    with pytest.raises(DataError, match="manifest is missing or was changed"):
        open_store(store)
    assert update_store(folder, store).to_cut == ()
    assert (store / "manifest.json").read_text() == good


def test_a_foreign_parquet_file_is_no_part(folder, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    corpus_frame(["a"], ["b"]).to_parquet(store / "part-0000000000000000.parquet")
    done = update_store(folder, store, SMALL)
    assert done.damaged == ("part-0000000000000000.parquet",)
    same_as_cut(store, folder)


def test_files_of_other_programs_are_left_alone(folder, tmp_path):
    "Spark and pyarrow name their parts part-*.parquet too: only names of ours (16 hexadecimal digits) can be damaged parts of ours."
    store = tmp_path / "store"
    store.mkdir()
    foreign = [store / name for name in ("part-00000-1b2c.snappy.parquet", "part-0.parquet", "part-0000000000000000.parquet.parquet", "part-AAAAAAAAAAAAAAAA.parquet")]
    for path in foreign:
        path.write_bytes(b"precious")
    assert update_store(folder, store, SMALL).damaged == () == diff_store(folder, store).damaged
    assert all(path.read_bytes() == b"precious" for path in foreign)
    same_as_cut(store, folder)


def test_a_manifest_that_names_files_elsewhere_is_not_believed(folder, tmp_path):
    "What a manifest misses is removed: a name that is not a part's would reach any file."
    store, precious = tmp_path / "store", tmp_path / "thesis.txt"
    update_store(folder, store, SMALL)
    precious.write_text("years of work")
    manifest = json.loads((store / "manifest.json").read_text())
    del manifest["seal"]
    manifest["parts"]["../thesis.txt"] = {"sha256": "0", "documents": []}
    (store / "manifest.json").write_text(json.dumps({**manifest, "seal": module.text_sha256(module.canonical_json(manifest))}))
    update_store(folder, store)
    assert precious.read_text() == "years of work"
    same_as_cut(store, folder)


def test_a_store_is_not_its_own_documents(folder):
    "It would cut its own manifest, which then changes: never at rest. A folder below the documents is left out of them."
    before = sorted(folder.rglob("*"))
    for call in (update_store, diff_store):
        with pytest.raises(DataError, match="a folder of its own"):
            call(folder, folder / ".." / folder.name)
    assert sorted(folder.rglob("*")) == before
    update_store(folder, folder / "chunks", SMALL)
    assert update_store(folder, folder / "chunks").to_cut == ()


def test_nothing_outside_is_followed(folder, tmp_path):
    outside = tmp_path / "secret"
    outside.mkdir()
    (outside / "key.txt").write_text("secret")
    (folder / "file.txt").symlink_to(outside / "key.txt")
    (folder / "dir").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    (folder / ".git").mkdir()
    (folder / ".git" / "config.txt").write_text("hidden")
    os.mkfifo(folder / "pipe")
    files, skipped = scan_folder(folder)
    assert skipped == {"file.txt": "link", "dir": "link", "loop": "link", "pipe": "no regular file"}
    assert len(files) == 7 and not any("key" in name or ".git" in name for name in files)
    store = folder / "store"  # below the documents: not cut into itself
    update_store(folder, store, SMALL)
    assert update_store(folder, store).added == ()


def test_a_link_that_takes_a_files_place_is_not_followed(folder, tmp_path, monkeypatch):
    (tmp_path / "key.txt").write_text("secret")
    real = module._cut_part

    def swap(*args):
        (folder / "page0.md").unlink()
        (folder / "page0.md").symlink_to(tmp_path / "key.txt")
        (folder / "page1.md").write_bytes(b"\xff")
        return real(*args)

    monkeypatch.setattr(module, "_cut_part", swap)
    done = update_store(folder, tmp_path / "s", SMALL)
    assert set(done.skipped) == {"page0.md", "page1.md"} and done.skipped["page1.md"] == "not UTF-8"
    opened = open_store(tmp_path / "s")
    assert "secret" not in str(opened.table.to_pylist()) and "page0.md" not in opened.manifest["files"]
    assert opened.manifest["skipped"] == dict(done.skipped)


def test_a_pipe_that_takes_a_files_place_does_not_block(folder):
    (folder / "page0.md").unlink()
    os.mkfifo(folder / "page0.md")
    with pytest.raises(OSError, match="not a regular file"):
        module._read_file(folder / "page0.md")


def test_unreadable_and_undecodable_files_are_named(folder, tmp_path, monkeypatch):
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("name")
    real = module._read_file

    def read(path):
        if path.name == "page3.md":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(module, "_read_file", read)
    done = update_store(folder, tmp_path / "s", SMALL)
    assert done.skipped == {"latin.txt": "not UTF-8", "caf\\udce9.txt": "name is not UTF-8", "page3.md": "unreadable (Permission denied)"}
    assert "? latin.txt: not UTF-8" in str(done) and "3 skipped" in str(done)


def test_errors_say_what_to_do(folder, tmp_path, monkeypatch):
    with pytest.raises(DataError, match="no such folder"):
        update_store(tmp_path / "nowhere", tmp_path / "s")
    for bad, text in ((dict(cutter="x"), "unknown cutter"), (dict(handler="x"), "unknown handler"), (dict(budget=0), "at least 1"), (dict(max_tokens=8), "at least 16"), (dict(capacity=1.5), "whole number")):
        with pytest.raises(DataError, match=text):
            CutSettings(**bad)
    update_store(folder, tmp_path / "s", SMALL)
    with pytest.raises(DataError, match="no such document"):
        open_store(tmp_path / "s").chunks("nowhere.md")

    def walk(*_, onerror, **__):
        onerror(PermissionError(13, "Permission denied", "sub"))
        yield from ()

    monkeypatch.setattr(module.os, "walk", walk)
    with pytest.raises(DataError, match="the folder cannot be read"):
        scan_folder(folder)


def test_an_empty_folder_and_a_damaged_line_in_the_diff(tmp_path):
    (tmp_path / "docs").mkdir()
    update_store(tmp_path / "docs", tmp_path / "s")
    opened = open_store(tmp_path / "s")
    assert opened.chunks() == [] and len(opened.passages()) == 0
    assert "x part-1: damaged" in str(Diff(damaged=("part-1",)))


@settings(max_examples=25)
@given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.text(alphabet="xyz \n#.-é\r", max_size=60), max_size=4), min_size=1, max_size=4), st.integers(1, 3))
def test_any_history_gives_what_a_fresh_cut_gives(tmp_path_factory, history, size):
    "Whatever the folder went through, the store equals one made at once from its last state."
    base = tmp_path_factory.mktemp("history")
    docs, store = base / "docs", base / "store"
    docs.mkdir()
    for state in history:
        for path in docs.iterdir():
            path.unlink()
        for name, text in state.items():
            (docs / f"{name}.md").write_bytes(text.encode())
        update_store(docs, store, SMALL, part_documents=size)
    fresh = base / "fresh"
    update_store(docs, fresh, SMALL)
    assert open_store(store).table.to_pylist() == open_store(fresh).table.to_pylist()
    assert diff_store(docs, store).to_cut == ()


def test_command_line(folder, tmp_path, capsys):
    from crumb_nb.cli.main import main

    def run(*arguments):
        status = main(["chunk", *map(str, arguments)])
        return status, *capsys.readouterr()

    store = tmp_path / "s"
    status, out, _ = run(folder, "--store", store, "--diff")
    assert status == 0 and "7 added" in out and not store.exists()
    status, out, _ = run(folder, "--store", store, "--budget", 60, "--capacity", 120)
    assert status == 0 and "chunks of 7 files, corpus " in out and open_store(store).settings == SMALL
    (folder / "new.md").write_text("# New\n\nText.\n")
    status, out, _ = run(folder, "--store", store, "--diff")
    assert status == 0 and out.splitlines() == ["7 kept, 1 added, 0 changed, 0 recut, 0 removed, 0 skipped, 0 damaged", "+ new.md"]
    status, out, _ = run(folder, "--store", store, "--tokens", 64)
    assert "7 recut" in out and open_store(store).settings == CutSettings("contextual", max_tokens=64)
    for arguments in ((folder, "--diff"), (folder / "new.md", "--store", store), (folder, "--store", store, "--budget", 0)):
        status, _, err = run(*arguments)
        assert status == 2 and err and "Traceback" not in err

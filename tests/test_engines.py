"""Other engines: blinded export, imported results with every loss counted; fetching over a real local server."""

import hashlib
import http.server
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.datasets.engines import blinded_ids, export_collection, import_results, read_info, write_imported
from crumb_nb.datasets.fetch import DATA_SETS, DataSet, RemoteFile, fetch, fetch_file
from crumb_nb.protocols import Protocol
from crumb_nb.record_files import read_run
from crumb_nb.records import Collection, DataError, Qrels, corpus_frame, queries_frame, write_jsonl

PROTOCOL = Protocol("toy", "session", "session", "evidence", ("recall_any@1",), ties="hash", asked=5)


def toy(scope=True):
    corpus = corpus_frame(["answer_7", "noise_1", "noise_2", "noise_3"], ["cat", "rain", "snow", "rain"])
    scopes = {"q1": ("answer_7", "noise_1"), "q2": ("noise_1", "noise_2", "noise_3")} if scope else None
    return Collection("toy", corpus, queries_frame(["q1", "q2"], ["cat?", "weather?"]), Qrels.from_dict({"q1": {"answer_7": 1.0}}), PROTOCOL, scope=scopes)


def test_export_hides_ids_and_order(tmp_path):
    folder = export_collection(toy(), tmp_path)
    text = "".join((folder / name).read_text() for name in ("documents.jsonl", "questions.jsonl", "protocol.json"))
    assert "answer_7" not in text and "noise" not in text
    questions = [json.loads(line) for line in (folder / "questions.jsonl").open()]
    assert [len(q["haystack"]) for q in questions] == [2, 3] and all(q["haystack"] == sorted(q["haystack"]) for q in questions)
    export_collection(toy(scope=False), tmp_path / "all")
    assert json.loads((tmp_path / "all" / "questions.jsonl").open().readline())["haystack"] is None
    assert blinded_ids(toy()) == blinded_ids(toy()) != blinded_ids(toy(scope=False))  # another collection, other ids


@given(st.permutations(["answer_7", "noise_1"]), st.booleans())
def test_the_engine_order_is_kept(tmp_path_factory, order, with_scores):
    folder, blind = tmp_path_factory.mktemp("e"), blinded_ids(toy())
    items = [{"id": blind[d], **({"score": 10.0 - n} if with_scores else {})} for n, d in enumerate(order)]
    write_jsonl(folder / "r.jsonl", [{"id": "q1", "results": items[::-1] if with_scores else items}])
    run = import_results(toy(), folder / "r.jsonl", "e")
    assert run.frame()["doc_id"].tolist() == order and run.info["missing"] == 1 and run.to_dict()["q2"] == {}


def test_every_loss_is_counted(tmp_path):
    blind = blinded_ids(toy())
    rows = [
        {"id": "q1", "results": [{"id": blind["noise_2"]}, {"text": "cat"}, {"id": blind["answer_7"]}, {"text": "dog"}]},
        {"id": "q2", "refused": "rate limit"},
    ]
    write_jsonl(tmp_path / "r.jsonl", rows)
    run = import_results(toy(), tmp_path / "r.jsonl", "e", "r7")
    assert run.to_dict() == {"q1": {"answer_7": 1.0}, "q2": {}}
    assert dict(run.info) == {"engine": "e", "revision": "r7", "asked": 2, "served": 1, "refused": 1, "empty": 0, "repeated": 1, "unmatched": 1, "ambiguous": 0, "outside": 1, "missing": 0}
    write_jsonl(tmp_path / "r.jsonl", [{"id": "q2", "results": [{"text": "rain"}]}, {"id": "q1", "results": []}])
    run = import_results(toy(), tmp_path / "r.jsonl", "e")
    assert run.to_dict()["q2"] == {"noise_3": 1.0} and run.info["ambiguous"] == 1 and run.info["empty"] == 1
    write_imported(run, tmp_path / "run.jsonl")
    assert read_run(tmp_path / "run.jsonl") == run and read_info(tmp_path / "run.jsonl") == dict(run.info) and read_info(tmp_path / "other") == {}


@pytest.mark.parametrize("row, words", [
    ({"id": "q9", "results": []}, ":1: id 'q9': no such question"),
    ({"id": "q1"}, ":1: field 'results'"),
    ({"id": "q1", "results": ["d"]}, "object"),
    ({"id": "q1", "results": [{"id": "answer_7"}]}, "unknown document id"),
    ({"id": "q1", "results": [{"text": 3}]}, "text"),
])
def test_broken_results(tmp_path, row, words):
    write_jsonl(tmp_path / "r.jsonl", [row])
    with pytest.raises(DataError, match=words):
        import_results(toy(), tmp_path / "r.jsonl", "e")


def test_two_lines_for_a_question(tmp_path):
    write_jsonl(tmp_path / "r.jsonl", [{"id": "q1", "results": []}] * 2)
    with pytest.raises(DataError, match=":2: id 'q1': the question has two lines"):
        import_results(toy(), tmp_path / "r.jsonl", "e")


# ---------------------------------------------------------------- fetching

BODY = bytes(range(256)) * 400
SHA = hashlib.sha256(BODY).hexdigest()


class Server(http.server.BaseHTTPRequestHandler):
    "Serves BODY; can cut it short, ignore ranges, or leave out the length."
    requests: list = []
    protocol_version = "HTTP/1.0"

    def do_GET(self):
        Server.requests.append(self.headers.get("Range"))
        kind = self.path.strip("/")
        if kind == "missing":
            self.send_error(404)
            return
        start = int(self.headers["Range"][6:-1]) if self.headers.get("Range") and kind != "norange" else 0
        if start >= len(BODY):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if kind != "nolength":
            self.send_header("Content-Length", str(len(BODY) - start))
        self.end_headers()
        self.wfile.write(BODY[start : start + 50_000] if kind == "short" and not start else BODY[start:])

    def log_message(self, *_):
        pass


@pytest.fixture()
def server():
    Server.requests = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


def test_fetch_whole_and_again(server, tmp_path):
    remote = RemoteFile(f"{server}/ok", "x/f.bin", SHA, len(BODY))
    assert fetch_file(remote, tmp_path).read_bytes() == BODY and not list(tmp_path.rglob("*.part"))
    fetch_file(remote, tmp_path)
    assert len(Server.requests) == 1, "a file that is there is not fetched again"


def test_truncated_body_is_continued(server, tmp_path):
    remote = RemoteFile(f"{server}/short", "f.bin", SHA, len(BODY))
    with pytest.raises(DataError, match="50,000 of 102,400 bytes arrived"):
        fetch_file(remote, tmp_path)
    assert not (tmp_path / "f.bin").exists()
    assert fetch_file(remote, tmp_path).read_bytes() == BODY
    assert Server.requests == [None, "bytes=50000-"]


def test_a_killed_download_is_continued_even_when_the_server_has_no_ranges(server, tmp_path):
    for kind, n in (("ok", 1000), ("norange", 1000), ("nolength", 1000), ("ok", len(BODY))):
        (tmp_path / f"{kind}{n}.part").write_bytes(BODY[:n])
        assert fetch_file(RemoteFile(f"{server}/{kind}", f"{kind}{n}", SHA), tmp_path).read_bytes() == BODY


def test_wrong_hash_leaves_nothing(server, tmp_path):
    with pytest.raises(DataError, match="expected 0000"):
        fetch_file(RemoteFile(f"{server}/ok", "f.bin", "0" * 64), tmp_path)
    with pytest.raises(DataError, match="bytes, 5 expected"):
        fetch_file(RemoteFile(f"{server}/ok", "f.bin", SHA, 5), tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "f.bin").write_bytes(b"other")
    with pytest.raises(DataError, match="sha256"):
        fetch_file(RemoteFile(f"{server}/ok", "f.bin", SHA), tmp_path)
    assert (tmp_path / "f.bin").read_bytes() == b"other", "what a person placed there is not removed"


class Versions(http.server.BaseHTTPRequestHandler):
    "Serves the current `body` with the headers in `marks`; minds If-Range unless told not to, and redirects /hub as the hub does."
    body, marks, minds, cut, asked = b"", {}, True, 0, []

    def do_GET(self):
        if self.path == "/hub":
            self.send_response(302)
            self.send_header("Location", "/file")
            self.send_header("X-Repo-Commit", "c0ffee")
            self.end_headers()
            return
        wanted, condition = self.headers.get("Range"), self.headers.get("If-Range")
        Versions.asked.append((wanted, condition))
        start = int(wanted[6:-1]) if wanted and (not self.minds or condition in (None, *self.marks.values())) else 0
        if start and start >= len(self.body):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(self.body)}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        for name, value in self.marks.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.body) - start))
        self.end_headers()
        self.wfile.write(self.body[start : self.cut or None])

    def log_message(self, *_):
        pass


@pytest.fixture()
def versions(monkeypatch):
    for name, value in {"body": b"", "marks": {}, "minds": True, "cut": 0, "asked": []}.items():
        monkeypatch.setattr(Versions, name, value)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Versions) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}/file"
        made.shutdown()


OLD, NEW = b"a" * 1000, b"b" * 1000
TAGS = {"ETag": '"one"'}, {"ETag": '"two"'}
DATES = {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, {"Last-Modified": "Tue, 02 Jan 2024 00:00:00 GMT"}
WEAK = {"ETag": 'W/"x"'}, {"ETag": 'W/"x"'}  # a weak ETag says nothing about bytes


def begin(url, folder, body, marks, cut=400):
    "A download that breaks off."
    Versions.body, Versions.marks, Versions.cut = body, marks, cut
    with pytest.raises(DataError, match="bytes arrived"):
        fetch_file(RemoteFile(url, "f"), folder)
    assert (folder / "f.part").stat().st_size == cut
    Versions.cut, Versions.asked = 0, []


@pytest.mark.parametrize("minds", [True, False])
@pytest.mark.parametrize("marks", [TAGS, DATES, WEAK, ({}, {})], ids=["etag", "date", "weak", "nothing"])
def test_a_file_that_changed_meanwhile_is_fetched_whole(versions, tmp_path, marks, minds):
    "Continuing would give 400 bytes of one version and 600 of another, of the right size and without a hash to tell."
    begin(versions, tmp_path, OLD, marks[0])
    Versions.body, Versions.marks, Versions.minds = NEW, marks[1], minds
    assert fetch_file(RemoteFile(versions, "f"), tmp_path).read_bytes() == NEW
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("marks", [TAGS[0], DATES[0]], ids=["etag", "date"])
def test_an_unchanged_file_is_continued(versions, tmp_path, marks):
    begin(versions, tmp_path, OLD, marks)
    assert fetch_file(RemoteFile(versions, "f"), tmp_path).read_bytes() == OLD
    assert Versions.asked == [("bytes=400-", *marks.values())] and [p.name for p in tmp_path.iterdir()] == ["f"]


def test_nothing_missing_is_told_from_a_file_that_became_shorter(versions, tmp_path):
    "Both are answered 416; the total in Content-Range tells them apart."
    begin(versions, tmp_path, OLD, TAGS[0])
    Versions.minds, Versions.body = False, NEW[:300]
    assert fetch_file(RemoteFile(versions, "f"), tmp_path).read_bytes() == NEW[:300]
    assert [wanted for wanted, _ in Versions.asked] == ["bytes=400-", None]
    begin(versions, tmp_path / "whole", OLD, TAGS[0])
    Versions.body = OLD[:400]
    assert fetch_file(RemoteFile(versions, "f"), tmp_path / "whole").read_bytes() == OLD[:400] and len(Versions.asked) == 1


@pytest.mark.parametrize(("path", "marks", "name"), [("hub", TAGS[0], "commit c0ffee"), ("file", TAGS[0], 'etag "one"'), ("file", DATES[0], "of Mon, 01 Jan 2024 00:00:00 GMT"), ("file", {}, "")])
def test_the_version_is_said_and_recorded(versions, tmp_path, monkeypatch, path, marks, name):
    "A revision called `main` says nothing; the hub names the commit with its redirection."
    Versions.body, Versions.marks, said = OLD, marks, []
    monkeypatch.setitem(DATA_SETS, "toy", DataSet("toy", (RemoteFile(versions.replace("file", path), "f"),), "CC0", "a server"))
    for _ in range(2):  # the second run finds the file and knows from the record
        fetch("toy", tmp_path, say=said.append)
        assert said[-1].endswith(f"…  {name}" if name else "…")
    assert json.loads((tmp_path / "fetched.json").read_text())["f"].get("version", "") == name and len(Versions.asked) == 1


def test_missing_file_and_no_network(server, tmp_path):
    with pytest.raises(DataError, match="404.*place it as f.bin"):
        fetch_file(RemoteFile(f"{server}/missing", "f.bin"), tmp_path)
    with pytest.raises(DataError, match="no connection.*place it as f.bin"):
        fetch_file(RemoteFile("http://127.0.0.1:9/f", "f.bin"), tmp_path, timeout=2)


def test_a_data_set_is_recorded_and_a_change_is_noticed(server, tmp_path, monkeypatch):
    data = DataSet("toy", (RemoteFile(f"{server}/ok", "toy/f.bin"),), "CC0", "a server")
    monkeypatch.setitem(DATA_SETS, "toy", data)
    said = []
    fetch("toy", tmp_path, say=said.append)
    assert "licence CC0" in said[0] and json.loads((tmp_path / "fetched.json").read_text())["toy/f.bin"]["sha256"] == SHA
    (tmp_path / "toy" / "f.bin").write_bytes(b"changed")
    with pytest.raises(DataError, match="differs from the one recorded"):
        fetch("toy", tmp_path, say=said.append)
    with pytest.raises(ValueError, match="choose one of crumb, longmemeval, locomo"):
        fetch("trec", tmp_path)
    assert all(r.url.startswith("https://") and ".." not in r.target for d in DATA_SETS.values() if d is not data for r in d.files)

"""Own data: BEIR, TREC, folders, ir_datasets; round trips and errors that name the place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.datasets.files import load_beir, load_folder, load_ir_dataset, load_trec, open_path, query_spans, read_documents, read_trec_topics
from crumb_nb.record_files import write_qrels
from crumb_nb.records import DataError, Qrels, write_jsonl

ids = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]), min_size=1, max_size=6)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=0, max_size=20)


def beir(folder, corpus, queries, qrels, split="test"):
    write_jsonl(folder / "corpus.jsonl", ({"_id": d, "title": "", "text": t} for d, t in corpus.items()))
    write_jsonl(folder / "queries.jsonl", ({"_id": q, "text": t} for q, t in queries.items()))
    write_qrels(Qrels.from_dict(qrels), folder / "qrels" / f"{split}.tsv")
    return folder


@given(st.dictionaries(ids, texts, min_size=1, max_size=5), st.dictionaries(ids, texts, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_any_collection_survives_beir_and_trec(tmp_path_factory, corpus, queries, random):
    folder = tmp_path_factory.mktemp("beir")
    labels = {q: {d: float(random.randint(0, 3)) for d in corpus if random.random() < 0.7} or {next(iter(corpus)): 1.0} for q in queries}
    made = load_beir(beir(folder, corpus, queries, labels))
    assert made.corpus["text"].to_dict() == corpus and made.queries["text"].to_dict() == queries and made.qrels.to_dict() == labels
    write_qrels(made.qrels, folder / "t.qrels", "trec")
    write_jsonl(folder / "docs.jsonl", ({"doc_id": d, "text": t} for d, t in corpus.items()))
    one_line = {q: " ".join(t.split()) for q, t in queries.items()}
    (folder / "topics.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in one_line.items()), encoding="utf-8", newline="\n")
    trec = load_trec(folder / "docs.jsonl", folder / "topics.tsv", folder / "t.qrels")
    assert trec.corpus["text"].to_dict() == corpus and trec.queries["text"].to_dict() == one_line and trec.qrels.to_dict() == labels


def test_beir_title_join_and_split(tmp_path):
    folder = beir(tmp_path, {"d": "text"}, {"1": "a", "2": "b"}, {"1": {"d": 1.0}}, split="dev")
    write_jsonl(folder / "corpus.jsonl", [{"_id": "d", "title": "T", "text": "text"}])
    assert load_beir(folder, "dev", title_join="\n").corpus.at["d", "text"] == "T\ntext"
    assert open_path(folder).protocol.options["split"] == "dev"  # the only split there is
    assert list(load_beir(folder, "dev").queries.index) == ["1"]
    with pytest.raises(DataError, match="test.tsv"):
        load_beir(folder)


def test_topics(tmp_path):
    path = tmp_path / "topics"
    path.write_text("<top>\n<num> Number: 301 </num>\n<title> red foxes\n<desc> Description:\nWhat?\n<narr> Narrative:\nWhy.\n</top>\n<top><num>302<title>owls<desc>d<narr>n</top>")
    assert read_trec_topics(path)["text"].to_dict() == {"301": "red foxes", "302": "owls"}
    assert read_trec_topics(path, ("title", "narr"))["text"].to_dict()["301"] == "red foxes Why."
    with pytest.raises(ValueError, match="choose from"):
        read_trec_topics(path, ("body",))
    path.write_text("<top><title>x</top>")
    with pytest.raises(DataError, match="no <num>"):
        read_trec_topics(path)
    path.write_text("<top><num>1</top>")
    with pytest.raises(DataError, match="no <title>"):
        read_trec_topics(path)
    path.write_text("1 foxes\n")
    with pytest.raises(DataError, match="topics:1: no <top> element and no tab"):
        read_trec_topics(path)
    (tmp_path / "d.trec").write_text("<DOC>text</DOC>")
    (tmp_path / "t.tsv").write_text("1\tx\n")
    (tmp_path / "q.qrels").write_text("1 0 d 1\n")
    with pytest.raises(DataError, match="no DOCNO"):
        load_trec(tmp_path / "d.trec", tmp_path / "t.tsv", tmp_path / "q.qrels")
    (tmp_path / "d.trec").write_text("nothing")
    with pytest.raises(DataError, match="no <DOC>"):
        load_trec(tmp_path / "d.trec", tmp_path / "t.tsv", tmp_path / "q.qrels")
    (tmp_path / "d.trec").write_text("<DOC><DOCNO>d</DOCNO><HEAD>T &amp; x</HEAD> body</DOC>")
    assert load_trec(tmp_path / "d.trec", tmp_path / "t.tsv", tmp_path / "q.qrels").corpus.at["d", "text"].split() == ["T", "&amp;", "x", "body"]


def documents(tmp_path):
    for name, text in {"docs/a.md": "# A\r\n\r\nfox", "docs/sub/b.md": "owl", "docs/.hidden/c.md": "no"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path / "docs"


def test_folder_ids_links_and_bytes(tmp_path):
    folder = documents(tmp_path)
    secret = tmp_path / "secret.md"
    secret.write_text("outside")
    (folder / "link.md").symlink_to(secret)
    (folder / "linked").symlink_to(tmp_path, target_is_directory=True)
    corpus, skipped = read_documents(folder)
    assert list(corpus.index) == ["a.md", "sub/b.md"] and corpus.at["a.md", "text"] == "# A\r\n\r\nfox" and not skipped
    (folder / "latin.md").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match="latin.md.*not UTF-8"):
        read_documents(folder)
    corpus, skipped = read_documents(folder, ids="stem", undecodable="skip")
    assert list(corpus.index) == ["a", "sub/b"] and skipped == ["latin.md"]
    (folder / "latin.md").unlink()
    (folder / "a.txt").write_text("other")
    with pytest.raises(DataError, match="two files have the id 'a'"):
        read_documents(folder, ids="stem")
    with pytest.raises(DataError, match="no readable file"):
        read_documents(folder, pattern="*.rst")
    with pytest.raises(DataError, match="no such folder"):
        read_documents(folder / "none")


def test_questions_with_spans(tmp_path):
    folder = documents(tmp_path)
    path = tmp_path / "questions.jsonl"
    write_jsonl(path, [{"question_id": "q", "question": "?", "document_id": "a", "references": [{"start": 7, "end": 10, "text": "fox"}]}, {"_id": "r", "text": "no span"}])
    made = load_folder(folder, path, ids="stem")
    assert made.qrels.to_dict() == {"q": {"a": 1.0}} and query_spans(made) == {"q": [{"doc_id": "a", "start": 7, "end": 10}]}
    assert made.corpus.at["a", "text"][7:10] == "fox" and made.protocol.left_out == {"r": "not judged"}
    for bad, words in [
        ({"start": 7, "end": 11}, "outside the document"), ({"start": 3, "end": 3}, "outside"), ({"start": -1, "end": 3}, "outside"), ({"start": "7", "end": 9}, "start"),
    ]:
        write_jsonl(path, [{"query_id": "q", "text": "?", "spans": [{"doc_id": "a", **bad}]}])
        with pytest.raises(DataError, match=words):
            load_folder(folder, path, ids="stem")
    write_jsonl(path, [{"query_id": "q", "text": "?", "spans": [{"doc_id": "z", "start": 0, "end": 1}]}])
    with pytest.raises(DataError, match="questions.jsonl:1.*'z'.*not in the corpus"):
        load_folder(folder, path, ids="stem")
    write_jsonl(path, [{"query_id": "q", "text": "?"}, {"query_id": "q", "text": "?"}])
    with pytest.raises(DataError, match="occurs twice"):
        load_folder(folder, path)


def test_open_path_tells_what_would_fit(tmp_path):
    documents(tmp_path)
    with pytest.raises(DataError, match="BEIR.*TREC.*questions.jsonl"):
        open_path(tmp_path)
    write_jsonl(tmp_path / "questions.jsonl", [{"query_id": "q", "text": "?", "spans": [{"doc_id": "sub/b", "start": 0, "end": 3}]}])
    assert open_path(tmp_path).name == tmp_path.name
    for name, text in {"documents.trec": "<DOC><DOCNO>d</DOCNO>x</DOC>", "topics.tsv": "1\tx", "qrels.trec": "1 0 d 1"}.items():
        (tmp_path / name).write_text(text)
    assert open_path(tmp_path).queries["text"].to_dict() == {"1": "x"}


def test_ir_datasets_speaks_before_it_downloads():
    pytest.importorskip("ir_datasets", reason="the extra ir-datasets is not installed")
    with pytest.raises(DataError, match="knows no such data set"):
        load_ir_dataset("no-such-data-set")
    with pytest.raises(DataError, match="has no qrels"):
        load_ir_dataset("vaswani-without/qrels") if False else load_ir_dataset("msmarco-passage/eval")


@pytest.mark.real_data
def test_real_folders(shared_data):
    "Counts as the README of the data gives them."
    headed, spans = open_path(shared_data / "headed_markdown"), open_path(shared_data / "chunk_spans")
    assert (len(headed.corpus), len(headed.queries), len(headed.qrels)) == (45, 100, 137)
    assert (len(spans.corpus), len(spans.queries), sum(map(len, query_spans(spans).values()))) == (5, 472, 790)
    rows = [json.loads(line) for line in (shared_data / "chunk_spans" / "questions.jsonl").open(encoding="utf-8")]
    for row in rows:
        text = spans.corpus.at[row["document_id"], "text"]
        assert all(text[r["start"]:r["end"]] == r["text"] for r in row["references"])


def test_spans_in_a_file_of_their_own(tmp_path):
    from crumb_nb.datasets.files import open_path, query_spans

    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.md").write_text("# A\n\nText.\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "what?"}\n{"_id": "r", "text": "who?"}\n')
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    spans = tmp_path / "section_spans.jsonl"
    spans.write_text('{"query_id": "q", "page_id": "a", "start": 0, "end": 3}\n{"query_id": "q", "page_id": "a", "start": 5, "end": 9}\n')
    made = open_path(tmp_path)
    assert query_spans(made) == {"q": [{"doc_id": "a", "start": 0, "end": 3}, {"doc_id": "a", "start": 5, "end": 9}]}
    spans.write_text('{"query_id": "z", "page_id": "a", "start": 0, "end": 3}\n')
    with pytest.raises(DataError, match="no such query"):
        open_path(tmp_path)
    spans.write_text('{"query_id": "q", "page_id": "a", "start": 0, "end": 99}\n')
    with pytest.raises(DataError, match="outside the document"):
        open_path(tmp_path)


def test_the_section_spans_of_real_pages(shared_data):
    from crumb_nb.datasets.files import query_spans
    from crumb_nb.datasets.profiles import open_collections

    (pages,) = open_collections("headed_markdown", "local", shared_data)
    assert (len(pages.corpus), len(pages.queries), sum(map(len, query_spans(pages).values()))) == (45, 100, 192)
    (spans,) = open_collections("chunk_spans", "local", shared_data)
    assert (len(spans.corpus), len(spans.queries), sum(map(len, query_spans(spans).values()))) == (5, 472, 790)
    (mini,) = open_collections("documents")
    assert len(mini.corpus) >= 12 and len(query_spans(mini)) >= 20


@pytest.mark.parametrize("what", ["beir", "trec", "documents", "legal_qa"])
def test_commands_work_with_any_collection(what, tmp_path, capsys, cache_dir):
    "run, evaluate and info take an embedded name; the run file that `run` writes scores the same in `evaluate`."
    from crumb_nb.cli.main import main

    assert main(["info", what]) == 0 and "documents" in capsys.readouterr().out
    assert main(["run", "bm25", "--on", what, "--out", str(tmp_path / "mine.jsonl")]) == 0
    first = capsys.readouterr().out
    run = tmp_path / "mine.jsonl"
    assert main(["evaluate", str(run), "--on", what]) == 0
    value = next(line.split()[1] for line in first.splitlines() if line.startswith("nDCG@10"))
    assert "nDCG@10" in (out := capsys.readouterr().out) and value in out
    assert main(["run", "bm25(stemmer=english)", "--on", what, "--out", str(tmp_path / "stemmed.jsonl")]) == 0
    assert main(["compare", str(run), str(tmp_path / "stemmed.jsonl"), "--on", what]) == 0


def test_commands_work_with_an_own_folder(tmp_path, capsys, cache_dir):
    from crumb_nb.cli.main import main

    documents(tmp_path)
    write_jsonl(tmp_path / "questions.jsonl", [{"query_id": "q", "text": "fox", "spans": [{"doc_id": "a", "start": 7, "end": 10}]}])
    assert main(["run", "bm25", "--on", str(tmp_path)]) == 0 and "1.0000" in capsys.readouterr().out
    assert main(["run", "bm25", "--on", str(tmp_path / "none")]) == 2 and "or a folder" in capsys.readouterr().err


def own(tmp_path, *questions):
    "A folder of one's own: my/docs/coffee.md, my/docs/bike.md and the questions."
    for name, text in {"coffee.md": "# Coffee\n\nCoffee is roasted.\n", "bike.md": "# Bike\n\nA bike has wheels.\n"}.items():
        (tmp_path / "my" / "docs").mkdir(parents=True, exist_ok=True)
        (tmp_path / "my" / "docs" / name).write_text(text)
    write_jsonl(tmp_path / "my" / "questions.jsonl", questions)
    return tmp_path / "my"


def test_a_question_may_have_the_id_that_export_writes(tmp_path):
    "`crumb-nb export` writes questions with the field id, so it must be readable; where no id stands, the error lists all names."
    assert list(open_path(own(tmp_path, {"id": "q1", "text": "?"})).queries.index) == ["q1"]
    with pytest.raises(DataError, match="question_id, _id, id"):
        open_path(own(tmp_path, {"text": "?"}))


def test_file_names_stand_for_ids_in_spans_and_labels(tmp_path):
    folder = own(tmp_path, {"id": "q1", "text": "?", "spans": [{"doc_id": "coffee.md", "start": 10, "end": 16}]})
    assert open_path(folder).qrels.to_dict() == {"q1": {"coffee": 1.0}} and query_spans(open_path(folder))["q1"][0]["doc_id"] == "coffee"
    (folder / "qrels.tsv").write_text("q1\tbike.md\t2\nq1\tcoffee\t0\n")
    assert open_path(folder).qrels.to_dict() == {"q1": {"bike": 2.0, "coffee": 0.0}}
    (folder / "qrels.tsv").write_text("q1\tbike.md\t2\nq1\tbike\t1\n")  # one document under two names
    with pytest.raises(DataError, match="qrels.tsv.*listed twice"):
        open_path(folder)
    for wrong in ("bike.txt", "tea"):  # another file's name is no name of bike.md
        (folder / "qrels.tsv").write_text(f"q1\t{wrong}\t1\n")
        with pytest.raises(DataError, match=f"qrels.tsv: id '{wrong}'.*not in the corpus; ids are file names without suffix: bike, coffee"):
            open_path(folder)
    (folder / "qrels.tsv").unlink()
    own(tmp_path, {"id": "q1", "text": "?", "spans": [{"doc_id": "tea.md", "start": 0, "end": 1}]})
    with pytest.raises(DataError, match="questions.jsonl:1.*'tea.md'.*ids are file names without suffix: bike, coffee"):
        open_path(folder)
    with pytest.raises(DataError, match="ids are file names: bike.md, coffee.md"):
        open_path(folder, ids="path")
    (folder / "docs" / "coffee.md.txt").write_text("About the file coffee.md.")  # its id is coffee.md: an id comes before a file name
    own(tmp_path, {"id": "q1", "text": "?", "spans": [{"doc_id": "coffee.md", "start": 0, "end": 5}]})
    assert open_path(folder).qrels.to_dict() == {"q1": {"coffee.md": 1.0}}


def test_questions_without_labels_get_a_note_and_no_questions_an_error(tmp_path, capsys, cache_dir):
    from crumb_nb.cli.main import main

    folder = own(tmp_path, {"id": "q1", "text": "roasted?"}, {"id": "q2", "text": "wheels?"})
    assert main(["run", "bm25", "--on", str(folder)]) == 0
    assert 'note: 2 questions, none labelled: nothing is scored; add "spans" to questions.jsonl or a qrels.tsv (query-id, corpus-id, score)' in capsys.readouterr().out
    own(tmp_path)
    with pytest.raises(DataError, match="questions.jsonl: no question in the file"):
        open_path(folder)


def test_labels_in_the_layouts_of_trec_and_beir_are_read_beside_docs(tmp_path):
    folder = own(tmp_path, {"id": "q1", "text": "roasted?"})
    (folder / "qrels.trec").write_text("q1 0 coffee 1\n")
    assert open_path(folder).qrels.to_dict() == {"q1": {"coffee": 1.0}} and not open_path(folder).notes
    (folder / "qrels").mkdir()
    for split, label in (("test", 2), ("dev", 3)):
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\nq1\tcoffee\t{label}\n")
    with pytest.raises(DataError, match="two sets of labels, qrels.trec and qrels/test.tsv; keep one"):
        open_path(folder)
    (folder / "qrels.trec").unlink()
    assert open_path(folder).qrels.to_dict() == {"q1": {"coffee": 2.0}} and open_path(folder).protocol.options["split"] == "test"
    assert open_path(folder, split="dev").qrels.to_dict() == {"q1": {"coffee": 3.0}}
    with pytest.raises(DataError, match="none.tsv"):
        open_path(folder, split="none")


def test_an_unknown_query_of_a_label_names_the_file(tmp_path):
    folder = beir(tmp_path, {"d": "text"}, {"1": "a"}, {"1": {"d": 1.0}, "9": {"d": 1.0}})
    with pytest.raises(DataError, match=r"test\.tsv: id '9': is judged but is not among the queries"):
        load_beir(folder)
    own_folder = own(tmp_path, {"id": "q1", "text": "?"})
    (own_folder / "qrels.tsv").write_text("q9\tcoffee\t1\n")
    with pytest.raises(DataError, match=r"qrels\.tsv: id 'q9'"):
        open_path(own_folder)


def test_a_picture_among_the_documents_can_be_skipped_from_the_command_line(tmp_path, capsys, cache_dir):
    "The error names the option of both worlds, and the option works; a label on the skipped file counts as missed."
    from crumb_nb.cli.main import main

    folder = own(tmp_path, {"id": "q1", "text": "roasted?"})
    (folder / "docs" / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "qrels.tsv").write_text("q1\tcoffee.md\t1\nq1\tphoto.png\t1\n")
    assert main(["run", "bm25", "--on", str(folder)]) == 2 and "--set undecodable=skip" in capsys.readouterr().err
    assert main(["run", "bm25", "--on", str(folder), "--set", "undecodable=skip", "--measures", "R@100"]) == 0
    out = capsys.readouterr().out
    assert "1 files skipped" in out and "0.5000" in out

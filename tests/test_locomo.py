"""LoCoMo: every published denominator from the real file, evidence as read, gold at each unit, and errors that help."""

import json
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.datasets import answer_text as A
from crumb_nb.datasets import locomo as L
from crumb_nb.datasets import locomo_file as F
from crumb_nb.records import DataError

RAW = {
    "speaker_a": "P",
    "speaker_b": "Q",
    "session_1": [{"dia_id": "D1:1", "speaker": "P", "text": "I adopted a cat yesterday."}, {"dia_id": "D1:2", "speaker": "Q", "text": "Yo.", "blip_caption": "a red bowl"}],
    "session_1_date_time": "1:00 pm on 8 May, 2023",
    "session_2": [{"dia_id": "D2:1", "speaker": "Q", "text": "The concert was loud."}],
    "session_2_date_time": "2:00 pm on 9 May, 2023",
    "session_10": [{"dia_id": f"D10:{n}", "speaker": "P", "text": f"Line {n}."} for n in range(1, 6)],
    "session_10_date_time": "3:00 pm on 1 June, 2023",
    "session_11_date_time": "4:00 pm on 2 June, 2023",
}
QA = [
    {"question": "When did P adopt a cat?", "answer": "7 May 2023", "evidence": ["D1:1"], "category": 2},
    {"question": "How many lines?", "answer": 5, "evidence": ["D10:5"], "category": 4},
    {"question": "Glued?", "answer": "red bowl", "evidence": ["D1:2; D2:1"], "category": 1},
    {"question": "Nothing?", "answer": "perhaps", "evidence": [], "category": 3},
    {"question": "Adversarial?", "adversarial_answer": "loud", "evidence": ["D2:1"], "category": 5},
    {"question": "Points nowhere?", "answer": "line 2", "evidence": ["D10:99"], "category": 4},
]


def sample(**changes):
    "One conversation in the format of the file."
    observation = {"session_1_observation": {"P": [["P has a cat.", "D1:1"]], "Q": [["Q has a bowl.", ["D1:2", "D2:1"]]]}}
    return {"sample_id": "c", "conversation": RAW, "qa": QA, "observation": observation, "session_summary": {"session_1_summary": "A cat."}} | changes


@pytest.fixture()
def write(tmp_path):
    "Write an object as a LoCoMo file."

    def _write(data, name="small.json"):
        path = tmp_path / name
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        return path

    return _write


# ---- the real file


@pytest.fixture(scope="module")
def real(shared_data):
    path = shared_data / "locomo" / "locomo10.json"
    if not path.is_file():
        pytest.skip("locomo/locomo10.json is not in the data folder")
    return path


def test_counts_of_the_released_file(real):
    n = F.locomo_counts(F.read_locomo(real))
    assert (n["conversations"], n["sessions"], n["turns"], n["turns_with_caption"], n["questions"]) == (10, 272, 5882, 1226, 1986)
    assert [n[f"category_{c}"] for c in (1, 2, 3, 4, 5)] == [282, 321, 96, 841, 446]
    assert (n["not_adversarial"], n["empty_evidence"], n["strict_evidence"], n["tolerant_evidence"], n["exact_turn_id_present"]) == (1540, 4, 1978, 1982, 1977)
    assert (n["not_adversarial_string"], n["not_adversarial_strict"], n["not_adversarial_tolerant"]) == (1534, 1532, 1536)
    assert (n["not_adversarial_string_strict"], n["not_adversarial_string_tolerant"]) == (1526, 1530)


@pytest.mark.parametrize(
    ("rule", "questions", "expected"),
    [
        ("evidence", "not_adversarial_string", 1526),
        ("evidence", "not_adversarial", 1532),
        ("evidence", "all", 1978),
        ("evidence_tolerant", "not_adversarial_string", 1530),
        ("evidence_tolerant", "not_adversarial", 1536),
        ("evidence_tolerant", "all", 1982),
        ("verbatim", "not_adversarial_string", 1534),
        ("all_tokens", "not_adversarial", 1540),
        ("verbatim", "all", 1542),  # 1,540 and the two adversarial questions that have an answer
    ],
)
def test_every_denominator_comes_from_a_named_rule(real, rule, questions, expected):
    c = L.load_locomo(real, rule=rule, questions=questions)
    assert len(c.queries) == len(c.protocol.judged(c)) == expected
    assert c.protocol.n_questions == 1986 and len(c.protocol.left_out) == 1986 - expected


def test_loading_the_released_file_prints_its_counts_and_does_not_warn(real, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        c = L.load_locomo(real, verbose=True)
    text = capsys.readouterr().out
    for count in ("10 conversations", "272 sessions", "5,882 turns", "1,986 questions", "446 adversarial", "1,540 not", "1,978", "1,534", "1,526", "1,530"):
        assert count in text
    assert c.name == "locomo10" and c.licence == "CC BY-NC 4.0" and c.notes[0] in text
    reasons = list(c.protocol.left_out.values())
    assert [reasons.count(r) for r in ("category 5 (adversarial)", "the answer is not a string", "no evidence listed", "no evidence entry is readable")] == [446, 6, 4, 4]


@pytest.mark.parametrize(("unit", "documents", "without_gold"), [("turn", 5882, 1), ("session", 272, 0), ("window", 5882, 0), ("observation", 2541, 224), ("summary", 272, 0)])
def test_units_of_the_released_file(real, unit, documents, without_gold):
    c = L.load_locomo(real, unit=unit)
    assert len(c.corpus) == documents
    assert sum(not docs for docs in c.qrels.relevant().values()) == without_gold
    assert not c.missing_gold()
    assert {len(c.candidates(q)) for q in c.queries.index} <= {sum(d.startswith(f"{name}:") for d in c.corpus.index) for name in {q.split(":")[0] for q in c.queries.index}}


def test_ceilings_of_the_verbatim_rule(real):
    "PROTOCOLS: 611 of 1,534 with captions and date lines, 587 with captions only, 564 in turn text alone."
    conversations = F.read_locomo(real)
    reach = lambda **options: L.text_ceilings(conversations, ("session",), ("verbatim",), **options)["reachable"].item()
    assert (reach(), reach(date_line=False), reach(date_line=False, captions=False)) == (611, 587, 564)
    loose = L.text_ceilings(conversations, ("session",))
    assert list(loose["reachable"]) == [611, 657, 922] and set(loose["n"]) == {1534}
    misses = L.text_misses(conversations)
    assert len(misses) == 1534 - 611 and set(misses["kind"]) <= set(A.MISS_KINDS)
    assert (misses["kind"] == "absolute date, told relatively").sum() == 207


def test_evidence_report_of_the_released_file(real):
    report = F.evidence_report(F.read_locomo(real))
    assert report["status"].value_counts().to_dict() == {"repaired": 6, "empty": 4, "unresolvable": 3}
    assert set(report.loc[report["status"] == "unresolvable", "entry"]) == {"D", "D10:19", "D4:36"}


def test_layout_gives_the_published_bm25_figures(real):
    "1,460 of 1,526 at 10 with plain words and 1,473 with porter stems: the layout of the documents decides these numbers."
    rank_bm25, stemmer = pytest.importorskip("rank_bm25"), pytest.importorskip("Stemmer")
    c = L.load_locomo(real)
    words = lambda text: re.findall(r"\w+", text.lower())
    gold = c.qrels.relevant()
    for tokens, expected in ((words, 1460), (lambda text: stemmer.Stemmer("porter").stemWords(words(text)), 1473)):
        hits, indexes = 0, {}
        for query_id, text in c.queries["text"].items():
            docs = c.candidates(query_id)
            if docs not in indexes:
                indexes[docs] = rank_bm25.BM25Okapi([tokens(t) for t in c.corpus.loc[list(docs), "text"]], k1=1.5, b=0.75)
            scores = indexes[docs].get_scores(tokens(text))
            top = sorted(zip(scores, docs), reverse=True)[:10]
            hits += any(d in gold[query_id] for _, d in top)
        assert hits == expected


# ---- known cases


def test_case_LO01_by_category(cases, real):
    expected = cases["LO01"]["expected"]
    assert cases["LO01"]["input"]["sha256"] == F.LOCOMO10_SHA256
    questions = [q for c in F.read_locomo(real) for q in c.questions]
    for category, counts in expected["by_category"].items():
        rows = [q for q in questions if q.category == int(category)]
        strict = [bool(F.parse_evidence(q.evidence, tolerant=False).sessions) for q in rows]
        string = [isinstance(q.answer, str) for q in rows]
        assert counts == {"all": len(rows), "string_answer": sum(string), "strict": sum(strict), "both": sum(a and b for a, b in zip(string, strict))}


EVIDENCE = [["D8:6; D9:17"], ["D9:1 D4:4 D4:6"], ["D:11:26"], ["D30:05"], ["D"], [], ["D4:5", "D4:5", "D5:5"], ["D1:18", "D", "D1:20"]]
TURNS = [("D8:6", "D9:17"), ("D9:1", "D4:4", "D4:6"), ("D11:26",), ("D30:5",), (), (), ("D4:5", "D5:5"), ("D1:18", "D1:20")]
SESSIONS = [(8, 9), (4, 9), (11,), (30,), (), (), (4, 5), (1,)]


def test_case_LO02_tolerant_evidence():
    read = [F.parse_evidence(e) for e in EVIDENCE]
    known = frozenset({f"D4:{n}" for n in range(1, 26)} | {"D18:1"})
    read.append(F.parse_evidence(["D4:36", "D18:1"], known=known))
    assert [e.turn_ids for e in read] == [*TURNS, ("D18:1",)]
    assert [e.sessions for e in read] == [*SESSIONS, (4, 18)]
    assert sum(len(e.malformed) for e in read) == 5
    assert list(dict.fromkeys(u for e in read for u in e.unresolvable)) == ["D", "D4:36"]


def test_strict_evidence_takes_whole_entries_as_written():
    assert F.parse_evidence(["D30:05"], tolerant=False).turn_ids == ("D30:05",)
    mixed = F.parse_evidence(["D1:18", "D", "D1:20 "], tolerant=False)
    assert (mixed.turn_ids, mixed.malformed, mixed.unresolvable) == (("D1:18",), ("D", "D1:20 "), ("D", "D1:20 "))


def test_case_LO04_sessions_in_numeric_order():
    assert F.session_numbers(RAW) == [1, 2, 10]


def test_case_LO06_category_names():
    assert F.CATEGORIES == {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@given(st.lists(st.one_of(st.text(max_size=12), st.from_regex(r"D:?[0-9]{1,3}:[0-9]{1,3}", fullmatch=True)), max_size=6))
def test_evidence_reading_never_fails_and_is_consistent(entries):
    loose, strict = F.parse_evidence(entries), F.parse_evidence(entries, tolerant=False)
    assert set(strict.sessions) <= set(loose.sessions)
    assert len(set(loose.turn_ids)) == len(loose.turn_ids) and list(loose.sessions) == sorted(set(loose.sessions))
    assert {int(t[1:].split(":")[0]) for t in loose.turn_ids} == set(loose.sessions)


# ---- documents and gold


def test_documents_and_their_options(write):
    (c,) = F.read_locomo(write([sample()]), sha256=None)
    assert L.locomo_documents(c)[0].text == "1:00 pm on 8 May, 2023\nP: I adopted a cat yesterday.\nQ: Yo. [image: a red bowl]"
    assert L.locomo_documents(c, date_line=False, speakers=False, captions=False)[0].text == "I adopted a cat yesterday.\nYo."
    assert [d.doc_id for d in L.locomo_documents(c, "turn")][:2] == ["c:D1:1", "c:D1:2"]
    windows = L.locomo_documents(c, "window", window=3)
    assert [d.turn_ids for d in windows][-5:] == [("D10:1", "D10:2"), ("D10:1", "D10:2", "D10:3"), ("D10:2", "D10:3", "D10:4"), ("D10:3", "D10:4", "D10:5"), ("D10:4", "D10:5")]
    assert [len(d.turn_ids) for d in L.locomo_documents(c, "window", window=2)][-5:] == [2, 2, 2, 2, 1]
    assert [d.text for d in L.locomo_documents(c, "observation")] == ["P has a cat.", "Q has a bowl."]
    assert [d.text for d in L.locomo_documents(c, "summary", date_line=True)] == ["1:00 pm on 8 May, 2023\nA cat."]
    with pytest.raises(ValueError, match="unit='page'"):
        L.locomo_documents(c, "page")


def test_gold_at_each_unit(write):
    path = write([sample()])
    load = lambda **options: L.load_locomo(path, sha256=None, **options).qrels.relevant()
    assert load(questions="all") == {"c:q0": ["c:D1"], "c:q1": ["c:D10"], "c:q4": ["c:D2"], "c:q5": ["c:D10"]}
    assert load(rule="evidence_tolerant") == {"c:q0": ["c:D1"], "c:q2": ["c:D1", "c:D2"], "c:q5": ["c:D10"]}
    assert load(unit="turn") == {"c:q0": ["c:D1:1"], "c:q5": []}  # D10:99 names a session but no turn
    assert load(unit="turn", counted="session") == {"c:q0": ["c:D1"], "c:q5": ["c:D10"]}
    assert load(unit="observation", rule="evidence_tolerant")["c:q2"] == ["c:D1:observation2"]
    assert load(rule="text") == {"c:q0": [], "c:q2": ["c:D1"], "c:q3": [], "c:q5": ["c:D10"]}
    assert load(rule="verbatim", captions=False)["c:q2"] == []
    assert load(rule="verbatim", questions="not_adversarial")["c:q1"] == ["c:D10"]  # the integer 5 as text


def test_what_the_protocol_states(write):
    path = write([sample()])
    session, window, turn = (L.load_locomo(path, sha256=None, unit=u).protocol for u in ("session", "window", "turn"))
    assert (session.aggregate, session.asked, session.options["date_line"], session.options["evidence"]) == (None, 50, True, "strict")
    assert (window.unit, window.counted, window.aggregate, window.options["window"]) == ("window", "session", "max", 3)
    assert (turn.counted, turn.options["date_line"]) == ("turn", False)
    text = L.load_locomo(path, sha256=None, unit="summary", rule="normalised").protocol
    assert text.options == {"corpus": "one haystack per conversation", "layout": "the data set's own summary", "date_line": False, "text_rule": "normalised"}
    assert session.left_out == {"c:q1": "the answer is not a string", "c:q2": "no evidence entry is readable", "c:q3": "no evidence listed", "c:q4": "category 5 (adversarial)"}


def test_metadata_and_groups(write):
    c = L.load_locomo(write([sample()]), sha256=None, questions="all")
    assert c.queries.loc["c:q4", "group"] == "adversarial"
    assert json.loads(c.queries.loc["c:q4", "metadata"]) == {"conversation": "c", "category": 5, "answer": None, "evidence": ["D2:1"], "adversarial_answer": "loud"}
    assert json.loads(c.corpus.loc["c:D1", "metadata"]) == {"conversation": "c", "session": 1, "turns": ["D1:1", "D1:2"]}
    assert c.name == "small" and c.licence == "" and c.source == "small.json"


@pytest.mark.parametrize(("option", "value"), [("unit", "page"), ("rule", "fuzzy"), ("questions", "some"), ("counted", "turn")])
def test_unknown_options_are_refused_by_name(write, option, value):
    with pytest.raises(ValueError, match=f"{option}='{value}'"):
        L.load_locomo(write([sample()]), sha256=None, **{option: value})


def test_scope_keeps_conversations_apart(write):
    c = L.load_locomo(write([sample(), sample(sample_id="d")]), sha256=None)
    assert c.candidates("d:q0") == ("d:D1", "d:D2", "d:D10") and c.candidates("c:q0") == ("c:D1", "c:D2", "c:D10")


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("Red, woollen", "a red, woollen hat", [True, True, True]),
        ("a red woollen hat", "the red, woollen hat", [False, True, True]),
        ("hat, red", "a red, woollen hat", [False, False, True]),
        ("at", "a hat", [True, False, False]),
        ("", "a hat", [False, False, False]),
        ("the", "the hat", [True, False, False]),
    ],
)
def test_text_rules(answer, text, expected):
    assert [A.contains_answer(answer, text, rule) for rule in A.TEXT_RULES] == expected


def test_unknown_text_rule():
    with pytest.raises(ValueError, match="rule='fuzzy'"):
        A.contains_answer("a", "b", "fuzzy")


@pytest.mark.parametrize(
    ("answer", "cited", "kind"),
    [
        ("7 May 2023", "I went yesterday", "absolute date, told relatively"),
        ("7 May 2023", "It was on the seventh", "date, told otherwise"),
        ("Likely no", "", "judgement"),
        ("cat adopted", "", "words scattered"),
        ("pottery, camping", "", "list"),
        ("six months", "", "number"),
        ("fear of heights", "", "paraphrase"),
    ],
)
def test_kinds_of_misses(answer, cited, kind):
    assert A.miss_kind(answer, cited, ["P: I adopted a cat yesterday."]) == kind


# ---- errors


def bad(**changes):
    return [sample(**changes)]


def question(**changes):
    return bad(qa=[QA[0] | changes])


BROKEN = {
    "empty": ("", "the file is empty"),
    "page": ("<!doctype html><p>404", "web page"),
    "lfs": ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
    "truncated": (json.dumps([sample()])[:500], "500 bytes.*truncated"),
    "truncated string": ('[{"sample_id": "abc', "truncated"),
    "broken": ('[\n{"a": 1,,}]', r":2: broken JSON at column 9"),
    "nothing": ([], "holds no conversation; fetch locomo10.json again"),
    "object": ({"a": 1}, "a list of conversations is expected, not dict"),
    "number": ([1], "must be a conversation object"),
    "missing id": ([{k: v for k, v in sample().items() if k != "sample_id"}], "'sample_id': the field is missing"),
    "twice": ([sample(), sample()], "'c': the conversation occurs twice"),
    "turn twice": (bad(conversation=RAW | {"session_2": RAW["session_1"]}), "turn id 'D1:1' occurs twice"),
    "turn type": (bad(conversation=RAW | {"session_2": ["hi"]}), "session_2.*each turn must be an object"),
    "turn text": (bad(conversation=RAW | {"session_2": [{"dia_id": "D2:1", "speaker": "P", "text": 3}]}), "'text': str expected, found int"),
    "no date": (bad(conversation={k: v for k, v in RAW.items() if k != "session_2_date_time"}), "session_2_date_time.*missing"),
    "observation": (bad(observation={"session_1_observation": {"P": [["only text"]]}}), "session_1_observation.*pair"),
    "observations": (bad(observation=[]), "'observation': dict expected"),
    "summary": (bad(session_summary={"session_1_summary": 3}), "session_1_summary.*string is expected"),
    "question": (bad(qa=["when?"]), "'c:q0': each question must be an object"),
    "no category": (bad(qa=[{k: v for k, v in QA[0].items() if k != "category"}]), "question 0 of c: .*'category': the field is missing"),
    "category": (question(category=9), "category 9 is unknown"),
    "evidence text": (question(evidence="D1:1"), "question 0 of c: .*'evidence': list expected, found str"),
    "evidence entry": (question(evidence=[3]), "'c:q0': each evidence entry must be a string"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_errors_name_file_and_field(write, name):
    data, message = BROKEN[name]
    path = write(data)
    with pytest.raises(DataError, match=message) as caught:
        F.read_locomo(path)
    assert "small.json" in str(caught.value)


def test_missing_file_and_wrong_encoding(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        F.read_locomo(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes('["café"]'.encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        F.read_locomo(tmp_path / "latin.json")


def test_byte_order_mark_and_crlf_are_read_through(tmp_path):
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([sample()], indent=1).replace("\n", "\r\n").encode())
    assert len(F.read_locomo(path, sha256=None)) == 1


def test_a_fork_is_read_with_a_warning_that_shows_both_hashes(write, tmp_path):
    path = write([sample()])
    with pytest.warns(UserWarning, match=f"sha256 [0-9a-f]{{64}}, expected {F.LOCOMO10_SHA256}; 6 questions read"):
        c = L.load_locomo(path)
    assert c.name == "small"


@pytest.mark.parametrize("read", [F.read_locomo, F.read_locomo_with_hash, L.load_locomo])
def test_the_warning_names_the_line_that_asked(write, read):
    with pytest.warns(UserWarning, match="is not the expected file") as caught:
        read(write([sample()]))
    assert [w.filename for w in caught] == [__file__]


def test_a_fork_of_the_real_file(real, tmp_path):
    data = json.loads(real.read_text(encoding="utf-8"))
    data[0]["qa"].pop()
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.warns(UserWarning, match="1,985 questions read .the release has 1,986."):
        F.read_locomo(path)
    path.write_bytes(real.read_bytes()[:1_000_000])
    with pytest.raises(DataError, match="truncated"):
        F.read_locomo(path)


def test_equal_question_texts_have_different_keys(real):
    c = L.load_locomo(real, questions="all")
    assert c.queries.index.is_unique and len(c.queries) - c.queries["text"].nunique() >= 12
    assert np.unique(c.qrels.query).size == len(c.queries)

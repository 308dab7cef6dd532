"""A result holds every step of a number; the cache returns what was put in and survives what breaks."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.experiment import Cache, Grid, cache_folder, load_run, run_grid, run_system, save_run
from crumb_nb.protocols import Protocol
from crumb_nb.record_files import write_run
from crumb_nb.records import Collection, DataError, Qrels, Run, corpus_frame, queries_frame
from crumb_nb.specs import SpecError

PROTOCOL = Protocol("toy", "document", "document", "by hand", ("R@1", "RR"), asked=3)


def collection(name="toy", **changes) -> Collection:
    corpus = corpus_frame(["d1", "d2", "d3"], ["the cat sat", "a dog ran after the cat", "no animal here"])
    made = Collection(name, corpus, queries_frame(["q1", "q2"], ["cat", "dog"]), Qrels.from_dict({"q1": {"d1": 1.0}, "q2": {"d2": 1.0}}), PROTOCOL)
    return made.with_(**changes)


ids = st.text(max_size=6)
runs = st.dictionaries(ids, st.dictionaries(ids, st.floats(allow_nan=False, allow_infinity=False), max_size=4), max_size=4)


@given(runs)
def test_a_cached_run_comes_back_bit_by_bit(tmp_path_factory, nested):
    path = tmp_path_factory.mktemp("run") / "r.npz"
    run = Run.from_dict(nested, name="ü", info={"parts": {"a": {"served": 1}}})
    save_run(run, path, {})
    again = load_run(path)
    assert again == run and list(again.query_ids) == list(run.query_ids) and again.info == run.info and again.name == run.name
    assert again.value.tobytes() == run.value.tobytes() and again.query_ids.dtype == object


def test_cache_lists_clears_and_repairs(tmp_path):
    cache = Cache(tmp_path)
    made = []

    def make():
        made.append(1)
        return Run.from_dict({"q": {"d": 1.0}})

    for _ in range(2):
        cache.fetch("abcd", make, {"system": "s", "collection": "c", "asked": 1})
    assert len(made) == 1 and list(cache.list()[["kind", "system", "collection"]].iloc[0]) == ["runs", "s", "c"]
    cache.path("abcd").write_bytes(b"half")
    assert cache.list()["system"].tolist() == ["?"], "a broken file is listed, not fatal"
    cache.fetch("abcd", make, {})
    assert len(made) == 2
    cache.path("abcd").write_bytes(b"")
    assert cache.list()["system"].tolist() == ["?"], "a file without a byte, as a full disk leaves it"
    cache.fetch("abcd", make, {})
    assert len(made) == 3
    for n, (place, bit) in enumerate(((8, 1), (8, 32), (10, 1)), 4):  # of the zip's list of contents: encrypted, patched, another compression
        flipped = bytearray(cache.path("abcd").read_bytes())
        flipped[flipped.index(b"PK\1\2") + place] ^= bit
        cache.path("abcd").write_bytes(flipped)
        cache.list()
        assert cache.fetch("abcd", make, {}) == Run.from_dict({"q": {"d": 1.0}}) and len(made) == n, "one flipped bit: made anew"
    for kind in ("embeddings", "corpora", "stores"):
        (tmp_path / kind / "one").mkdir(parents=True)
        (tmp_path / kind / "one" / "x").write_bytes(b"12345")
    (tmp_path / "data").mkdir()
    assert set(cache.list()["kind"]) == {"runs", "embeddings", "corpora", "stores"}
    assert cache.clear("embeddings") == 5 and cache.has("abcd")
    assert cache.clear("stores") == 5 and cache.clear() > 5 and not len(cache.list())
    assert [p.name for p in tmp_path.iterdir()] == ["data"], "what was fetched stays, all else is gone"
    with pytest.raises(DataError, match="choose from"):
        cache.clear("everything")


def test_the_cache_folder_is_the_one_named_else_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("CRUMB_NB_CACHE", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" and Cache().folder == tmp_path / "x"
    monkeypatch.delenv("CRUMB_NB_CACHE")
    assert "crumb_nb" in str(cache_folder())


def test_a_result_keeps_every_step():
    result = run_system("bm25", collection())
    assert result.scores.mean("RR") == 1.0 and result.system == "bm25" and not result.reason
    assert {k: result.provenance[k] for k in ("asked", "pool", "judged", "seed", "unit")} == {"asked": 3, "pool": None, "judged": 2, "seed": None, "unit": "document"}
    assert result.provenance["fingerprint"] == collection().fingerprint


def test_provenance_is_the_same_from_the_cache(tmp_path):
    cache = Cache(tmp_path)
    first, second = (run_system("rrf(bm25, bm25(stemmer=porter))", collection(), cache=cache) for _ in range(2))
    assert first.provenance == second.provenance and second.seconds == 0.0 and first.seconds > 0.0


def test_chance_is_the_expected_value_and_oracle_the_ceiling():
    chance = run_system("chance", collection()).scores
    assert chance.mean("R@1") == pytest.approx(1 / 3) and chance.mean("RR") == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    lost = collection(qrels=Qrels.from_dict({"q1": {"d1": 1.0}, "q2": {"gone": 1.0}}))
    assert run_system("oracle", lost).scores.mean("RR") == 0.5, "gold that no system can return lowers the ceiling"


def test_passages_are_aggregated_before_the_cut_and_a_run_of_documents_is_scored_as_it_is(tmp_path, monkeypatch):
    passages = corpus_frame(["d1:0", "d1:1", "d2:0"], ["cat cat", "cat", "cat dog"], ["d1", "d1", "d2"])
    protocol = Protocol("toy", "passage", "document", "by hand", ("R@2",), aggregate="max", asked=3)
    several = collection(corpus=passages, protocol=protocol, qrels=Qrels.from_dict({"q1": {"d2": 1.0}}))
    result = run_system("bm25", several)
    assert set(result.ranking.to_dict()["q1"]) == {"d1", "d2"} and result.scores.mean("R@2") == 1.0
    monkeypatch.chdir(tmp_path)
    write_run(Run.from_dict({"q1": {"d2": 1.0}}), "documents.jsonl")
    assert run_system("run(documents.jsonl)", several).scores.mean("R@2") == 1.0


def test_depths_of_the_call_win_over_the_protocols():
    assert len(run_system("bm25", collection(), asked=1).run) == 2
    assert run_system("rerank(bm25, oracle)", collection(), pool=2).provenance["pool"] == 2
    assert run_system("bm25", collection(), measures=["AP"]).scores.measures == ["AP"]


@pytest.mark.parametrize("depth", [{"asked": 0}, {"asked": -1}, {"pool": 0}, {"pool": -3}], ids=str)
def test_a_depth_below_one_is_refused_and_is_not_the_protocols(depth):
    "0 is not `None`: a table asked at depth 0 must not silently become one at the protocol's depth."
    with pytest.raises(DataError, match="at least one"):
        run_system("rerank(bm25, oracle)", collection(), **depth)
    with pytest.raises(DataError, match="at least one"):
        run_grid(["chance"], [collection()], **depth)


def test_a_grid_has_a_row_for_every_cell_and_says_why_one_is_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(Run.from_dict({"elsewhere": {"d1": 1.0}}), "other.jsonl")
    grid = run_grid(["bm25", "run(other.jsonl)", "oracle"], [collection("a"), collection("b")])
    means = grid.means()
    assert len(means) == 3 * 2 * 2 and list(means["collection"].unique()) == ["a", "b"]
    empty = means[means["system"] == "run(other.jsonl)"]
    assert empty["value"].isna().all() and (empty["n"] == 0).all() and empty["reason"].str.contains("none of the queries").all()
    wide = grid.wide(["RR"])
    assert list(wide["system"]) == ["bm25", "run(other.jsonl)", "oracle"] * 2 and list(wide.columns) == ["collection", "system", "RR"]
    assert len(grid.per_query()) == 2 * 2 * 2 * 2
    assert grid["bm25", "b"].scores.mean("RR") == 1.0
    with pytest.raises(KeyError):
        grid["bm25", "c"]
    assert Grid(()).means().empty and Grid(()).per_query().empty


def test_a_bad_spec_is_refused_before_anything_runs():
    with pytest.raises(SpecError):
        run_grid(["bm25", "bm52"], [collection()])


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_gives_the_same_grid(pool, tmp_path):
    specs, collections = ["chance", "bm25", "rrf(bm25, bm25(stemmer=porter))"], [collection("a"), collection("b")]
    plain = run_grid(specs, collections).per_query()
    with pool(2) as executor:
        spread = run_grid(specs, collections, cache=Cache(tmp_path), executor=executor).per_query()
    assert plain.equals(spread)


def test_locomo_by_evidence_on_the_real_file(shared_data):
    "1,460 and 1,473 of 1,526: rank_bm25 on sessions, plain and with Porter stems (issue 1/9)."
    from crumb_nb.datasets.profiles import open_collections

    sessions = open_collections("locomo", "local", shared_data, unit="session", rule="evidence", questions="not_adversarial_string")[0]
    hits = [int(run_system(s, sessions, measures=["recall_any@10"]).scores["recall_any@10"].sum()) for s in ("bm25(variant=rank_bm25)", "bm25(variant=rank_bm25, stemmer=porter)")]
    assert hits == [1460, 1473] and len(sessions.queries) == 1526


def test_scores_do_not_depend_on_the_order_of_the_corpus():
    shuffled = collection(corpus=collection().corpus.iloc[[2, 0, 1]])
    a, b = (run_system("bm25", c).scores.values for c in (collection(), shuffled))
    assert np.array_equal(a.to_numpy(), b.to_numpy())

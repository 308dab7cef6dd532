"""BM25: known faults of other tools, parity with the two libraries, and what must never change a result."""

import concurrent.futures
import json

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from crumb_nb.records import DataError, corpus_frame, queries_frame, tie_ranks
from crumb_nb.retrievers.bm25 import BM25, VARIANTS, BM25Index, Tokenizer, words
from crumb_nb.retrievers.search import best, check_asked, round32, run_of, scope_groups, texts_of

FEW = settings(max_examples=max(30, settings.default.max_examples // 5))  # these build an index or run a tokenizer per example

ALL = pytest.mark.parametrize("variant", VARIANTS)
WORDS = st.lists(st.sampled_from("ab cd ef gh a".split()), max_size=6).map(" ".join)


def corpus_of(texts):
    return corpus_frame([str(n) for n in range(len(texts))], texts)


def ask(texts, query, asked=10, **settings):
    run = BM25(**settings).index(corpus_of(texts)).search(queries_frame(["q"], [query]), asked)
    return run.frame()["doc_id"].tolist(), run


# ---- known faults (values of the cases file, copied so that they run everywhere)


@ALL
def test_bm01_a_match_stands_above_every_other_document(variant):
    ranked, _ = ask(["red fox", "blue fox", "green owl", "grey owl"], "fox", variant=variant)
    assert ranked == ["1", "0"]  # Okapi's IDF is exactly 0 here; the documents match all the same
    assert ask(["red fox", "blue owl"], "fox", variant=variant)[0] == ["0"]


def test_bm01_the_lucene_score_is_ln2_over_2_5():
    _, run = ask(["red fox", "blue fox", "green owl", "grey owl"], "fox")
    assert run.score.tolist() == pytest.approx([0.277259] * 2, abs=1e-6)


@ALL
@pytest.mark.parametrize("texts", [[], [""], ["", "   "]])
def test_bm03_nothing_to_search_gives_nothing(variant, texts):
    ranked, run = ask(texts, "fox", variant=variant)
    assert ranked == [] and list(run.query_ids) == ["q"] and run.info["no_hit"] == 1


@ALL
def test_bm03_an_empty_document_among_others_is_never_returned(variant):
    assert ask(["", "red fox", "owl"], "fox", variant=variant)[0] == ["1"]


@ALL
def test_bm04_more_asked_than_there_is(variant):
    assert ask(["red fox", "blue fox", "green owl", "grey owl"], "fox", asked=10, variant=variant)[0] == ["1", "0"]


@ALL
@pytest.mark.parametrize("query", ["zzz qqq", "", "the of"])
def test_bm05_no_known_word_no_hit(variant, query):
    assert ask(["red fox", "blue fox", "green owl", "grey owl"], query, asked=2, variant=variant)[0] == []


def test_bm08_text_is_tokenised_not_iterated():
    index = BM25().index(corpus_of(["red fox", "blue owl", "green cat"]))
    assert set(index.vocabulary) == {"red", "fox", "blue", "owl", "green", "cat"}
    with pytest.raises(TypeError, match="DataFrame"):
        BM25().index(["red fox"])
    with pytest.raises(TypeError, match="string"):
        Tokenizer()(["red", "fox"])


def test_the_case_file_says_the_same(cases):
    for case in ("BM01", "BM03", "BM04", "BM05", "BM08"):
        assert cases[case]["area"] == "bm25"
    case = cases["BM01"]
    ranked, run = ask([" ".join(d) for d in case["input"]["corpus"]], " ".join(case["input"]["query"]))
    assert [int(d) for d in ranked] == case["expected"]["ranked"]
    assert run.score.tolist() == pytest.approx([s for s in case["expected"]["scores_lucene_k1_1_5_b_0_75"] if s], abs=1e-6)
    case = cases["BM05"]
    for query, ranked in zip(case["input"]["queries"], case["expected"]["ranked"]):
        assert [int(d) for d in ask(case["input"]["corpus"], query, case["input"]["k"])[0]] == ranked


# ---- tokens


def test_tokens():
    assert words("A B2 c_d é") == ["a", "b2", "c_d", "é"]  # one-letter words stay
    assert words("ﬁne Ⅷ ẞ K") == ["fine", "viii", "ss", "k"]  # NFKC (ligature, numeral, Kelvin sign) and case folding
    assert words("東京 tower カ") == ["東", "京", "tower", "カ"]
    assert words("नमस्ते दुनिया") == ["नमस्ते", "दुनिया"]  # marks stay inside a word
    assert words("cafe\u0301") == words("café") == ["café"]
    assert words("1\ufe0f\u20e3 ok") == ["1", "ok"]  # an emoji's selector is no letter


@given(st.text())
def test_tokens_are_stable_under_tokenising_again(text):
    assert words(" ".join(words(text))) == words(text)


def test_ascii_takes_the_short_way_to_the_same_place():
    text = "It's 3.5 — plan_B"
    assert words(text.replace("—", "-")) == words(text)


def test_tokenizer_options():
    assert Tokenizer(stemmer="porter", stopwords="english")("The foxes of the running") == ["fox", "run"]
    assert Tokenizer(stopwords=("Foxes", "red owl"))("red foxes and owls") == ["and", "owls"]
    assert Tokenizer(stopwords=("Foxes",)) == Tokenizer(stopwords=("Foxes",))
    for wrong in (dict(stemmer="klingon"), dict(stopwords="german")):
        with pytest.raises(ValueError, match="choose"):
            Tokenizer(**wrong)


def test_settings_refuse_what_cannot_be():
    for wrong in (dict(variant="okapi"), dict(b=1.5), dict(k1=-1), dict(stemmer="klingon")):
        with pytest.raises(ValueError):
            BM25(**wrong)


# ---- parity with the libraries


def texts_at_random(n, seed=0, length=20, vocabulary=60):
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{v}" for v in np.minimum(rng.zipf(1.4, rng.integers(1, length)), vocabulary)) for _ in range(n)]


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v != "rank_bm25"])
def test_scores_are_those_of_bm25s(variant):
    texts, query = texts_at_random(200), "w1 w5 w9 w9 w33"
    library = bm25s.BM25(method=variant)
    library.index([t.split() for t in texts], show_progress=False)
    expected = library.get_scores(query.split())
    ours = ask(texts, query, asked=200, variant=variant)[1].to_dict()["q"]
    matching = {str(n) for n, t in enumerate(texts) if set(t.split()) & set(query.split())}
    assert set(ours) == matching
    assert [ours[d] for d in sorted(ours)] == pytest.approx([float(expected[int(d)]) for d in sorted(ours)], rel=1e-5)


def test_scores_are_those_of_rank_bm25():
    texts, query = texts_at_random(200), "w1 w5 w9 w9 w33"
    expected = BM25Okapi([t.split() for t in texts]).get_scores(query.split())
    ours = ask(texts, query, asked=200, variant="rank_bm25")[1].to_dict()["q"]
    assert all(ours[d] == np.float32(expected[int(d)]) for d in ours) and len(ours) > 50


@pytest.mark.parametrize("k1, b", [(0.9, 0.4), (1.2, 0.0), (2.0, 1.0)])
def test_k1_and_b_reach_both_libraries(k1, b):
    texts = texts_at_random(50)
    okapi = BM25Okapi([t.split() for t in texts], k1=k1, b=b).get_scores(["w7"])
    assert ask(texts, "w7", 50, variant="rank_bm25", k1=k1, b=b)[1].to_dict()["q"] == {str(n): float(np.float32(s)) for n, (s, t) in enumerate(zip(okapi, texts)) if "w7" in t.split()}
    assert ask(texts, "w7", 50, k1=k1, b=b)[1] != ask(texts, "w7", 50)[1]


# ---- what must not change a result


@ALL
@FEW
@given(texts=st.lists(WORDS, max_size=12), query=WORDS, asked=st.integers(1, 15), seed=st.integers(0, 9))
def test_permuting_the_corpus_changes_nothing(variant, texts, query, asked, seed):
    corpus, queries = corpus_of(texts), queries_frame(["q"], [query])
    shuffled = corpus.iloc[np.random.default_rng(seed).permutation(len(corpus))]
    one, two = (BM25(variant=variant).index(c).search(queries, asked).frame() for c in (corpus, shuffled))
    assert one.equals(two)


@ALL
@FEW
@given(texts=st.lists(WORDS, max_size=12), questions=st.lists(WORDS, max_size=4))
def test_a_hit_has_a_query_term_and_every_document_with_one_is_a_hit(variant, texts, questions):
    index = BM25(variant=variant).index(corpus_of(texts))
    queries = queries_frame([f"q{n}" for n in range(len(questions))], questions)
    batch = index.search(queries, max(len(texts), 1)).to_dict()
    for n, question in enumerate(questions):
        terms = set(question.split())
        assert set(batch[f"q{n}"]) == {str(d) for d, t in enumerate(texts) if terms & set(t.split())}
        assert index.search(queries.iloc[[n]], max(len(texts), 1)).to_dict()[f"q{n}"] == batch[f"q{n}"]


@FEW
@given(texts=st.lists(WORDS, min_size=1, max_size=10), query=WORDS, chosen=st.sets(st.integers(0, 9)), variant=st.sampled_from(["lucene", "bm25+", "rank_bm25"]))
def test_a_scope_is_a_corpus_of_its_own(texts, query, chosen, variant):
    names = tuple(sorted(str(n) for n in chosen if n < len(texts)))
    queries, corpus = queries_frame(["q"], [query]), corpus_of(texts)
    scoped = BM25(variant=variant).index(corpus).search(queries, 10, scope={"q": names})
    alone = BM25(variant=variant).index(corpus.loc[list(names)]).search(queries, 10)
    assert scoped == alone


def test_few_postings_in_a_large_corpus_take_the_other_way_to_the_same_result():
    texts = ["common words here"] * 300
    texts[7] = texts[250] = "a rare comet here"
    ranked, run = ask(texts, "rare comet", 10)
    assert ranked == ["7", "250"] and len(set(run.score)) == 1


@pytest.mark.parametrize("ties", ["doc_id", "hash"])
def test_ties(ties):
    corpus = corpus_of(["same text"] * 30)
    found = BM25().index(corpus).search(queries_frame(["q"], ["text"]), 5, ties=ties).frame(ties)["doc_id"].tolist()
    assert found == list(corpus.index[np.argsort(-tie_ranks(list(corpus.index), ties))[:5]])


# ---- on disk


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v != "rank_bm25"])
def test_saved_and_opened_gives_the_same(variant, tmp_path):
    corpus, queries = corpus_of(texts_at_random(80)), queries_frame(["a", "b"], ["w1 w9", "w3"])
    settings = BM25(variant=variant, stemmer="english", stopwords=("w4", "w5"))
    saved = settings.index(corpus, path=tmp_path / "deep" / "index")
    assert isinstance(saved.whole.data, np.memmap) and isinstance(saved.tokens, np.memmap)
    assert saved.settings == settings and len(saved) == 80 and saved.nbytes > 1000
    scope = {"a": ("1", "2", "3"), "b": ("4",)}
    for s in (None, scope):
        assert BM25Index.load(tmp_path / "deep" / "index").search(queries, 9, scope=s) == settings.index(corpus).search(queries, 9, scope=s)
    assert bm25s.BM25.load(tmp_path / "deep" / "index").scores["num_docs"] == 80  # the library opens it too


def test_an_index_of_another_corpus_or_setting_is_not_reused(tmp_path):
    one, two = corpus_of(["red fox"]), corpus_of(["red owl"])
    queries = queries_frame(["q"], ["owl"])
    assert len(BM25().index(one, path=tmp_path / "i").search(queries, 5)) == 0
    assert len(BM25().index(two, path=tmp_path / "i").search(queries, 5)) == 1
    before = (tmp_path / "i" / "tokens.npy").stat().st_ino
    BM25().index(two, path=tmp_path / "i")
    assert (tmp_path / "i" / "tokens.npy").stat().st_ino == before
    BM25(k1=1.2).index(two, path=tmp_path / "i")
    assert json.loads((tmp_path / "i" / "settings.json").read_text())["settings"]["k1"] == 1.2
    assert [p.name for p in tmp_path.iterdir()] == ["i"]  # nothing half-made is left beside it


def test_an_empty_corpus_can_be_saved(tmp_path):
    index = BM25().index(corpus_of(["", " "]), path=tmp_path / "i")
    assert len(index.search(queries_frame(["q"], ["fox"]), 5)) == 0


def test_what_is_no_index_says_so(tmp_path):
    with pytest.raises(DataError, match="not a complete BM25 index"):
        BM25Index.load(tmp_path)
    with pytest.raises(DataError, match="rank_bm25 has no index to save"):
        BM25(variant="rank_bm25").index(corpus_of(["a"]), path=tmp_path / "i")


def test_an_executor_gives_the_same_ranking(tmp_path):
    corpus = corpus_of(texts_at_random(60))
    queries = queries_frame([f"q{n}" for n in range(150)], [f"w{n % 7} w{n % 11}" for n in range(150)])
    index = BM25().index(corpus, path=tmp_path / "i")
    scope = {q: tuple(str(n) for n in range(20)) for q in queries.index}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for s in (None, scope):
            assert index.search(queries, 5, scope=s, executor=pool) == index.search(queries, 5, scope=s)
        with pytest.raises(DataError, match="saved index"):
            BM25().index(corpus).search(queries, 5, executor=pool)


# ---- the shared part


@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(1, 50), st.integers(0, 5))
def test_best_is_sorting_everything(values, asked, seed):
    score, key = np.array(values, dtype=float), np.random.default_rng(seed).permutation(len(values))
    assert best(score, key, asked).tolist() == np.lexsort((-key, -score))[:asked].tolist()


def test_shared_checks():
    assert round32([0.1]).dtype == np.float64 and round32([0.1])[0] == np.float32(0.1)
    for wrong in (0, -1, 1.5, True, "3"):
        with pytest.raises(ValueError, match="asked"):
            check_asked(wrong)
    ids = np.array(["a", "b"], dtype=object)
    with pytest.raises(DataError, match="no scope"):
        scope_groups(["q"], {}, ids)
    with pytest.raises(DataError, match="'z' of its scope"):
        scope_groups(["q"], {"q": ("a", "z")}, ids)
    assert scope_groups(["q"], {"q": ()}, ids)[0][1].tolist() == []
    one = np.array([0]), np.array([1.0])
    with pytest.raises(DataError, match="occurs twice"):
        run_of(["q", "q"], ids, [one, one])
    with pytest.raises(DataError, match="NaN"):
        run_of(["q"], ids, [(np.array([0]), np.array([np.nan]))])
    assert len(run_of([], ids, [])) == 0
    frame = corpus_frame(["a"], ["text"])
    with pytest.raises(DataError, match="a string is expected"):
        texts_of(frame.assign(text=[None]))
    with pytest.raises(DataError, match="this id twice"):
        texts_of(frame.iloc[[0, 0]])


@pytest.mark.parametrize("stemmer, hits", [(None, 1460), ("porter", 1473), ("english", 1471)])
def test_locomo_sessions_any_at_10(shared_data, stemmer, hits):
    "The known counts of 1,526 judgeable questions, with rank_bm25 over session documents."
    from crumb_nb.datasets.locomo import load_locomo

    path = shared_data / "locomo" / "locomo10.json"
    if not path.is_file():
        pytest.skip("no locomo10.json among the real data")
    collection = load_locomo(path, unit="session")
    judged = collection.protocol.judged(collection)
    queries = collection.queries.loc[judged]
    run = BM25(variant="rank_bm25", stemmer=stemmer).index(collection.corpus).search(queries, 10, scope=collection.scope)
    relevant, found = collection.qrels.relevant(), run.to_dict()
    assert len(judged) == 1526 and sum(bool(set(relevant[q]) & set(found[q])) for q in judged) == hits


def test_a_folder_that_is_no_index_is_not_replaced(tmp_path):
    "Saving replaces what stands at the path: only an empty folder or an index may stand there."
    corpus = corpus_frame(["a"], ["red fox"])
    for name in ("thesis.txt", "settings.json"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("years of work")
        (tmp_path / name / "other.txt").write_text("more work")
        for place in (tmp_path / name, tmp_path / name / name):
            with pytest.raises(DataError, match="is not a BM25 index; name an empty or new folder"):
                BM25().index(corpus, path=place)
        assert (tmp_path / name / name).read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    for settings in (BM25(), BM25(variant="bm25l"), BM25(stemmer="porter")):
        assert len(settings.index(corpus, path=tmp_path / "empty")) == 1

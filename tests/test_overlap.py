"""Lexical overlap: shares by hand, weights, parents, correlation."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crumb_nb.overlap import lexical_overlap, overlap_correlation, term_overlap
from crumb_nb.protocols import Protocol
from crumb_nb.records import Collection, Qrels, corpus_frame, queries_frame
from crumb_nb.retrievers.bm25 import Tokenizer

PROTOCOL = Protocol("toy", "passage", "document", "label", ("nDCG@10",), left_out={"left": "not asked"})


@given(st.sets(st.sampled_from("abcdef"), min_size=1), st.sets(st.sampled_from("abcdef")))
def test_share_is_a_share_and_monotone(query, document):
    share = term_overlap(query, document)
    assert 0 <= share <= 1 and term_overlap(query, document | query) == 1 and term_overlap(query, set()) == 0
    weights = {t: ord(t) - 96.0 for t in query}
    assert math.isclose(term_overlap(query, document, weights), sum(weights[t] for t in query & document) / sum(weights.values()))


def test_by_hand():
    corpus = corpus_frame(["a:0", "a:1", "b"], ["red fox", "night", "red owl"], ["a", "a", None])
    queries = queries_frame(["q", "none", "left", "empty"], ["red night sky", "x", "y", "?!"], groups=["AND", "", "", ""])
    qrels = Qrels.from_dict({"q": {"a": 2.0, "b": 1.0, "gone": 1.0}, "none": {"gone": 1.0}, "left": {"a": 1.0}, "empty": {"a": 1.0}})
    table = lexical_overlap(Collection("toy", corpus, queries, qrels, PROTOCOL), Tokenizer()).set_index("query_id")
    assert list(table.index) == ["q", "empty"], "left out by the protocol, or nothing in reach"
    assert table.at["q", "share"] == pytest.approx((2 / 3 + 1 / 3) / 2) and table.at["q", "best_share"] == 2 / 3 and table.at["q", "group"] == "AND"
    idf = {t: math.log1p((3 - n + 0.5) / (n + 0.5)) for t, n in {"red": 2, "night": 1, "sky": 0}.items()}
    total = sum(idf.values())
    assert table.at["q", "best_idf_share"] == pytest.approx((idf["red"] + idf["night"]) / total)
    assert table.at["q", "idf_share"] == pytest.approx(((idf["red"] + idf["night"]) + idf["red"]) / 2 / total)
    assert np.isnan(table.at["empty", "share"]) and table.at["empty", "terms"] == 0


def test_correlation():
    from scipy.stats import spearmanr

    x, y = pd.Series([0.1, 0.4, 0.4, 0.9], index=list("abcd")), pd.Series([0.0, 0.3, 0.2, 0.9], index=list("abcd"))
    assert overlap_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert np.isnan(overlap_correlation(x.iloc[:2], y)) and np.isnan(overlap_correlation(x * 0, y))

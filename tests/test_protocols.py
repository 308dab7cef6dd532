"""Protocol values and the cards they print."""

import pytest

from crumb_nb.protocols import Protocol, parse_measure, protocol_card, reasons, render_card
from crumb_nb.records import Collection, Qrels, corpus_frame, queries_frame


def protocol(**changes):
    base = dict(name="p", unit="passage", counted="full_document", aggregate="max", gold_rule="label > 0", measures=("nDCG@10", "R@100"), n_questions=3, left_out={"q3": "abstention"})
    return Protocol(**{**base, **changes})


def collection():
    qrels = Qrels.from_dict({"q1": {"d": 1.0}, "q2": {"d": 0.0}, "q3": {}})
    return Collection("c", corpus_frame(["d"], ["text"]), queries_frame(["q1", "q2", "q3"], ["a", "b", "c"]), qrels, protocol=protocol(), notes=("stand-in",))


@pytest.mark.parametrize("name, parsed", [("nDCG@10", ("nDCG", 10)), ("RR", ("RR", None)), ("AP", ("AP", None)), ("RR@10", ("RR", 10)), ("recall_all@5", ("recall_all", 5)), ("ndcg_any@1", ("ndcg_any", 1))])
def test_measure_names(name, parsed):
    assert parse_measure(name) == parsed


@pytest.mark.parametrize("name", ["ndcg@10", "recall@5", "R", "R@0", "R@-1", "nDCG@", "R@1.5", "nDCG@10 "])
def test_unknown_measures_are_refused(name):
    with pytest.raises(ValueError, match="measure"):
        parse_measure(name)


@pytest.mark.parametrize("change", [dict(unit="paragraph"), dict(mode="beir"), dict(ties="random"), dict(asked=0), dict(k=(0,)), dict(pool=0), dict(measures=()), dict(measures=("R",)), dict(primary="P@1"), dict(aggregate="median"), dict(no_relevant="one")])
def test_impossible_protocols_are_refused(change):
    with pytest.raises(ValueError):
        protocol(**change)


def test_judged_queries_and_denominators():
    "q3 is left out by name; q2 has no relevant document: it counts 0 or is dropped, as the protocol says."
    assert protocol().judged(collection()) == ["q1", "q2"]
    assert protocol(no_relevant="drop").judged(collection()) == ["q1"]
    assert reasons(protocol()) == {"abstention": 1}


def test_new_measures_bring_their_primary():
    assert protocol().with_(measures=("P@1",)).primary == "P@1"
    assert protocol().with_(measures=("P@1", "nDCG@10")).primary == "nDCG@10"


def test_card_has_a_fixed_order_and_escapes():
    card = protocol_card(protocol(), collection(), reranker_served=1234, revision="<i>")
    assert list(card)[:3] == ["protocol", "collection", "unit"] and card["judged"] == "2 questions of 3"
    assert card["reranker served"] == "1,234" and "stand-in" in card["notes"]
    html = render_card(card, "html")
    assert "&lt;i&gt;" in html and "<i>" not in html
    assert render_card({"a|b": "c|d\ne"}, "md").endswith("| a\\|b | c\\|d e |")
    assert render_card({}, "text") == ""
    with pytest.raises(ValueError, match="choose one of"):
        render_card(card, "pdf")

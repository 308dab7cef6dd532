"""Protocol cards: every field that a number must carry."""

import html

import pytest

from crumb_nb.protocols import RUN_FACTS, Protocol, protocol_card, render_card
from crumb_nb.records import Collection, Qrels, Run, corpus_frame, queries_frame

PROTOCOL = Protocol(
    name="toy", unit="passage", counted="full_document", aggregate="max", gold_rule="label > 0", question_filter="no abstention", n_questions=4, left_out={"x_abs": "abstention"},
    measures=("nDCG@10", "R@100", "ndcg_any@5"), asked=2000, pool=50, k=(10, 100), ties="hash", no_relevant="drop", split="eval", options={"date_line": True}, notes=("a stand-in",),
)  # fmt: skip
TOY = Collection("toy", corpus_frame(["d:0", "d:1"], ["a", "b"], ["d", "d"]), queries_frame(["q", "r", "x_abs"], ["?"] * 3), Qrels.from_dict({"q": {"d": 1}, "r": {"d": 1}, "x_abs": {}}), PROTOCOL, licence="CC0", source="made up")


def test_rules_and_counts():
    card = protocol_card(PROTOCOL, TOY)
    assert card["unit"] == "passage, counted as full_document" and card["aggregation"] == "max" and card["split"] == "eval"
    assert card["judged"] == "2 questions of 4" and card["left out"] == "1 abstention" and card["question filter"] == "no abstention"
    assert card["depths"] == "pool 50, asked 2,000, k 10, 100" and "SHA-256" in card["ties"] and card["queries without relevant documents"] == "left out"
    assert card["fingerprint"] == TOY.fingerprint and card["corpus"] == "2 documents, 1 parents" and card["autocut"] == "off"
    definitions = card["measure definitions"]
    assert "linear gain" in definitions and "share of the relevant" in definitions and "ranks 1 and 2 weigh the same" in definitions
    assert not set(RUN_FACTS.values()) & set(card)  # without a run nothing is said of a run


def test_facts_of_a_run_are_all_there_or_said_to_be_unknown():
    run = Run.from_rows(["q"], ["d:0"], [1.0], query_ids_all=["q", "r", "x_abs"], name="engine", info={"served": 45, "refused": 5, "truncated": 1234})
    card = protocol_card(PROTOCOL, TOY, run, chunks=2, files=1, duplicates=0, revision="abc (dirty)", engine_revision="v2", reader="none")
    facts = {"files": "1", "chunks": "2", "served": "45", "refused": "5", "duplicates": "0", "empty": "1", "truncated": "1,234", "revision": "abc (dirty)", "engine_revision": "v2"}
    assert {label: card[label] for label in RUN_FACTS.values()} == {RUN_FACTS[name]: text for name, text in facts.items()}
    assert card["system"] == "engine" and card["reader"] == "none"
    bare = protocol_card(PROTOCOL, None, Run.from_dict({"q": {}, "r": {"d": 1.0}}))
    assert bare["reranker served"] == bare["our revision"] == bare["system"] == "not recorded" and bare["empty results"] == "1"
    assert protocol_card(PROTOCOL, TOY, run.with_(info={"empty": 7}))["empty results"] == "7"  # what the engine counted wins


@pytest.mark.parametrize("format", ["text", "md", "html"])
def test_every_fact_is_rendered(format):
    card = protocol_card(PROTOCOL, TOY, Run.from_dict({"q": {"d:0": 1.0}}))
    rendered = render_card(card, format)
    assert all(label in html.unescape(rendered) for label in card)


def test_facts_of_stages_and_engines_are_found():
    "A fused run carries its parts' counts; an imported run's revision is the engine's; repeats are duplicates."
    fused = Run.from_dict({"q": {"d": 1.0}}, info={"parts": {"dense": {"documents_truncated": 12, "queries_truncated": 0}, "rerank": {"served": 3, "parts": {"bm25": {"no_hit": 1}}}}})
    card = protocol_card(PROTOCOL, None, fused)
    assert card["truncated texts"] == "12 documents, 0 queries" and card["reranker served"] == "3"
    imported = protocol_card(PROTOCOL, None, fused.with_(info={"engine": "x", "revision": "v9", "repeated": 4, "empty": 0}))
    assert imported["external engine's revision"] == "v9" and imported["our revision"] == "not recorded" and imported["duplicates removed"] == "4"

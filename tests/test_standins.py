"""Which LongMemEval collections a profile gives, and when published figures may stand beside them."""

import shutil

import pytest

from crumb_nb.datasets.profiles import Unavailable, package_data
from crumb_nb.datasets.standins import STAND_IN_NAME, longmemeval_collections, released

SOURCE = package_data() / "longmemeval" / "longmemeval_mini.json"


def folder_with(tmp_path, *names):
    (tmp_path / "longmemeval").mkdir()
    for name in names:
        shutil.copy(SOURCE, tmp_path / "longmemeval" / name)
    return tmp_path


def test_mini_is_the_embedded_collection_alone():
    (embedded,) = longmemeval_collections("mini", granularity="turn")
    assert embedded.name == "longmemeval_mini" and embedded.protocol.unit == "turn" and not released(embedded)


def test_a_part_alone_without_oracle_records(tmp_path):
    assert [c.name for c in longmemeval_collections("local", folder_with(tmp_path, "longmemeval_s_4q.json"))] == ["longmemeval_s_4q"]


def test_stand_in_is_named_noted_and_the_same_again(tmp_path):
    data = folder_with(tmp_path, "longmemeval_s_4q.json", "longmemeval_oracle_2q.json")
    first = longmemeval_collections("local", data, n_sessions=10)[1]
    again = longmemeval_collections("local", data, n_sessions=10)[1]
    other = longmemeval_collections("local", data, n_sessions=10, seed=1)[1]
    assert first.name == STAND_IN_NAME and first.notes[0].startswith("stand-in") and not released(first)
    assert {len(docs) for docs in first.scope.values()} == {10}
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_released_file_stands_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("crumb_nb.datasets.standins.RELEASED_QUESTIONS", 29)
    data = folder_with(tmp_path, "longmemeval_s_cleaned.json", "longmemeval_oracle.json")
    (only,) = longmemeval_collections("local", data)
    assert released(only)


def test_nothing_there(tmp_path):
    with pytest.raises(Unavailable, match="longmemeval_s_cleaned.json"):
        longmemeval_collections("local", tmp_path)


def test_real_part_and_its_stand_in(shared_data):
    part, stand_in = longmemeval_collections("local", shared_data, questions="answerable", gold="answer_sessions")
    assert (len(part.queries), part.protocol.n_questions) == (4, 4)
    assert len(stand_in.queries) == 48  # 52 oracle records, 4 of them abstentions
    assert {len(docs) for docs in stand_in.scope.values()} == {48}

"""Widgets: values by the code that scores tables; a picture where nobody is connected."""

import builtins

import pytest

from crumb_nb.records import DataError
from crumb_nb.widgets import attended, cuts, cuts_widget, draw_cuts, move, picture, ranking_values, ranking_widget

TEXT = "# A\n\nOne sentence here. " + "Another one follows it. " * 30 + "\n\n## B\n\nThe end."


def test_a_move_keeps_all_documents():
    assert move([1, 0, 0, 2], 4, 1) == [2, 1, 0, 0] and move([1, 0], 1, 1) == [1, 0]
    for document, rank in ((0, 1), (1, 3)):
        with pytest.raises(DataError, match="outside the ranking"):
            move([1, 0], document, rank)


def test_values_by_hand():
    values = ranking_values([0, 1, 0, 1], ("RR", "AP", "R@2", "P@2"), missing=[1])
    assert values == pytest.approx({"RR": 1 / 2, "AP": (1 / 2 + 2 / 4) / 3, "R@2": 1 / 3, "P@2": 1 / 2})


def test_without_a_person_the_picture_alone(monkeypatch):
    for name in ("JPY_SESSION_NAME", "VSCODE_PID", "VSCODE_CWD", "COLAB_RELEASE_TAG", "CRUMB_NB_WIDGETS"):
        monkeypatch.delenv(name, raising=False)
    assert not attended() and set(ranking_widget([1, 0], 1)._repr_mimebundle_()) == {"image/png", "text/plain"}
    monkeypatch.setenv("JPY_SESSION_NAME", "a.ipynb")
    assert "application/vnd.jupyter.widget-view+json" in ranking_widget([1, 0], 1)._repr_mimebundle_()
    real = builtins.__import__

    def without(name, *args, **kw):
        if name == "ipywidgets":
            raise ImportError(name)
        return real(name, *args, **kw)

    monkeypatch.setattr(builtins, "__import__", without)
    assert set(cuts_widget(TEXT)._repr_mimebundle_()) == {"image/png", "text/plain"}


def test_sliders_change_the_picture():
    box = ranking_widget([0, 1, 0, 0], 2).widget()
    before = bytes(box.children[-1].value)
    box.children[0].value = 4
    assert bytes(box.children[-1].value) != before and before.startswith(b"\x89PNG")


def test_many_chunks_are_drawn_in_part():
    chunks = cuts(TEXT * 20, 60, 200)
    assert len(chunks) > 30 and "".join(c.text for c in chunks) == TEXT * 20
    assert picture(draw_cuts(chunks, 200)) == picture(draw_cuts(chunks, 200))  # the same bytes


def test_an_unknown_measure_is_told():
    with pytest.raises(DataError, match="unknown measure"):
        ranking_widget([1], 1, ("MRR",))

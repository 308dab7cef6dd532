"""Tables: what is marked, what is refused, and that each format can be read back."""

import io
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crumb_nb.protocols import Protocol
from crumb_nb.records import Collection, DataError, Qrels, corpus_frame, queries_frame
from crumb_nb.stats import bootstrap_ci
from crumb_nb.tables import LONG_TABLE, STYLES, Cell, Table, _letter, facts_of, results_table, structure_of, tex_escape, tex_table, tex_text

IDS = [f"q{i:02}" for i in range(40)]


def long_frame(**systems) -> pd.DataFrame:
    "A long frame of one or more measures: system → {measure: 40 values}."
    rows = [(name, q, m, float(v)) for name, measures in systems.items() for m, values in measures.items() for q, v in zip(IDS, values)]
    return pd.DataFrame(rows, columns=["system", "query_id", "measure", "value"])


@pytest.fixture()
def long():
    strong, middle, weak = [1] * 36 + [0] * 4, [1] * 20 + [0] * 20, [1] * 18 + [0] * 22
    return long_frame(strong={"R@5": strong, "Judged@5": [1] * 40}, middle={"R@5": middle, "Judged@5": [0.5] * 40}, weak={"R@5": weak, "Judged@5": [0] * 40})


class Reader(HTMLParser):
    "Texts of the cells of a table, and how many tags were left open."

    def __init__(self):
        super().__init__()
        self.rows, self.open, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if any(t in ("td", "th") for t in self.open):
            self.rows[-1][-1] += data


def test_marks(long):
    table = results_table(long, chance={"R@5": 0.1}, oracle={"R@5": 1.0})
    best, second, last = (table.cells[name, "R@5"] for name in ("strong", "middle", "weak"))
    assert best.best and not best.second and best.beats == "bc" and best.hits == 36 and best.n == 40
    assert second.second and not second.best and second.beats == ""
    assert not last.best and not last.second
    assert not any(table.cells[name, "Judged@5"].best or table.cells[name, "Judged@5"].beats for name in table.rows)
    assert not table.cells["oracle", "R@5"].best and table.cells["oracle", "Judged@5"].value is None
    assert table.rows == ("strong", "middle", "weak", "chance", "oracle") and table.ordinary == 3


def test_equal_means_share_the_mark():
    table = results_table(long_frame(a={"RR": [1] * 40}, b={"RR": [1] * 40}, c={"RR": [0] * 40}))
    assert [table.cells[n, "RR"].best for n in "abc"] == [True, True, False]
    only_two = results_table(long_frame(a={"RR": [1] * 40}, b={"RR": [0] * 40}))
    assert not only_two.cells["b", "RR"].second  # of two, the loser is not decorated
    alone = results_table(long_frame(a={"RR": [1] * 40}))
    assert not alone.cells["a", "RR"].best and alone.letters == {} and "letters" not in alone.caption


def test_caption_states_how_it_was_counted(long):
    caption = results_table(long, title="Toy.", facts={"asked": 10, "pool": None, "corpus": "toy", "mode": ""}, baseline="middle", intervals=True).caption
    for part in ("Toy. n = 40; measures R@5, Judged@5; k 5; asked 10; corpus toy", "paired randomisation, Holm, α = 0.05 over the row's pairs with middle", "10,000 resamples, seed 0", "95 % bootstrap"):
        assert part in caption
    assert "pool" not in caption and "mode" not in caption
    assert "no correction" in results_table(long, correction="none").caption


def test_different_denominators_are_stated(long):
    more = pd.concat([long, pd.DataFrame([("strong", q, "RR", 1.0) for q in IDS[:30]], columns=long.columns)])
    assert "n = 40 for R@5, Judged@5; 30 for RR" in results_table(more).caption
    unequal = more[~((more["system"] == "weak") & (more["query_id"] == "q00"))]
    with pytest.raises(DataError, match="'strong' was scored on this question and 'weak' was not"):
        results_table(unequal)
    assert "39 or 40 for R@5" in results_table(unequal, letters=False).caption


def test_missing_cells_are_dashes(long):
    table = results_table(long[~((long["system"] == "weak") & (long["measure"] == "R@5"))])
    assert table.cells["weak", "R@5"] == Cell(None) and "| – |" in table.to_md()
    assert np.isnan(table.frame().query("system == 'weak' and measure == 'R@5'")["value"].item())


def test_dashes_have_footnotes(long):
    table = results_table(long, dashes={("*", "Judged@5"): "not a matter of rank", ("weak", "R@5"): "withheld", ("weak", "absent"): "unused"}, chance={"R@5": 0.2, "Judged@5": 0.3})
    assert table.notes == ("not a matter of rank", "withheld")
    assert table.cells["chance", "Judged@5"].value is None and table.cells["chance", "R@5"].value == 0.2
    assert table.cells["strong", "R@5"].beats == "b"  # the dashed cell competes with nobody
    assert "<sup>†</sup> not a matter of rank" in table.to_md() and "–<sup>‡</sup>" in table.to_md()
    assert r"--\textsuperscript{$\dagger$}" in table.to_tex()


def test_more_notes_than_signs():
    measures = {f"R@{k}": [1] * 40 for k in range(1, 8)}
    table = results_table(long_frame(a=measures), dashes={("*", m): f"reason {m}" for m in measures})
    assert "<sup>(7)</sup> reason R@7" in table.to_md()


def test_intervals_and_hits(long):
    table = results_table(long, intervals=True, show_hits=True, digits=3)
    interval = bootstrap_ci(long.query("system == 'strong' and measure == 'R@5'").set_index("query_id")["value"])
    cell = table.cells["strong", "R@5"]
    assert (cell.low, cell.high) == (interval.low, interval.high) and table.cells["strong", "Judged@5"].low is None
    assert "**.900**<sup>bc</sup> [" in table.to_md() and "(36/40)" in table.to_md()


def test_rows_that_do_not_compete(long):
    table = results_table(long, others={"published (page)": {"R@5": 0.99}}, rows=["weak", "strong", "middle"], columns=["R@5"])
    assert table.rows == ("weak", "strong", "middle", "published (page)") and table.cells["strong", "R@5"].best and table.cells["strong", "R@5"].beats == "ac"
    with pytest.raises(DataError, match="given twice"):
        results_table(long, others={"weak": {"R@5": 1.0}})


def test_refusals(long):
    with pytest.raises(DataError, match="lacks the column"):
        results_table(long.drop(columns="value"))
    with pytest.raises(DataError, match="strong has two values of R@5"):
        results_table(pd.concat([long, long[:1]]))


def test_csv_is_tidy_and_exact(long):
    long = pd.concat([long, long_frame(strong={"AP": np.linspace(0, 1, 40) ** 3})])
    table = results_table(long, dashes={("*", "Judged@5"): "because"})
    back = pd.read_csv(io.StringIO(table.to_csv()))
    assert back.query("system == 'strong' and measure == 'AP'")["value"].item() == np.mean(np.linspace(0, 1, 40) ** 3)
    assert list(back.columns) == ["system", "measure", "value", "n", "hits", "beats", "note"]
    assert back.query("system == 'strong' and measure == 'R@5'")["beats"].item() == "middle weak"
    assert table.to_csv().endswith("\n") and "\r" not in table.to_csv()
    plain = results_table(long_frame(a={"AP": np.linspace(0, 1, 40)}))
    assert plain.to_csv().splitlines()[0] == "system,measure,value,n"


NASTY = "rrf(bm25, dense) <b> & 50 % | a_b #1 {x} \\ ~^"


def test_every_format_escapes_names():
    table = results_table(long_frame(**{NASTY: {"R@5": [1] * 40}, "plain": {"R@5": [0] * 40}}), title=NASTY, remarks=[NASTY])
    reader = Reader()
    reader.feed(table.to_html())
    assert not reader.open and reader.rows[1][0] == NASTY + " a" and "b" in reader.tags  # only our own <b>
    assert reader.tags.count("b") == 1
    md = [line for line in table.to_md().splitlines() if line.startswith("| rrf")][0]
    assert md.count("|") - md.count("\\|") == 3
    tex = table.to_tex()
    assert r"50 \% $|$ a\_b \#1 \{x\} \textbackslash{} \textasciitilde{}\textasciicircum{}" in tex and tex.count(r"\midrule") == 1
    assert r"\midrule" in results_table(long_frame(a={"R@5": [1] * 40}), chance={"R@5": 0.1}).to_tex().split(r"\midrule", 1)[1]


def test_save_writes_four_files_whole(long, tmp_path):
    table = results_table(long)
    paths = table.save(tmp_path / "mini", "toy")
    assert [p.name for p in paths] == ["toy.csv", "toy.md", "toy.tex", "toy.html"] and sorted(p.name for p in (tmp_path / "mini").iterdir()) == ["toy.csv", "toy.html", "toy.md", "toy.tex"]
    assert paths[1].read_text(encoding="utf-8") == table.to_md() == str(table) == table._repr_markdown_() and table._repr_html_() == table.to_html()
    first = [p.read_bytes() for p in paths]
    results_table(long).save(tmp_path / "mini", "toy")
    assert [p.read_bytes() for p in paths] == first


def test_many_systems_get_two_letters():
    assert [_letter(i) for i in (0, 25, 26, 27, 52)] == ["a", "z", "aa", "ab", "ba"]
    many = results_table(long_frame(**{f"s{i}": {"RR": [float(i > 0)] * 40} for i in range(28)}), correction="none")
    assert many.cells["s27", "RR"].beats == "a" and many.letters["s27"] == "ab"
    few = Table(("x",), ("RR",), {("x", "RR"): Cell(0.5, beats="a,ab")}, {"x": "b", "y": "ab"}, 1)
    assert "<sup>a,ab</sup>" in few.to_md() and few.frame()["beats"].item() == "y"


def test_empty_table():
    table = Table((), ("R@5",), {})
    assert table.to_md().startswith("| system | R@5 |") and "<tbody>" not in table.to_html() and "caption" not in table.to_tex()
    assert STYLES["md"].escape("a\nb") == "a b"


def test_what_a_collection_adds():
    docs = ["a", "b", "c"]
    labels = {q: {docs[i % 3]: 1} for i, q in enumerate(IDS)}
    protocol = Protocol(name="toy", unit="passage", counted="full_document", aggregate="max", gold_rule="x", measures=("R@1", "R@3"), asked=7, pool=5, ties="hash", mode="trec_eval")
    scope = {q: docs[:2] + ["c"] for q in IDS} | {IDS[0]: ["a"]}
    toy = Collection("toy", corpus_frame(docs, ["x"] * 3), queries_frame(IDS, ["?"] * 40), Qrels.from_dict(labels), protocol, scope=scope)
    extra = structure_of(toy)
    assert extra["chance"].name == "chance" and extra["oracle"].mean("R@1") == 1.0
    assert list(extra["dashes"]) == [("*", "R@3")] and extra["remarks"] == ["R@1 is fixed by structure for 1 of 40 questions"]
    assert extra["facts"] == facts_of(toy) == {"asked": "7", "pool": "5", "corpus": f"toy (3 units, fingerprint {toy.fingerprint[:12]})", "unit": "passage → full_document", "mode": "trec_eval", "ties": "hash"}
    table = results_table(long_frame(a={"R@1": [1] * 40, "R@3": [1] * 40}), **extra)
    assert table.cells["a", "R@3"].value is None and "R@1 is fixed by structure for 1 of 40 questions" in table.to_md()


def test_what_latex_would_stumble_over_is_escaped():
    assert tex_escape("50% & $x_1^2 {a}~\\") == r"50\% \& \$x\_1\textasciicircum{}2 \{a\}\textasciitilde{}\textbackslash{}"
    assert tex_escape("α = λ ≤ Δτ – “so”") == r"$\alpha$ = $\lambda$ $\le$ $\Delta$$\tau$ -- ``so''", "Unicode spells lambda LAMDA, LaTeX does not"


def test_committed_tables_hold_only_what_pdflatex_knows():
    "Latin text with accents is known to it; whatever else a caption or a note uses must have been turned into a command."
    made = sorted((Path(__file__).parents[1] / "figures" / "mini").glob("*.tex"))
    strange = {path.name: sorted({c for c in path.read_text(encoding="utf-8") if ord(c) > 0x17F}) for path in made}
    assert len(made) > 25 and not {name: found for name, found in strange.items() if found}


def test_a_run_that_returned_too_little_is_not_hidden_behind_structure():
    "With three documents R@3 of every full order is 1; the system that returned one has .35, loses, and must be seen to lose."
    docs = ["a", "b", "c"]
    labels = {q: {docs[i % 3]: 1} for i, q in enumerate(IDS)}
    toy = Collection("toy", corpus_frame(docs, ["x"] * 3), queries_frame(IDS, ["?"] * 40), Qrels.from_dict(labels), Protocol(name="toy", unit="document", counted="document", gold_rule="x", measures=("R@3",), asked=3))
    little, extra = [float(i % 3 == 0) for i in range(40)], structure_of(toy)
    table = results_table(long_frame(full={"R@3": [1.0] * 40}, little={"R@3": little}), **extra)
    assert table.cells["little", "R@3"].value == 14 / 40 and table.cells["full", "R@3"].value == 1.0 and table.cells["full", "R@3"].beats == "b"
    assert table.cells["chance", "R@3"].value == table.cells["oracle", "R@3"].value == 1.0 and not table.notes
    assert table.remarks == ("R@3: every full order gives 1.0000; a lower value means that fewer documents were returned",)
    same = results_table(long_frame(full={"R@3": [1.0] * 40}, also={"R@3": [1.0] * 40}), **extra)
    assert same.cells["also", "R@3"].value is None and same.notes == ("R@3 is fixed by structure: every order of the candidates gives 1.0000",) and not same.remarks
    own = results_table(long_frame(full={"R@3": [1.0] * 40}, little={"R@3": little}), **{**extra, "dashes": {("full", "R@3"): "by hand"}})
    assert own.cells["full", "R@3"].value is None, "a dash for one system is its author's, not the structure's"


def test_a_long_latex_table_breaks_across_pages_and_long_texts_into_lines():
    "A `table` float cannot be longer than a page; an `l` column cannot be wider than its longest cell."
    words = "a finding of many words " * 4
    short = tex_table(["what", "n"], [[words, "1"]] * 3, [False, True], "Two `k` values", "audit", ["as printed"])
    assert r"\begin{table}" in short and r"p{0.50\linewidth}r}" in short and r"\resizebox{\ifdim\width>\linewidth" in short and r"\caption{Two \texttt{k} values}" in short and r"\label{tab:audit}" in short
    long = tex_table(["what", "n"], [["x", "1"]] * (LONG_TABLE + 1), [False, True], "c", "long")
    assert r"\begin{longtable}{lr}" in long and r"\begin{table}" not in long and long.index(r"\caption{c}\label{tab:long} \\") < long.index(r"\endfirsthead") < long.index(r"\endhead")
    assert long.count("x & 1") == LONG_TABLE + 1, "the head is repeated, the rows are not"


def test_signs_that_the_default_font_of_latex_lacks():
    assert tex_escape("a<b>c|d") == "a$<$b$>$c$|$d"
    assert tex_text("`a_b` & c") == r"\texttt{a\_b} \& c"


def test_a_long_latex_table_of_many_columns_is_set_smaller():
    "It cannot be scaled as a whole; its text gives way to the numbers, down to a fifth of the line."
    row = ["words " * 10, *["1234.5678"] * 12]
    tex = tex_table([f"head {n}" for n in range(13)], [row] * (LONG_TABLE + 1), [False] + [True] * 12)
    assert r"\scriptsize" in tex and r"p{0.20\linewidth}" in tex and r"\resizebox" not in tex

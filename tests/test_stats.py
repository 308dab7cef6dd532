"""Statistics: against scipy, statsmodels and full enumeration."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from crumb_nb.records import DataError
from crumb_nb.stats import CORRECTIONS, TESTS, Interval, align, beaten, bonferroni, bootstrap_ci, compare, difference_plot, holm, mcnemar, minimal_detectable_difference, paired_randomization, paired_t, questions_needed, wilcoxon, wins_ties_losses


def scores(values) -> pd.Series:
    return pd.Series([float(v) for v in values], index=[f"q{i}" for i in range(len(values))])


@pytest.fixture()
def three():
    rng = np.random.default_rng(5)
    base = rng.random(300)
    return {"a": scores(np.clip(base + 0.1, 0, 1)), "b": scores(np.clip(base + rng.normal(0, 0.05, 300), 0, 1)), "c": scores(base)}


# ---- pairs --------------------------------------------------------------------------------------------------------------------------------------


def test_align_orders_by_id_and_names_what_is_missing():
    a, b = scores([1, 0, 1]), scores([0, 1, 1])
    assert align({"a": a, "b": b[::-1]})["b"].tolist() == [0, 1, 1]
    with pytest.raises(DataError, match="'q2'.*'a' was scored on this question and 'b' was not"):
        align({"a": a, "b": b[:2]})
    with pytest.raises(DataError, match="'b' was scored on this question and 'a' was not"):
        align({"a": a[:2], "b": b})
    with pytest.raises(DataError, match="occurs twice"):
        align({"a": pd.concat([a, a])})
    with pytest.raises(DataError, match="not a finite number"):
        align({"a": scores([1, np.nan])})


# ---- intervals ------------------------------------------------------------------------------------------------------------------------------------


def test_bootstrap_is_seeded_and_near_the_normal_interval():
    values = scores(np.random.default_rng(0).normal(0.5, 0.2, 500))
    one = bootstrap_ci(values)
    half = 1.96 * values.std() / np.sqrt(500)
    assert one == bootstrap_ci(values) and one != bootstrap_ci(values, seed=1)
    assert one.low == pytest.approx(values.mean() - half, abs=0.002) and one.high == pytest.approx(values.mean() + half, abs=0.002)
    assert (one.n, one.level, one.resamples, one.seed, one.method) == (500, 0.95, 10_000, 0, "percentile")
    assert bootstrap_ci(values, level=0.5).low > one.low
    assert str(Interval(0.5, 0.25, 0.75)) == "0.5000 [0.2500, 0.7500]"


def test_bca_agrees_with_scipy():
    values = np.random.default_rng(3).exponential(1.0, 60)
    ours = bootstrap_ci(values, method="bca", resamples=20_000)
    theirs = scipy.stats.bootstrap((values,), np.mean, method="BCa", n_resamples=20_000, rng=np.random.default_rng(1)).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.02) and ours.high == pytest.approx(theirs.high, abs=0.02)
    assert bootstrap_ci([1.0, 1.0], method="bca").high == 1.0  # nothing varies


def test_bootstrap_refusals():
    for arguments in (dict(values=[]), dict(values=[np.inf]), dict(values=[1.0], method="basic")):
        with pytest.raises(DataError):
            bootstrap_ci(**arguments)


def test_ten_thousand_resamples_do_not_depend_on_the_block_size():
    "Blocks of resamples are an implementation matter: more questions than one block holds still give one interval per seed."
    many = scores(np.random.default_rng(0).integers(0, 2, 3000))
    assert bootstrap_ci(many, resamples=1500) == bootstrap_ci(many, resamples=1500)
    assert abs(bootstrap_ci(many, resamples=1500).low - many.mean()) < 0.03


# ---- tests ------------------------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=9))
def test_randomization_equals_full_enumeration(differences):
    a, b = scores(differences), scores([0] * len(differences))
    signs = np.array(list(itertools.product([1, -1], repeat=len(differences))))
    sums = np.abs(signs @ np.array(differences))
    assert paired_randomization(a, b) == pytest.approx(np.mean(sums >= abs(sum(differences)) - 1e-9))


def test_sampled_randomization_agrees_with_scipy(three):
    theirs = scipy.stats.permutation_test((three["a"].to_numpy()[:40], three["b"].to_numpy()[:40] + 0.085), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", n_resamples=20_000, vectorized=True, rng=np.random.default_rng(0)).pvalue
    ours = paired_randomization(three["a"][:40], three["b"][:40] + 0.085, resamples=20_000)
    assert ours == pytest.approx(theirs, abs=0.02)
    assert paired_randomization(three["a"], three["b"], resamples=999) == 1 / 1000  # never zero


@pytest.mark.filterwarnings("error")
def test_any_number_of_questions_may_differ():
    "2.0 ** 1024 is more than a float holds (an error or a warning, by numpy's version). With 5,000 wins of 5,000 no random flip is as extreme: p = 1 / (resamples + 1)."
    assert paired_randomization(scores([1] * 5000), scores([0] * 5000), resamples=99) == 1 / 100
    for n, resamples in ((3, 8), (3, 9), (10, 1024)):  # 2^n ≤ resamples: all patterns, of which two are as extreme
        assert paired_randomization(scores([1] * n), scores([0] * n), resamples=resamples) == 2 / 2**n
    assert paired_randomization(scores([1] * 3), scores([0] * 3), resamples=7) != 2 / 2**3, "drawn: a whole number of eighths only by luck"


def test_rounding_noise_is_no_difference():
    "0.1 + 0.2 against 0.3 on every question: sums that are equal but for the last bit count as equal."
    a, b = scores([0.1 + 0.2] * 3 + [0.0] * 3), scores([0.3] * 3 + [0.1] * 3)
    assert paired_randomization(a, b) == pytest.approx(2 / 2**3, abs=0.1)


def test_t_and_wilcoxon_agree_with_scipy(three):
    assert paired_t(three["a"], three["b"]) == pytest.approx(scipy.stats.ttest_rel(three["a"], three["b"]).pvalue)
    assert wilcoxon(three["a"], three["b"]) == pytest.approx(scipy.stats.wilcoxon(three["a"], three["b"]).pvalue)
    assert paired_t(scores([1]), scores([0])) == 1.0


def test_mcnemar_agrees_with_statsmodels():
    from statsmodels.stats.contingency_tables import mcnemar as reference

    rng = np.random.default_rng(2)
    a, b = scores(rng.integers(0, 2, 80)), scores(rng.integers(0, 2, 80))
    table = pd.crosstab(a, b).to_numpy()
    assert mcnemar(a, b) == pytest.approx(reference(table, exact=True).pvalue)
    with pytest.raises(DataError, match="needs hits"):
        mcnemar(a / 2, b)


def test_no_difference_is_never_significant():
    a = scores([1, 0, 1, 0])
    assert [test(a, a) for test in TESTS.values()] == [1.0] * 4
    assert wins_ties_losses(a, a + 1e-12) == (0, 4, 0)


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_agree_with_statsmodels(p):
    from statsmodels.stats.multitest import multipletests

    assert np.allclose(holm(p), multipletests(p, method="holm")[1])
    assert np.allclose(bonferroni(p), multipletests(p, method="bonferroni")[1])
    assert np.allclose(CORRECTIONS["none"](p), p)


# ---- power ------------------------------------------------------------------------------------------------------------------------------------------


def test_detectable_difference_has_its_power():
    "Simulated: a true difference of exactly that size is found in about 80 % of samples."
    n, deviation = 200, 0.4
    difference = minimal_detectable_difference(deviation, n)
    samples = np.random.default_rng(0).normal(difference, deviation, (2000, n))
    found = np.abs(samples.mean(1) / (samples.std(1, ddof=1) / np.sqrt(n))) > 1.96
    assert abs(found.mean() - 0.8) < 0.03
    assert questions_needed(deviation, difference) in (n, n + 1)
    assert minimal_detectable_difference(deviation, n, alpha=0.01) > difference


# ---- comparisons --------------------------------------------------------------------------------------------------------------------------------------


def test_compare_all_pairs_and_baseline(three):
    table = compare(three)
    assert list(zip(table["a"], table["b"])) == [("a", "b"), ("a", "c"), ("b", "c")]
    row = table.iloc[1]
    assert row["difference"] == pytest.approx(row["mean_a"] - row["mean_b"]) and row["low"] <= row["difference"] <= row["high"]
    assert row["wins"] + row["ties"] + row["losses"] == row["n"] == 300
    assert table["p_adjusted"].tolist() == holm(table["p"]).tolist()
    assert table.loc[0, "p"] == paired_randomization(three["a"], three["b"])
    against = compare(three, baseline="c", test="t", correction="none")
    assert list(against["a"]) == ["a", "b"] and against["p"].equals(against["p_adjusted"])
    assert beaten(table)["a"] == ["b", "c"] and beaten(against)["c"] == []


def test_the_loser_may_be_named_first():
    low, high = scores([0] * 30), scores([1] * 30)
    assert beaten(compare({"low": low, "high": high})) == {"low": [], "high": ["low"]}


def test_compare_refusals(three):
    for arguments, message in [
        (dict(test="z"), "unknown value 'z'"),
        (dict(correction="fdr"), "unknown value 'fdr'"),
        (dict(baseline="x"), "not among the systems"),
    ]:
        with pytest.raises(DataError, match=message):
            compare(three, **arguments)
    with pytest.raises(DataError, match="two systems"):
        compare({"a": three["a"]})
    with pytest.raises(DataError, match="no question"):
        compare({"a": three["a"][:0], "b": three["b"][:0]})


def test_one_question_is_not_enough_to_know_a_spread():
    table = compare({"a": scores([1]), "b": scores([0])})
    assert table.loc[0, "p"] == 1.0 and np.isnan(table.loc[0, "detectable"])


def test_difference_plot():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    out = difference_plot(scores([1, 0, 1]), scores([0, 0, 1]), ("x", "y"), "RR", axes)
    assert out is axes and out.get_ylabel() == "RR: x − y" and "1 wins, 2 ties, 0 losses" in out.get_xlabel()
    assert difference_plot(scores([]), scores([])).get_ylabel() == "value: a − b"

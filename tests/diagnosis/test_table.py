from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from populations import answers
from scipy import stats

from gp_eval.diagnosis.table import Table, agreement_p_value, reliability


def gappy(n_items: int = 12, n_models: int = 6, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(n_items, n_models))
    scores[generator.random(scores.shape) < 0.25] = np.nan
    return scores


def test_levels_are_the_least_squares_fit_of_models_and_items() -> None:
    scores = gappy()
    n_items, n_models = scores.shape
    rows, values = [], []
    for i, k in zip(*np.nonzero(~np.isnan(scores)), strict=True):
        row = np.zeros(n_models + n_items)
        row[[k, n_models + i]] = 1.0
        rows.append(row)
        values.append(scores[i, k])
    fit = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    expected = fit[:n_models] + fit[n_models:].mean()
    # The fit is iterated, to 1e-12 a round.
    np.testing.assert_allclose(Table(scores).levels, expected, rtol=1e-8)


def test_levels_without_gaps_are_mean_scores() -> None:
    scores = np.random.default_rng(0).normal(size=(9, 4))
    np.testing.assert_allclose(Table(scores).levels, scores.mean(0), rtol=1e-10)


def test_item_rest_correlations_agree_with_pandas() -> None:
    scores = answers(60, 8, seed=1)
    frame = pd.DataFrame(scores)
    found = Table(scores).item_rest(np.arange(8)).r
    for k in range(8):
        rest = frame.drop(columns=k).mean(axis=1)
        assert found[k] == pytest.approx(frame[k].corr(rest), rel=1e-10)


def test_the_rest_of_some_models_leaves_out_the_model_itself_and_all_others() -> None:
    scores = gappy()
    table = Table(scores)
    rest = table.rest(np.array([0, 2, 3]))
    for k in range(6):
        others = [j for j in (0, 2, 3) if j != k]
        expected = []
        for i in range(12):
            there = [scores[i, j] - table.levels[j] for j in others]
            there = [value for value in there if not np.isnan(value)]
            expected.append(np.mean(there) if there else np.nan)
        np.testing.assert_allclose(rest[:, k], expected, rtol=1e-10)


def test_reliability_is_cronbachs_alpha_of_the_references() -> None:
    scores = answers(80, 7, seed=2)
    total = scores.sum(1).var(ddof=1)
    alpha = 7 / 6 * (1 - scores.var(0, ddof=1).sum() / total)
    assert reliability(Table(scores)) == pytest.approx(alpha, rel=1e-10)


def test_reliability_with_gaps_is_near_that_without() -> None:
    scores = answers(2000, 20, seed=0)
    full = reliability(Table(scores))
    scores[np.random.default_rng(0).random(scores.shape) < 0.1] = np.nan
    assert full - 0.05 < reliability(Table(scores)) < full  # of 18 models, not of 20


@pytest.mark.parametrize("shape", [(5, 1), (1, 5)])
def test_one_model_or_one_item_has_no_reliability(shape: tuple[int, int]) -> None:
    scores = np.random.default_rng(0).normal(size=shape)
    assert np.isnan(reliability(Table(scores)))
    assert np.isnan(agreement_p_value(Table(scores)))


def test_the_agreement_test_has_the_moments_of_all_orders() -> None:
    scores = np.random.default_rng(5).exponential(size=(4, 3))
    u = scores - scores.mean(0)
    drawn = []
    for second in permutations(range(4)):
        for third in permutations(range(4)):
            a, b, c = u[:, 0], u[list(second), 1], u[list(third), 2]
            drawn.append(a @ b + a @ c + b @ c)
    drawn = np.array(drawn)
    assert drawn.mean() == pytest.approx(0.0, abs=1e-12)
    a, b, c = u.T
    z = (a @ b + a @ c + b @ c) / drawn.std()
    skew = (drawn**3).mean() / drawn.std() ** 3
    expected = stats.pearson3.sf(z, skew)
    assert agreement_p_value(Table(scores)) == pytest.approx(expected, rel=1e-10)


def test_the_agreement_of_two_models_is_the_test_of_their_correlation() -> None:
    scores = answers(50, 2, seed=0)
    table = Table(scores)
    one = table.item_rest(np.arange(2)).high
    assert agreement_p_value(table) == pytest.approx(one[0], rel=1e-10)


def test_the_agreement_test_is_near_friedmans_for_many_models() -> None:
    scores = np.random.default_rng(0).normal(size=(30, 40)).argsort(0).argsort(0)
    scores = scores + 0.01 * np.arange(30)[:, None] * 20
    p = stats.friedmanchisquare(*scores).pvalue
    # Friedman's statistic is the sum of all pairs, its chi-square an approximation.
    ranks = stats.rankdata(scores, axis=0)
    assert agreement_p_value(Table(ranks)) == pytest.approx(p, rel=0.2)


def test_false_alarms_of_the_agreement_test_are_as_many_as_its_level() -> None:
    generator = np.random.default_rng(0)
    p = [
        agreement_p_value(Table((generator.random((30, 5)) < 0.3).astype(float)))
        for _ in range(2000)
    ]
    for level in (0.01, 0.05, 0.2):
        error = np.sqrt(level * (1 - level) / 2000)
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=4 * error)

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from gp_eval.diagnosis.permutation import (
    below,
    holm,
    permutation_correlations,
    z_quantile,
)


def skewed(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=n)


def test_the_tail_has_the_moments_of_all_orders() -> None:
    x, y = skewed(7, 0), skewed(7, 1)
    drawn = np.array([np.corrcoef(order, y)[0, 1] for order in permutations(x)])
    assert drawn.mean() == pytest.approx(0.0, abs=1e-12)
    z = stats.pearsonr(x, y).statistic / drawn.std()
    skew = (drawn**3).mean() / drawn.std() ** 3
    found = permutation_correlations(x[:, None], y[:, None])
    assert found.low[0] == pytest.approx(stats.pearson3.cdf(z, skew), rel=1e-10)
    assert found.high[0] == pytest.approx(stats.pearson3.sf(z, skew), rel=1e-10)


def test_the_tail_is_near_that_of_drawn_orders_where_the_normal_one_is_not() -> None:
    generator = np.random.default_rng(0)
    x, y = np.zeros(80), skewed(80, 2) ** 2
    x[np.argsort(y)[-3:]] = 1.0
    x[np.argmax(y)] = 0.0
    found = permutation_correlations(x[:, None], y[:, None])
    drawn = np.array(
        [np.corrcoef(generator.permutation(x), y)[0, 1] for _ in range(20_000)]
    )
    share = (drawn >= found.r[0] - 1e-12).mean()
    normal = stats.norm.sf(found.r[0] * np.sqrt(79))
    # A Pearson III tail is an approximation, and so are 20,000 draws.
    assert found.high[0] == pytest.approx(share, rel=0.35)
    assert abs(np.log(normal / share)) > abs(np.log(found.high[0] / share))


def test_correlations_agree_with_scipy_over_what_both_columns_have() -> None:
    generator = np.random.default_rng(3)
    x, y = generator.normal(size=(2, 30, 6))
    x[generator.random(x.shape) < 0.2] = np.nan
    y[generator.random(y.shape) < 0.2] = np.nan
    found = permutation_correlations(x, y)
    for k in range(6):
        both = ~np.isnan(x[:, k]) & ~np.isnan(y[:, k])
        u, v = x[both, k], y[both, k]
        assert found.n[k] == both.sum()
        assert found.r[k] == pytest.approx(stats.pearsonr(u, v).statistic, rel=1e-10)
        most = stats.pearsonr(np.sort(u), np.sort(v)).statistic
        assert found.attainable[k] == pytest.approx(most, rel=1e-10)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3])
def test_a_constant_or_too_short_column_has_no_correlation(value: float) -> None:
    x = np.full((9, 2), value)
    x[:, 1] = np.nan
    x[:2, 1] = [0.0, 1.0]
    found = permutation_correlations(x, np.random.default_rng(0).normal(size=(9, 2)))
    for values in (found.r, found.low, found.high, found.attainable):
        assert np.isnan(values).all()


def test_the_sum_of_both_tails_is_one() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 40, 50))
    found = permutation_correlations(x, y)
    np.testing.assert_allclose(found.low + found.high, 1.0, rtol=1e-10)


def test_holm_is_the_running_maximum_of_adjusted_probabilities() -> None:
    generator = np.random.default_rng(0)
    for _ in range(50):
        p = generator.random(12) ** 6
        order = np.argsort(p)
        adjusted = np.maximum.accumulate((12 - np.arange(12)) * p[order])
        expected = np.zeros(12, dtype=bool)
        expected[order] = adjusted <= 0.05
        np.testing.assert_array_equal(holm(p, 0.05), expected)


def test_holm_does_not_count_what_was_not_tested() -> None:
    p = np.array([np.nan, 0.02, np.nan, 0.04])
    np.testing.assert_array_equal(holm(p, 0.05), [False, True, False, True])
    assert not holm(np.array([]), 0.05).any()


def test_below_is_a_difference_on_fishers_scale_in_standard_errors() -> None:
    r, expected, n = 0.1, 0.5, 28
    gap = 0.5 * np.log(1.5 / 0.5) - 0.5 * np.log(1.1 / 0.9)
    assert below(r, expected, n, gap * 5.0 - 1e-9)
    assert not below(r, expected, n, gap * 5.0 + 1e-9)
    assert not below(0.9, 0.5, 28, 1.0)
    assert not below(np.nan, 0.5, 28, 1.0)
    assert not below(-0.9, 0.9, 3, 1.0)


def test_a_shared_level_is_bonferronis() -> None:
    assert z_quantile(0.01) == pytest.approx(2.3263478740408408, rel=1e-10)
    assert z_quantile(0.01, 5) == pytest.approx(z_quantile(0.002), rel=1e-10)

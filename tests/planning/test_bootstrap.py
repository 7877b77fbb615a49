from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from gp_eval.planning.bootstrap import estimate, resampled, wilson


def test_resamples_draw_whole_targets() -> None:
    targets = ["a", "b", "a", "c", "b", "a"]
    weights = resampled(targets, seed=1, draws=200)
    assert weights.shape == (200, 6)
    np.testing.assert_array_equal(weights[:, 0], weights[:, 2])
    np.testing.assert_array_equal(weights[:, 0], weights[:, 5])
    np.testing.assert_array_equal(weights[:, 1], weights[:, 4])
    np.testing.assert_array_equal(weights[:, [0, 1, 3]].sum(-1), 3)
    np.testing.assert_array_equal(weights, resampled(targets, seed=1, draws=200))


def test_an_estimate_is_the_root_of_resampled_means() -> None:
    values = np.array([1.0, 4.0, 2.0, 9.0])
    weights = resampled(["a", "b", "a", "c"], seed=0, draws=50)
    roots = []
    for row in weights:
        copies = [v for v, w in zip(values, row, strict=True) for _ in range(int(w))]
        roots.append(np.sqrt(np.mean(copies)))
    found = estimate(values, weights, np.sqrt)
    assert found.value == pytest.approx(2.0, rel=1e-10)
    assert found.low == pytest.approx(np.quantile(roots, 0.025), rel=1e-10)
    assert found.high == pytest.approx(np.quantile(roots, 0.975), rel=1e-10)


def test_the_interval_of_a_mean_is_about_that_of_the_normal() -> None:
    values = np.random.default_rng(0).normal(size=400)
    weights = resampled([str(i) for i in range(400)], seed=0)
    found = estimate(values, weights)
    wanted = 2 * 1.96 * values.std() / 20
    assert found.high - found.low == pytest.approx(wanted, rel=0.1)  # 1000 draws


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (19, 20), (33, 60)])
def test_shares_have_wilsons_interval(hits: int, n: int) -> None:
    found = wilson(hits / n, n)
    wanted = binomtest(hits, n).proportion_ci(method="wilson")
    assert found.value == hits / n
    assert found.low == pytest.approx(wanted.low, rel=1e-10, abs=1e-12)
    assert found.high == pytest.approx(wanted.high, rel=1e-10)

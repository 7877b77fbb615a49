from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from gp_eval.calibration import Inflation, fit_inflation
from gp_eval.calibration.inflation import without_inflation

N = 200
SHARES = (0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.75, 0.9)


def errors(n_targets: int, n_max: int, *, scale: float = 1.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (n_targets, n_max)
    z = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    return z.square()


def literal_factors(squared: list[list[float]], n_items: int) -> list[float]:
    """The docstring of ``fit_inflation``, number by number."""
    edges = [math.sqrt(a * b) for a, b in pairwise(SHARES)]
    logs = []
    for j in range(len(SHARES)):
        low = -1.0 if j == 0 else edges[j - 1]
        high = 2.0 if j == len(SHARES) - 1 else edges[j]
        total = 0.0
        for row in squared:
            inside = [
                z for n, z in enumerate(row, start=1) if low < n / n_items <= high
            ]
            total += sum(inside) / len(inside)
        logs.append(math.log((4.0 * 1.5**2 + total) / (4.0 + len(squared))))
    quantile = stats.t.ppf(0.975, 4 + len(squared)) / stats.norm.ppf(0.975)
    factors = []
    for j, here in enumerate(logs):
        before, after = logs[max(j - 1, 0)], logs[min(j + 1, len(logs) - 1)]
        smooth = before / 4 + here / 2 + after / 4
        factors.append(max(1.0, quantile * math.exp(smooth / 2)))
    return factors


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_factors_are_those_of_the_literal_formula(scale: float) -> None:
    squared = errors(7, N - 1, scale=scale)
    found = fit_inflation(squared, n_items=N)
    assert found.shares == SHARES
    expected = literal_factors(squared.tolist(), N)
    assert found.factors == pytest.approx(expected, rel=1e-10)


def test_with_many_targets_the_factor_is_the_true_ratio_of_error_and_belief() -> None:
    found = fit_inflation(errors(4000, N - 1, scale=2.5), n_items=N)
    # Sampling: 4000 squared normal errors a share, or means of more.
    assert found.factors == pytest.approx([2.5] * len(SHARES), rel=0.05)


def test_new_errors_of_the_same_size_are_covered_after_ten_targets() -> None:
    z = np.random.default_rng(1).normal(scale=2.0, size=(400, 11))
    covered = []
    for row in z:
        # One error a target for all n: runs of a target are alike.
        squared = torch.tensor(row[:10]).square().unsqueeze(-1).expand(10, N - 1)
        factor = fit_inflation(squared, n_items=N).at(0.3)
        covered.append(abs(row[10]) < factor * stats.norm.ppf(0.975))
    # 0.95 within three standard errors of 400 draws, from both sides.
    assert 0.917 < np.mean(covered) < 0.983


def test_errors_smaller_than_believed_do_not_make_intervals_narrower() -> None:
    found = fit_inflation(errors(50, N - 1, scale=0.1), n_items=N)
    assert found.factors == (1.0,) * len(SHARES)


def test_larger_errors_of_any_target_never_give_a_smaller_factor() -> None:
    squared = errors(5, N - 1, scale=2.0)
    before = fit_inflation(squared, n_items=N).factors
    squared[3] *= 4.0
    after = fit_inflation(squared, n_items=N).factors
    assert all(a > b for a, b in zip(after, before, strict=True))


def test_runs_that_were_cut_have_factors_up_to_the_cut_only() -> None:
    found = fit_inflation(errors(5, 30), n_items=N)
    assert found.shares == SHARES[: len(found.shares)]
    assert 0.1 <= found.shares[-1] < 0.33
    assert found.at(0.9) == found.factors[-1]


@pytest.mark.parametrize("shape", [(0, 0), (0, 50), (3, 0)])
def test_without_errors_the_prior_factor_is_left(shape: tuple[int, int]) -> None:
    found = fit_inflation(torch.zeros(shape, dtype=torch.float64), n_items=N)
    quantile = stats.t.ppf(0.975, 4 + shape[0]) / stats.norm.ppf(0.975)
    shrunk = 1.5 * math.sqrt(4.0 / (4.0 + shape[0]))
    assert found.factors[0] == pytest.approx(max(1.0, quantile * shrunk), rel=1e-10)


def test_between_shares_the_factor_is_linear_in_the_logarithm() -> None:
    inflation = Inflation((0.1, 0.4), (1.0, 3.0))
    assert inflation.at(0.2) == pytest.approx(2.0, rel=1e-10)
    assert inflation.at(0.0) == inflation.at(0.05) == 1.0
    assert inflation.at(0.95) == 3.0


def test_a_record_gives_back_the_same_inflation_and_leaves_the_rest() -> None:
    inflation = Inflation((0.1, 0.4), (1.0, 1.1 + 1e-16))
    record = {**inflation.record(), "raw_alpha": [0.3]}
    assert Inflation.from_record(record) == inflation
    assert without_inflation(record) == {"raw_alpha": [0.3]}
    assert Inflation.from_record({"raw_alpha": [0.3]}) is None


@pytest.mark.parametrize(
    ("shares", "factors", "message"),
    [
        ((), (), "as many shares as factors"),
        ((0.1,), (1.0, 1.2), "as many shares as factors"),
        ((0.2, 0.1), (1.0, 1.2), "ascending shares"),
        ((0.5, 1.0), (1.0, 1.2), "ascending shares"),
        ((0.5,), (0.9,), "factors >= 1"),
        ((0.5,), (math.nan,), "factors >= 1"),
        ((0.5,), (math.inf,), "factors >= 1"),
    ],
)
def test_what_cannot_be_an_inflation_is_refused(shares, factors, message) -> None:
    with pytest.raises(ValueError, match=message):
        Inflation(shares, factors)


def test_errors_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 200 items, got 200"):
        fit_inflation(errors(2, N), n_items=N)
    squared = errors(2, 5)
    squared[1, 2] = torch.inf
    with pytest.raises(ValueError, match="finite standardised errors"):
        fit_inflation(squared, n_items=N)


def test_runs_that_begin_late_have_factors_from_there_on() -> None:
    squared = errors(5, N - 1)
    whole = fit_inflation(squared, n_items=N)
    late = fit_inflation(squared[:, 79:], n_items=N, n_first=80)
    assert late.shares == SHARES[4:]
    # Beyond the neighbours of the first share nothing is different.
    assert late.factors[2:] == pytest.approx(whole.factors[6:], rel=1e-12)

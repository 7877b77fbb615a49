from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from gp_eval.comparison import (
    Comparison,
    compare,
    compare_independent,
    independent_variance,
)
from gp_eval.errors import DataError
from gp_eval.loop import Result

Z95 = 1.959963984540054


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def belief(
    n_models: int, seed: int = 0, *, spread: float = 0.02
) -> tuple[list[str], Tensor, Tensor]:
    """Names, means and a full covariance of strong positive correlations."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    root = 0.01 * normal(n_models, n_models) / math.sqrt(n_models)
    covariance = root @ root.T + 1e-4 + 2e-5 * torch.eye(n_models, dtype=torch.float64)
    names = [f"m{i}" for i in range(n_models)]
    return names, 0.6 + spread * normal(n_models), covariance


def result(target: str, mean: float, width: float, *, n_items: int = 40) -> Result:
    low, high = mean - width / 2, mean + width / 2
    return Result(target, mean, low, high, 5, n_items, None, [], [], [])


def test_differences_are_the_literal_formula() -> None:
    names, mean, covariance = belief(5)
    comparison = compare(names, mean, covariance)
    assert len(comparison.pairs) == 10
    for a, b in itertools.permutations(range(5), 2):
        pair = comparison.pair(names[a], names[b])
        d = float(mean[a]) - float(mean[b])
        v = float(covariance[a, a] + covariance[b, b] - covariance[a, b] * 2)
        s = math.sqrt(v)
        assert pair.difference == pytest.approx(d, rel=1e-10)
        assert pair.low == pytest.approx(d - Z95 * s, rel=1e-10)
        assert pair.high == pytest.approx(d + Z95 * s, rel=1e-10)
        p = 0.5 * (1.0 + math.erf(d / s / math.sqrt(2.0)))
        assert pair.probability == pytest.approx(p, rel=1e-10)


def test_differences_agree_with_a_contrast_matrix_and_scipy() -> None:
    """All pairs at once as ``D m`` and ``D S D'``, at another level."""
    names, mean, covariance = belief(6, seed=1)
    comparison = compare(names, mean, covariance, level=0.8)
    chosen = [(names.index(p.a), names.index(p.b)) for p in comparison.pairs]
    contrast = np.zeros((len(chosen), 6))
    for row, (a, b) in enumerate(chosen):
        contrast[row, a], contrast[row, b] = 1.0, -1.0
    d = contrast @ mean.numpy()
    s = np.sqrt(np.diag(contrast @ covariance.numpy() @ contrast.T))
    low, high = stats.norm.interval(0.8, loc=d, scale=s)
    np.testing.assert_allclose([p.low for p in comparison.pairs], low, rtol=1e-10)
    np.testing.assert_allclose([p.high for p in comparison.pairs], high, rtol=1e-10)
    better = stats.norm.sf(0.0, loc=d, scale=s)
    np.testing.assert_allclose(
        [p.probability for p in comparison.pairs], better, rtol=1e-10
    )


def test_ranking_is_the_literal_count() -> None:
    names, mean, covariance = belief(9, seed=2)
    comparison = compare(names, mean, covariance)
    spans = set()
    for ranked in comparison.ranking:
        i = names.index(ranked.name)
        better, worse, tied = 0, 0, set()
        for j in range(9):
            if j == i:
                continue
            d = float(mean[i] - mean[j])
            v = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
            half = Z95 * math.sqrt(v)
            if d + half < 0:
                better += 1
            elif d - half > 0:
                worse += 1
            else:
                tied.add(names[j])
        assert (ranked.best, ranked.worst) == (1 + better, 9 - worse)
        assert set(ranked.tied_with) == tied
        assert ranked.mean == float(mean[i])
        half = Z95 * math.sqrt(covariance[i, i])
        assert ranked.low == pytest.approx(float(mean[i]) - half, rel=1e-10)
        assert ranked.high == pytest.approx(float(mean[i]) + half, rel=1e-10)
        spans.add(ranked.worst - ranked.best)
    assert len(spans) > 1  # some tied with more models than others
    assert list(comparison.names) == [
        names[i] for i in sorted(range(9), key=lambda i: -float(mean[i]))
    ]


def test_probability_and_interval_agree_with_samples() -> None:
    """40,000 draws: shares have standard errors of at most 0.0025; four are allowed."""
    names, mean, covariance = belief(4, seed=3)
    comparison = compare(names, mean, covariance)
    draws = np.random.default_rng(0).multivariate_normal(
        mean.numpy(), covariance.numpy(), size=40_000
    )
    for pair in comparison.pairs:
        d = draws[:, names.index(pair.a)] - draws[:, names.index(pair.b)]
        assert (d > 0).mean() == pytest.approx(pair.probability, abs=0.01)
        covered = ((pair.low <= d) & (d <= pair.high)).mean()
        assert covered == pytest.approx(0.95, abs=4 * 0.0011)
    assert any(0.55 < pair.probability < 0.95 for pair in comparison.pairs)


@pytest.mark.parametrize("n_models", [1, 2, 3, 20])
def test_ranks_are_consistent(n_models: int) -> None:
    comparison = compare(*belief(n_models, seed=n_models))
    ranking = comparison.ranking
    assert len(comparison.pairs) == n_models * (n_models - 1) // 2
    for position, ranked in enumerate(ranking, start=1):
        # Whatever beats a model has a higher estimate, so its place is in its range.
        assert 1 <= ranked.best <= position <= ranked.worst <= n_models
        assert len(ranked.tied_with) == ranked.worst - ranked.best
    by_name = {ranked.name: ranked for ranked in ranking}
    for ranked in ranking:
        for other in ranked.tied_with:
            assert ranked.name in by_name[other].tied_with
    assert all(a.mean >= b.mean for a, b in itertools.pairwise(ranking))


def test_probabilities_of_both_directions_add_to_one() -> None:
    names, mean, covariance = belief(7, seed=4)
    comparison = compare(names, mean, covariance)
    matrix = comparison.probabilities()
    assert torch.equal(matrix + matrix.T, torch.ones_like(matrix))
    for i, j in itertools.permutations(range(7), 2):
        a, b = comparison.names[i], comparison.names[j]
        forth, back = comparison.pair(a, b), comparison.pair(b, a)
        assert float(matrix[i, j]) == forth.probability
        assert back.difference == -forth.difference
        assert (back.low, back.high) == (-forth.high, -forth.low)
        assert forth.tied == back.tied


def test_the_order_of_the_models_does_not_matter() -> None:
    names, mean, covariance = belief(6, seed=5)
    order = [3, 0, 5, 1, 4, 2]
    other = compare([names[i] for i in order], mean[order], covariance[order][:, order])
    assert other == compare(names, mean, covariance)


def test_dropping_a_model_changes_no_other_pair() -> None:
    names, mean, covariance = belief(5, seed=6)
    everything = compare(names, mean, covariance)
    fewer = compare(names[:4], mean[:4], covariance[:4, :4])
    assert all(everything.pair(pair.a, pair.b) == pair for pair in fewer.pairs)


def test_one_model_has_rank_one_and_no_pair() -> None:
    comparison = compare(["only"], tensor([0.5]), tensor([[0.01]]))
    (ranked,) = comparison.ranking
    assert (ranked.best, ranked.worst, ranked.ranks) == (1, 1, "1")
    assert ranked.tied_with == ()
    assert comparison.pairs == ()
    assert comparison.probabilities().tolist() == [[0.5]]


def exactly_tied(comparison: Comparison, a: str, b: str) -> bool:
    pair = comparison.pair(a, b)
    numbers = (pair.difference, pair.low, pair.high, pair.probability)
    return pair.tied and numbers == (0.0, 0.0, 0.0, 0.5)


def test_identical_models_are_exactly_tied() -> None:
    """One belief under two names: the covariance equals both variances."""
    _, mean, covariance = belief(2, seed=7)
    twice = [0, 0, 1]
    comparison = compare(
        ["one", "same", "other"], mean[twice], covariance[twice][:, twice]
    )
    assert exactly_tied(comparison, "one", "same")
    assert exactly_tied(comparison, "same", "one")
    assert not exactly_tied(comparison, "one", "other")


@pytest.mark.parametrize("rounding", [-3e-16, 3e-16])
def test_rounding_does_not_break_a_tie(rounding: float) -> None:
    v = 0.37
    covariance = tensor([[v, v * (1 + rounding)], [v * (1 + rounding), v]])
    assert covariance[0, 1] != v
    mean = tensor([0.1 + 0.2, 0.3])
    assert mean[0] != mean[1]
    assert exactly_tied(compare(["a", "b"], mean, covariance), "a", "b")


def test_certain_scores_are_ordered_with_certainty() -> None:
    comparison = compare(
        ["low", "high"], tensor([0.4, 0.4001]), tensor([[0.0] * 2] * 2)
    )
    pair = comparison.pair("high", "low")
    assert pair.probability == 1.0
    assert comparison.pair("low", "high").probability == 0.0
    assert pair.low == pair.high == pair.difference == pytest.approx(0.0001)
    assert [ranked.ranks for ranked in comparison.ranking] == ["1", "2"]


def test_a_certain_difference_of_uncertain_scores_is_certain() -> None:
    comparison = compare(["a", "b"], tensor([0.4, 0.5]), tensor([[0.01] * 2] * 2))
    assert comparison.pair("b", "a").probability == 1.0
    assert comparison.ranking[0].low < 0.4


def test_correlation_narrows_a_difference_and_independence_is_conservative() -> None:
    names, mean, covariance = belief(2, seed=8)
    joint = compare(names, mean, covariance).pairs[0]
    alone = compare(names, mean, covariance.diag().diag()).pairs[0]
    assert float(covariance[0, 1]) > 0
    assert alone.high - alone.low > joint.high - joint.low
    assert 0.5 < alone.probability < joint.probability


def test_independent_results_are_a_diagonal_covariance() -> None:
    results = [result("a", 0.5, 0.04), result("b", 0.53, 0.03), result("c", 0.7, 0.0)]
    comparison = compare_independent(results, level=0.9)
    variances = [(w / 2 / Z95) ** 2 for w in (0.04, 0.03, 0.0)]
    expected = compare(
        ["a", "b", "c"], tensor([0.5, 0.53, 0.7]), tensor(variances).diag(), level=0.9
    )
    for pair, other in zip(comparison.pairs, expected.pairs, strict=True):
        assert dataclasses.astuple(pair) == pytest.approx(dataclasses.astuple(other))
    width = math.hypot(0.04, 0.03) * stats.norm.ppf(0.95) / Z95
    pair = comparison.pair("b", "a")
    assert pair.high - pair.low == pytest.approx(width, rel=1e-10)
    assert independent_variance(results[2]) == 0.0


def test_results_of_other_benchmarks_or_of_one_target_are_refused() -> None:
    with pytest.raises(ValueError, match=r"same items, got N = \[40, 50\]"):
        compare_independent([result("a", 0.5, 0.1), result("b", 0.5, 0.1, n_items=50)])
    with pytest.raises(DataError, match="repeated: 'a'"):
        compare_independent([result("a", 0.5, 0.1)] * 2)


@pytest.mark.parametrize(
    ("mean", "covariance", "message"),
    [
        ([0.1, 0.2], [[1.0, 1.1], [1.1, 1.0]], r"'b' - 'a' would be -0\.2"),
        ([0.1, 0.2], [[1.0, 1.0 + 1e-11], [1.0 + 1e-11, 1.0]], "would be -"),
        ([0.1, 0.2], [[-1.0, 0.0], [0.0, 1.0]], "negative variance of 'a'"),
        ([0.1, 0.2], [[1.0, 0.1], [0.2, 1.0]], "symmetric matrix, off by 0.1"),
        ([0.1], [[1.0, 0.0], [0.0, 1.0]], r"mean: expected shape \(2,\)"),
        ([0.1, 0.2], [1.0, 1.0], r"covariance: expected shape \(2, 2\)"),
        ([0.1, math.nan], [[1.0, 0.0], [0.0, 1.0]], "mean: expected finite"),
        ([0.1, 0.2], [[1.0, 0.0], [0.0, math.inf]], "covariance: expected finite"),
    ],
)
def test_what_is_no_belief_is_refused(
    mean: list[float], covariance: list, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        compare(["a", "b"], tensor(mean), tensor(covariance))


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, math.nan])
def test_a_level_outside_zero_and_one_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="0 < level < 1"):
        compare(*belief(2), level=level)


def test_names_are_checked() -> None:
    _, mean, covariance = belief(2)
    with pytest.raises(DataError, match="repeated: 'a'"):
        compare(["a", "a"], mean, covariance)
    with pytest.raises(ValueError, match="at least one model"):
        compare([], tensor([]), tensor([[]]))
    with pytest.raises(ValueError, match="expected two of"):
        compare(["a", "b"], mean, covariance).pair("a", "c")

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from gp_eval.experiments.clusters import (
    Clusters,
    clustered_standard_error,
    coverage_standard_error,
    jackknife_standard_error,
    run_correlations,
)


def crossed(n_targets: int, n_seeds: int) -> Clusters:
    return Clusters.of(
        [t for _ in range(n_seeds) for t in "abcdefghijklmnop"[:n_targets]],
        [s for s in range(n_seeds) for _ in range(n_targets)],
    )


def effects(
    clusters: Clusters, target: float, seed: float, own: float, *, draw: int = 0
) -> Tensor:
    generator = torch.Generator().manual_seed(draw)

    def normal(n: int) -> Tensor:
        return torch.randn(n, generator=generator, dtype=torch.float64)

    return (
        target * normal(int(clusters.target.max()) + 1)[clusters.target]
        + seed * normal(int(clusters.seed.max()) + 1)[clusters.seed]
        + own * normal(len(clusters))
    )


@pytest.mark.parametrize("target", [0.0, 1.5])
def test_standard_error_by_its_literal_sums(target: float) -> None:
    clusters = crossed(4, 3).subset(torch.tensor([0, 1, 2, 3, 4, 6, 7, 9, 11]))
    values = effects(clusters, target, 1.5, 1.0, draw=2)
    mean, n_runs = float(values.mean()), len(clusters)

    def variance(labels: list[int]) -> float:
        groups = sorted(set(labels))
        total = 0.0
        for group in groups:
            inside = [
                float(v) - mean
                for v, g in zip(values, labels, strict=True)
                if g == group
            ]
            total += sum(inside) ** 2
        return total * len(groups) / (len(groups) - 1) / n_runs**2

    by_target = variance(clusters.target.tolist())
    by_seed = variance(clusters.seed.tolist())
    both = by_target + by_seed - variance(list(range(n_runs)))
    expected = math.sqrt(max(by_target, by_seed, both))
    assert (both > max(by_target, by_seed)) is (target > 0.0)
    got = clustered_standard_error(values, clusters)
    assert float(got) == pytest.approx(expected, rel=1e-10)
    columns = clustered_standard_error(torch.stack([values, 2 * values], -1), clusters)
    assert columns.tolist() == pytest.approx([expected, 2 * expected], rel=1e-10)


def test_of_one_seed_it_is_the_standard_error_of_a_mean() -> None:
    values = effects(crossed(8, 1), 1.0, 0.0, 0.0)
    got = float(clustered_standard_error(values, crossed(8, 1)))
    assert got == pytest.approx(float(values.std()) / math.sqrt(8), rel=1e-10)


def test_of_many_alike_seeds_it_is_that_of_the_means_of_targets() -> None:
    clusters = crossed(6, 5)
    values = effects(clusters, 1.0, 0.0, 0.0)
    means = pd.Series(values.numpy()).groupby(clusters.target.numpy()).mean()
    got = float(clustered_standard_error(values, clusters))
    assert got == pytest.approx(float(means.std()) / math.sqrt(6), rel=1e-10)


def test_it_is_the_spread_of_the_mean_over_repetitions() -> None:
    clusters = crossed(12, 12)
    repeats = [effects(clusters, 1.0, 0.7, 2.0, draw=i) for i in range(300)]
    values = torch.stack(repeats, -1)
    spread = float(values.mean(0).std())
    squared = clustered_standard_error(values, clusters).square().mean().sqrt()
    # 300 repetitions give the spread to within 4 %.
    assert float(squared) == pytest.approx(spread, rel=0.12)
    naive = float(values.std(0).mean()) / 12
    assert naive < 0.7 * spread


def test_one_run_alone_has_no_standard_error() -> None:
    one = crossed(1, 1)
    assert math.isnan(float(clustered_standard_error(torch.ones(1).double(), one)))
    assert math.isnan(float(coverage_standard_error(torch.ones(1).double(), one)))


def test_coverage_that_seems_certain_has_that_of_independent_runs() -> None:
    clusters = crossed(10, 10)
    share = 102 / 104
    expected = math.sqrt(share * (1 - share) / 104)
    all_covered = coverage_standard_error(torch.ones(100).double(), clusters)
    assert float(all_covered) == pytest.approx(expected, rel=1e-10)
    none = coverage_standard_error(torch.zeros(100).double(), clusters)
    assert float(none) == pytest.approx(expected, rel=1e-10)
    targets = (clusters.target < 5).double()
    clustered = float(clustered_standard_error(targets, clusters))
    assert float(coverage_standard_error(targets, clusters)) == clustered
    assert clustered > 3 * 0.05  # of five targets that are always covered


def test_the_jackknife_of_a_mean_is_nearly_the_clustered_error() -> None:
    clusters = crossed(7, 5)
    values = effects(clusters, 1.0, 0.5, 1.0)

    def mean(kept: Tensor) -> Tensor:
        return kept @ values / kept.sum(-1)

    # Of a mean over a balanced design both have the same sums, but for the factors
    # (G - 1) / G of the one and G / (G - 1) of the other with R / (R - m) squared.
    got = float(jackknife_standard_error(mean, clusters))
    assert got == pytest.approx(
        float(clustered_standard_error(values, clusters)), rel=1e-10
    )


def test_the_jackknife_by_leaving_out_one_at_a_time() -> None:
    clusters = crossed(4, 3)
    values = effects(clusters, 1.0, 1.0, 1.0).exp()

    def log_mean(kept: Tensor) -> Tensor:
        return (kept @ values / kept.sum(-1)).log()

    def variance(labels: np.ndarray) -> float:
        left = [
            math.log(values.numpy()[labels != g].mean()) for g in sorted(set(labels))
        ]
        n = len(left)
        return (n - 1) / n * sum((x - sum(left) / n) ** 2 for x in left)

    ways = [variance(clusters.target.numpy()), variance(clusters.seed.numpy())]
    both = sum(ways) - variance(np.arange(12))
    expected = math.sqrt(max(both, *ways))
    got = float(jackknife_standard_error(log_mean, clusters))
    assert got == pytest.approx(expected, rel=1e-10)


def test_correlations_are_those_of_the_analysis_of_variance() -> None:
    n_targets, n_seeds = 9, 7
    clusters = crossed(n_targets, n_seeds)
    values = effects(clusters, 1.0, 0.8, 1.2)
    table = values.reshape(n_seeds, n_targets).numpy()
    rows, columns = table.mean(1), table.mean(0)
    rest = table - rows[:, None] - columns + table.mean()
    within = (rest**2).sum() / (n_targets - 1) / (n_seeds - 1)
    target = (n_seeds * columns.var(ddof=1) - within) / n_seeds
    seed = (n_targets * rows.var(ddof=1) - within) / n_targets
    total = target + seed + within
    assert min(target, seed) > 0
    got = run_correlations(values, clusters)
    assert got == pytest.approx((target / total, seed / total), rel=1e-10)


def test_correlations_are_found_where_runs_are_missing() -> None:
    full = crossed(16, 40)
    generator = torch.Generator().manual_seed(1)
    kept = torch.rand(len(full), generator=generator) < 0.7
    some = full.subset(kept)
    found = torch.tensor(
        [
            run_correlations(effects(full, 1.0, 2.0, 1.5, draw=i)[kept], some)
            for i in range(40)
        ]
    )
    # Shares 1, 4 and 2.25 of 7.25; a ratio of few effects is a little off on average.
    assert found.mean(0).tolist() == pytest.approx([1 / 7.25, 4 / 7.25], abs=0.04)


def test_correlations_that_cannot_be_told_are_0() -> None:
    one_seed = crossed(6, 1)
    assert run_correlations(effects(one_seed, 1.0, 0.0, 1.0), one_seed) == (0.0, 0.0)
    clusters = crossed(3, 3)
    assert run_correlations(torch.full((9,), 0.5).double(), clusters) == (0.0, 0.0)
    same = effects(clusters, 1.0, 0.0, 0.0)
    assert run_correlations(same, clusters) == pytest.approx((1.0, 0.0), abs=1e-12)
    one_target = crossed(1, 6)
    assert run_correlations(effects(one_target, 0.0, 1.0, 1.0), one_target) == (0, 0)

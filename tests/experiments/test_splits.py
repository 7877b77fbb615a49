from __future__ import annotations

import pytest
import torch

from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.experiments import (
    chronological,
    extrapolation,
    high_correlation,
    interpolation,
)


def pool(n_models: int = 50) -> References:
    """Models whose mean scores rise with their number, in shuffled columns."""
    order = torch.randperm(n_models, generator=torch.Generator().manual_seed(0))
    means = order.double() / n_models
    generator = torch.Generator().manual_seed(1)
    noise = torch.rand(20, n_models, generator=generator, dtype=torch.float64)
    return References(
        (noise < means).double(),
        [f"q{i}" for i in range(20)],
        [f"m{int(k):02d}" for k in order],
    )


def test_interpolation_parts_all_models_at_random() -> None:
    split = interpolation(pool(), n_targets=10, target_seed=3)
    assert len(split.targets) == 10
    assert not set(split.targets) & set(split.pool)
    assert set(split.targets) | set(split.pool) == set(split.scores.models)
    assert interpolation(pool(), target_seed=3).targets == split.targets
    assert interpolation(pool(), target_seed=4).targets != split.targets


def test_extrapolation_takes_the_best_and_leaves_a_gap() -> None:
    split = extrapolation(pool(), n_targets=10)
    means = dict(zip(split.scores.models, split.scores.performance, strict=True))
    gap = set(split.scores.models) - set(split.targets) - set(split.pool)
    assert len(gap) == round(0.2 * len(means))
    assert min(means[m] for m in split.targets) >= max(means[m] for m in gap)
    assert min(means[m] for m in gap) >= max(means[m] for m in split.pool)


def test_models_that_solve_nothing_are_dropped() -> None:
    references = pool()
    dead = [
        m
        for m, p in zip(references.models, references.performance, strict=True)
        if p == 0
    ]
    assert dead
    assert not set(dead) & set(interpolation(references).scores.models)


def test_references_are_a_random_part_of_the_pool() -> None:
    split = interpolation(pool())
    half = split.references(0.5, seed=0)
    assert len(half.models) == round(0.5 * len(split.pool))
    assert set(half.models) <= set(split.pool)
    assert split.references(0.5, seed=0).models == half.models
    assert split.references(0.5, seed=1).models != half.models
    assert split.references(1.0, seed=5).models == split.pool
    assert len(split.references(0.001, seed=0).models) == 2


def test_target_scores_are_rows() -> None:
    split = interpolation(pool())
    table = split.target_scores()
    assert table.shape == (10, 20)
    expected = split.scores.frame[split.targets[4]].to_numpy()
    assert table[4].tolist() == expected.tolist()


def test_impossible_splits_are_errors() -> None:
    with pytest.raises(DataError, match="targets: expected fewer than"):
        interpolation(pool(), n_targets=60)
    with pytest.raises(DataError, match="leaves no references"):
        extrapolation(pool(), n_targets=10, gap=0.9)
    with pytest.raises(ValueError, match="fraction: expected"):
        interpolation(pool()).references(0.0, seed=0)


def mean_correlation(split) -> float:
    table = torch.corrcoef(split.target_scores())
    return float((table.sum() - table.trace()) / (table.numel() - len(table)))


def families() -> References:
    """Thirty unlike models, and six that copy one another in part."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(200, 36, generator=generator, dtype=torch.float64)
    scores[:, 30:] = 0.7 * scores[:, 30:31] + 0.3 * scores[:, 30:]
    order = torch.randperm(36, generator=generator)
    return References(
        scores[:, order], [f"q{i}" for i in range(200)], [f"m{int(k)}" for k in order]
    )


def test_high_correlation_finds_the_family() -> None:
    split = high_correlation(families(), n_targets=6)
    assert set(split.targets) == {f"m{k}" for k in range(30, 36)}
    assert len(split.pool) == 30
    low = interpolation(families(), n_targets=6)
    assert mean_correlation(split) > 0.8 > mean_correlation(low) + 0.5


def test_high_correlation_grows_from_every_model_and_takes_the_best_set() -> None:
    """A literal loop; the model listed twice is the closest pair and no family."""
    references = families()
    twice = references.models.index("m0")
    scores = torch.cat([references.scores, references.scores[:, [twice]]], dim=1)
    made = References(scores, references.items, [*references.models, "copy"])
    correlation = torch.corrcoef(scores.T)
    sets = []
    for start in range(scores.shape[1]):
        chosen = [start]
        while len(chosen) < 6:
            rest = [k for k in range(scores.shape[1]) if k not in chosen]
            means = [float(correlation[k, chosen].mean()) for k in rest]
            chosen.append(rest[means.index(max(means))])
        sets.append((float(correlation[chosen][:, chosen].mean()), sorted(chosen)))
    found = high_correlation(made, n_targets=6).targets
    assert sorted(made.models.index(name) for name in found) == max(sets)[1]
    assert "copy" not in found


def test_high_correlation_copes_with_constant_models() -> None:
    references = families()
    scores = references.scores.clone()
    scores[:, 3] = 1.0
    made = References(scores, references.items, references.models)
    split = high_correlation(made, n_targets=6)
    assert references.models[3] not in split.targets
    with pytest.raises(DataError, match="at least 2"):
        high_correlation(made, n_targets=1)


def test_chronological_takes_the_last_columns() -> None:
    references = families()
    split = chronological(references, n_targets=5)
    assert split.targets == references.models[-5:]
    assert split.pool == references.models[:-5]


@pytest.mark.parametrize("gap", [-0.1, 1.0, float("nan")])
def test_a_gap_outside_0_and_1_would_let_targets_be_references(gap: float) -> None:
    with pytest.raises(ValueError, match="gap: expected 0 <= gap < 1"):
        extrapolation(pool(), n_targets=10, gap=gap)

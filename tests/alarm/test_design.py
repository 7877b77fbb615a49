from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from gp_eval.alarm import ControlVariate, design_estimate
from gp_eval.data import References

Z2 = 1.959963984540054**2


def population(n_items: int = 9, *, weighted: bool = False):
    generator = np.random.default_rng(4)
    references = References(
        generator.random((n_items, 3)),
        [f"q{i}" for i in range(n_items)],
        ["a", "b", "c"],
        item_weights=generator.random(n_items) + 0.2 if weighted else None,
    )
    scores = references.scores.mean(1) ** 2
    scores = scores + 0.3 * torch.from_numpy(generator.random(n_items))
    return references, scores


def slow(
    scores: Tensor, references: References, certain: list[int], sampled: list[int]
) -> tuple[float, float]:
    """Sums over items, one at a time; numpy's least squares."""
    y = scores.tolist()
    x = references.scores.mean(1).tolist()
    w = references.item_weights.tolist()
    n_items, m = len(y), len(sampled)
    known = certain + sampled
    slope, cut = np.polyfit([x[i] for i in known], [y[i] for i in known], 1)
    rest = [i for i in range(n_items) if i not in certain]
    errors = [w[i] * (y[i] - cut - slope * x[i]) for i in sampled]
    mean = sum(w[i] * y[i] for i in certain)
    mean += sum(w[i] * (cut + slope * x[i]) for i in rest)
    mean += len(rest) * sum(errors) / m
    residuals = []
    for column in references.scores.T.numpy():
        line = np.polyfit(x, column, 1)
        residuals += ((column - np.polyval(line, x)) ** 2).tolist()
    squares = sum((e - sum(errors) / m) ** 2 for e in errors)
    squares += Z2 * np.mean(residuals) * np.mean([w[i] ** 2 for i in rest])
    variance = len(rest) ** 2 * squares / (m - 2) / m * (1 - m / len(rest))
    return mean, variance


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("certain", [[], [2], [7, 0, 4]])
def test_the_estimate_is_the_literal_formula(
    weighted: bool, certain: list[int]
) -> None:
    references, scores = population(weighted=weighted)
    sampled = [i for i in (8, 1, 5, 3) if i not in certain]
    seen = torch.full_like(scores, torch.nan)
    seen[certain + sampled] = scores[certain + sampled]
    found = design_estimate(
        seen.nan_to_num(1e6),  # what was not evaluated is not read
        ControlVariate.of(references),
        certain=torch.tensor(certain, dtype=torch.long),
        sampled=torch.tensor(sampled),
        weights=references.item_weights,
    )
    mean, variance = slow(scores, references, certain, sampled)
    assert float(found.mean) == pytest.approx(mean, rel=1e-10)
    assert float(found.variance) == pytest.approx(variance, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_target_on_the_line_is_known_from_any_sample(weighted: bool) -> None:
    references, _ = population(weighted=weighted)
    line = 0.2 + 0.6 * references.scores.mean(1)
    for sample in itertools.combinations(range(2, 9), 4):
        found = design_estimate(
            line,
            ControlVariate.of(references),
            certain=torch.tensor([0, 1]),
            sampled=torch.tensor(sample),
            weights=references.item_weights,
        )
        truth = float(references.item_weights @ line)
        assert float(found.mean) == pytest.approx(truth, rel=1e-10)
        assert float(found.variance) > 0.0


@pytest.mark.parametrize("weighted", [False, True])
def test_without_a_slope_it_is_unbiased_over_all_samples(weighted: bool) -> None:
    """Equal reference means: the fitted line is a constant, whose error has no bias."""
    references, scores = population(weighted=weighted)
    flat = References(
        torch.full_like(references.scores, 0.5),
        references.items,
        references.models,
        item_weights=references.item_weights if weighted else None,
    )
    weights, certain = flat.item_weights, [0, 6]
    rest = [i for i in range(9) if i not in certain]
    found = [
        design_estimate(
            scores,
            ControlVariate.of(flat),
            certain=torch.tensor(certain),
            sampled=torch.tensor(sample),
            weights=weights,
        )
        for sample in itertools.combinations(rest, 4)
    ]
    means = torch.stack([f.mean for f in found])
    truth = float(weights @ scores)
    # With weights the constant is fitted to the sample and enters times the
    # difference of mean weights: a bias of order 1 / m, which Hajek's has as well.
    tolerance = {"abs": 0.01} if weighted else {"rel": 1e-10}
    assert float(means.mean()) == pytest.approx(truth, **tolerance)
    if not weighted:
        # Divided by m - 2 and not m - 1, for a slope that is not there.
        variance = torch.stack([f.variance for f in found]).mean() * 2 / 3
        spread = means.var(correction=0)
        assert float(variance) == pytest.approx(float(spread), rel=1e-10)


def test_the_regression_has_a_small_bias_and_covers_over_all_samples() -> None:
    references, scores = population(14)
    control, weights = ControlVariate.of(references), references.item_weights
    found = [
        design_estimate(
            scores,
            control,
            certain=torch.tensor([1, 2]),
            sampled=torch.tensor(sample),
            weights=weights,
        )
        for sample in itertools.combinations([0, *range(3, 14)], 6)
    ]
    means = torch.stack([f.mean for f in found])
    truth, spread = float(weights @ scores), float(means.std())
    assert abs(float(means.mean()) - truth) < 0.15 * spread
    low, high = zip(*(f.interval() for f in found), strict=True)
    covered = (torch.stack(low) <= truth) & (truth <= torch.stack(high))
    assert float(covered.double().mean()) >= 0.93


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_certain", [0, 3, 8, 9])
def test_with_all_items_it_is_exactly_the_mean(weighted: bool, n_certain: int) -> None:
    references, scores = population(weighted=weighted)
    found = design_estimate(
        scores,
        ControlVariate.of(references),
        certain=torch.arange(n_certain),
        sampled=torch.arange(n_certain, 9),
        weights=references.item_weights,
    )
    assert float(found.mean) == pytest.approx(
        float(references.item_weights @ scores), rel=1e-14
    )
    assert float(found.variance) == 0.0


def test_equal_scores_are_not_certain() -> None:
    references, _ = population(60)
    found = design_estimate(
        torch.ones(60, dtype=torch.float64),
        ControlVariate.of(references),
        certain=torch.arange(5),
        sampled=torch.arange(5, 35),
        weights=references.item_weights,
    )
    assert float(found.mean) == pytest.approx(1.0, rel=1e-10)
    assert float(found.width()) > 0.01


def test_too_few_random_items_are_refused() -> None:
    references, scores = population()
    with pytest.raises(ValueError, match="sampled: expected at least 3"):
        design_estimate(
            scores,
            ControlVariate.of(references),
            certain=torch.tensor([0]),
            sampled=torch.tensor([1, 2]),
            weights=references.item_weights,
        )

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli, Beta

from gp_eval.data import References
from gp_eval.models import PerformanceModel
from gp_eval.models.irt import (
    BetaResponse,
    ItemParameters,
    ItemResponse2PL,
    ItemResponseBeta,
    TwoParameterLogistic,
    fit_items,
)

N_ITEMS = 12


def uniform(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def references(
    binary: bool, *, n_references: int = 8, weighted: bool = False
) -> References:
    scores = uniform(N_ITEMS, n_references, seed=0)
    return References(
        scores.round() if binary else scores,
        [f"q{i}" for i in range(N_ITEMS)],
        [f"m{k}" for k in range(n_references)],
        item_weights=uniform(N_ITEMS, seed=3) + 0.1 if weighted else None,
    )


def target(binary: bool) -> Tensor:
    scores = uniform(N_ITEMS, seed=1)
    return scores.round() if binary else scores


def build(binary: bool, refs: References, **options):
    return (ItemResponse2PL if binary else ItemResponseBeta)(refs, **options)


def several_draws(binary: bool, refs: References, n_draws: int = 3) -> ItemParameters:
    mode = fit_items(refs, TwoParameterLogistic() if binary else BetaResponse())
    shift = uniform(n_draws, N_ITEMS, seed=7) - 0.5
    return ItemParameters(
        mode.family,
        mode.item_ids,
        mode.discrimination + shift,
        mode.difficulty - shift.flip(0),
        1.01,
    )


def brute_force(
    binary: bool, items: ItemParameters, refs: References, coreset: list[int]
) -> tuple[float, float]:
    """Moments of R by integration over a fine, wide range of abilities, per draw."""
    theta = torch.linspace(-14, 14, 5601, dtype=torch.float64)
    u, scores, w = torch.sigmoid(theta), target(binary), refs.item_weights
    prior = torch.exp(-0.5 * theta**2) if binary else u * (1 - u)
    rest = [i for i in range(N_ITEMS) if i not in coreset]
    first, second = [], []
    for a, b in zip(items.discrimination, items.difficulty, strict=True):
        density = prior.clone()
        by_item = []
        for i in range(N_ITEMS):
            if binary:
                law = Bernoulli(probs=torch.sigmoid(a[i] * theta - b[i]))
                score = scores[i]
            else:
                delta = torch.sigmoid(b[i])
                law = Beta((u / delta) ** a[i], ((1 - u) / (1 - delta)) ** a[i])
                score = scores[i].clamp(0.01, 0.99)
            by_item.append((law.mean, law.variance))
            if i in coreset:
                density *= law.log_prob(score).exp()
        density /= density.sum()
        mean = sum(w[i] * scores[i] for i in coreset) + sum(
            w[i] * by_item[i][0] for i in rest
        )
        variance = sum(w[i] ** 2 * by_item[i][1] for i in rest)
        first.append(float(density @ (mean * torch.ones_like(theta))))
        second.append(float(density @ (mean**2 + variance)))
    mean = float(np.mean(first))
    return mean, float(np.mean(second)) - mean**2


# What is beyond the model's grid: 2e-9 of a normal prior, and more of it where answers
# pull outwards; 0.5 % of a logistic prior, which seven answers bring down.
@pytest.mark.parametrize(
    ("binary", "coreset", "tolerance"),
    [
        (True, [], 1e-7),
        (True, [3, 0, 7, 10], 5e-6),
        (False, [], 2e-2),
        (False, [3, 0, 7, 10, 2, 9, 11], 5e-6),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_numerical_integration(
    binary: bool, coreset: list[int], tolerance: float, weighted: bool
) -> None:
    refs = references(binary, weighted=weighted)
    for items in (several_draws(binary, refs), several_draws(binary, refs, 1)):
        model = build(binary, refs, items=items)
        assert isinstance(model, PerformanceModel)
        assert model.acquisition() is None
        model.condition(torch.tensor(coreset), target(binary)[coreset])
        belief = model.performance()
        mean, variance = brute_force(binary, items, refs, coreset)
        assert float(belief.mean) == pytest.approx(mean, rel=tolerance)
        assert float(belief.variance) == pytest.approx(variance, rel=tolerance)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("refresh", [1, 5])
def test_ends_at_the_mean_without_variance(binary: bool, refresh: int) -> None:
    refs, scores = references(binary), target(binary)
    model = build(binary, refs, refresh=refresh)
    for item in torch.randperm(N_ITEMS, generator=torch.Generator().manual_seed(0)):
        assert float(model.performance().variance) > 0.0
        model.condition(item, scores[item])
    assert float(model.performance().mean) == float(scores.mean())
    assert float(model.performance().variance) == 0.0


@pytest.mark.parametrize("binary", [True, False])
def test_order_and_batches_do_not_matter(binary: bool) -> None:
    refs, scores = references(binary), target(binary)
    items = [5, 0, 9, 3, 11]
    at_once, one_by_one = build(binary, refs), build(binary, refs)
    at_once.condition(torch.tensor(items), scores[items])
    for item in items[::-1]:
        one_by_one.condition(torch.tensor([item]), scores[[item]])
    for name in ("mean", "variance"):
        assert float(getattr(at_once.performance(), name)) == pytest.approx(
            float(getattr(one_by_one.performance(), name)), rel=1e-12
        )


def test_refresh_holds_the_estimate_between_its_multiples() -> None:
    refs, scores = references(True), target(True)
    items = fit_items(refs, TwoParameterLogistic())
    every = ItemResponse2PL(refs, items=items)
    held = ItemResponse2PL(refs, items=items, refresh=5)
    curves: dict[str, list[tuple[float, float]]] = {"every": [], "held": []}
    for n in range(N_ITEMS + 1):
        for name, model in (("every", every), ("held", held)):
            belief = model.performance()
            curves[name].append((float(belief.mean), float(belief.variance)))
            if n < N_ITEMS:
                model.condition(torch.tensor([n]), scores[[n]])
    for n in range(N_ITEMS + 1):
        last = n if n == N_ITEMS else n // 5 * 5
        assert curves["held"][n] == curves["every"][last]
    assert len(set(curves["held"])) == 4


def test_items_are_shared_without_fitting_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refs = references(True)
    items = fit_items(refs, TwoParameterLogistic())
    fitted = ItemResponse2PL(refs)
    monkeypatch.delattr("gp_eval.models.irt.item_response.fit_items")
    shared = [ItemResponse2PL(refs, items=items) for _ in range(2)]
    shared[0].condition(torch.tensor([2]), torch.tensor([1.0]))
    for model in shared:
        assert model.item_parameters is items
    assert shared[1].performance() == fitted.performance()
    assert shared[0].performance() != fitted.performance()


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("n_references", [1, 8])
def test_degenerate_inputs_give_finite_numbers(
    binary: bool, constant: float, n_references: int
) -> None:
    equal = References(
        torch.full((N_ITEMS, n_references), constant).double(),
        [f"q{i}" for i in range(N_ITEMS)],
        [f"m{k}" for k in range(n_references)],
    )
    for refs in (references(binary, n_references=n_references), equal):
        for value in (0.0, 1.0):
            model = build(binary, refs)
            for item in range(N_ITEMS):
                model.condition(torch.tensor([item]), torch.tensor([value]))
                belief = model.performance()
                assert 0.0 <= float(belief.mean) <= 1.0 + 1e-12
                assert (float(belief.variance) > 0.0) == (item < N_ITEMS - 1)
                assert bool(belief.variance.isfinite())
            assert float(belief.mean) == value


def test_variance_has_the_unseen_scores_own() -> None:
    refs = references(True)
    items = fit_items(refs, TwoParameterLogistic())
    model = ItemResponse2PL(refs, items=items)
    model.condition(torch.arange(N_ITEMS - 1), target(True)[:-1])
    p = (float(model.performance().mean) - float(model.coreset.observed)) * N_ITEMS
    assert float(model.performance().variance) == pytest.approx(
        p * (1 - p) / N_ITEMS**2, rel=1e-9
    )


def test_refuses_what_it_cannot_do() -> None:
    binary, continuous = references(True), references(False)
    with pytest.raises(ValueError, match="irt-2pl: expected scores 0 or 1, got .*beta"):
        ItemResponse2PL(continuous)
    with pytest.raises(ValueError, match="irt-2pl: refresh: expected at least 1"):
        ItemResponse2PL(binary, refresh=0)
    items = fit_items(binary, TwoParameterLogistic())
    with pytest.raises(ValueError, match="irt-beta: items were fitted for irt-2pl"):
        ItemResponseBeta(continuous, items=items)
    fewer = binary.subset(items=binary.items[1:])
    with pytest.raises(ValueError, match="irt-2pl: items: their ids or order differ"):
        ItemResponse2PL(fewer, items=items)
    for model, wrong in (
        (ItemResponse2PL(binary), 0.5),
        (ItemResponseBeta(continuous), 1.5),
    ):
        before = model.performance()
        with pytest.raises(ValueError, match="irt-.*expected scores"):
            model.condition(torch.tensor([0, 1]), torch.tensor([1.0, wrong]))
        with pytest.raises(ValueError, match="item: 3 is evaluated already"):
            model.condition(torch.tensor([3, 3]), torch.tensor([1.0, 1.0]))
        assert model.performance() is before
        assert model.coreset.n == 0

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.experiments.batched import irt
from gp_eval.models.irt import (
    BetaResponse,
    ItemParameters,
    ItemResponse2PL,
    ItemResponseBeta,
    TwoParameterLogistic,
    fit_items,
)

N_ITEMS = 17


def uniform(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def setting(binary: bool, weighted: bool = False):
    scores, targets = uniform(N_ITEMS, 6, seed=0), uniform(3, N_ITEMS, seed=1)
    references = References(
        scores.round() if binary else scores,
        [f"q{i}" for i in range(N_ITEMS)],
        [f"m{k}" for k in range(6)],
        item_weights=uniform(N_ITEMS, seed=3) + 0.1 if weighted else None,
    )
    mode = fit_items(references, TwoParameterLogistic() if binary else BetaResponse())
    shift = uniform(4, N_ITEMS, seed=7) - 0.5
    items = ItemParameters(
        mode.family,
        mode.item_ids,
        mode.discrimination + shift,
        mode.difficulty - shift.flip(0),
        1.01,
    )
    order = torch.randperm(N_ITEMS, generator=torch.Generator().manual_seed(2))
    return references, items, targets.round() if binary else targets, order


@pytest.mark.parametrize("refresh", [1, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("cells", [1, 2**23])
def test_equals_single_runs(
    binary: bool, weighted: bool, refresh: int, cells: int, monkeypatch
) -> None:
    # One step a block, and all in one.
    monkeypatch.setattr(irt, "_CELLS", cells)
    references, items, targets, order = setting(binary, weighted)
    simulate = irt.simulate_irt_2pl if binary else irt.simulate_irt_beta
    build = ItemResponse2PL if binary else ItemResponseBeta
    options = {"items": items, "refresh": refresh}
    curves = simulate(references, targets, order, n_max=N_ITEMS, **options)
    assert curves.mean.shape == curves.variance.shape == (3, N_ITEMS)
    for run, target in enumerate(targets):
        model = build(references, **options)
        means, variances = [], []
        for item in order:
            model.condition(item, target[item])
            means.append(float(model.performance().mean))
            variances.append(float(model.performance().variance))
        assert curves.mean[run].tolist() == pytest.approx(means, rel=1e-9)
        assert curves.variance[run].tolist() == pytest.approx(variances, rel=1e-9)
    assert curves.variance[:, -1].tolist() == [0.0] * 3


@pytest.mark.parametrize("binary", [True, False])
def test_fewer_items_are_a_prefix_and_fit_by_default(binary: bool) -> None:
    references, _, targets, order = setting(binary)
    simulate = irt.simulate_irt_2pl if binary else irt.simulate_irt_beta
    whole = simulate(references, targets, order, n_max=N_ITEMS)
    part = simulate(references, targets, order, n_max=4)
    torch.testing.assert_close(part.mean, whole.mean[:, :4], rtol=1e-12, atol=0)
    torch.testing.assert_close(part.variance, whole.variance[:, :4], rtol=1e-12, atol=0)
    model = (ItemResponse2PL if binary else ItemResponseBeta)(references)
    model.condition(order[:4], targets[1, order[:4]])
    assert float(part.mean[1, 3]) == pytest.approx(
        float(model.performance().mean), rel=1e-9
    )


def test_clip_reaches_the_likelihood() -> None:
    references, _, targets, order = setting(False)
    mild, harsh = (
        irt.simulate_irt_beta(references, targets, order, n_max=5, clip=clip)
        for clip in (0.01, 0.3)
    )
    model = ItemResponseBeta(references, clip=0.3)
    model.condition(order[:5], targets[0, order[:5]])
    assert float(harsh.mean[0, 4]) == pytest.approx(
        float(model.performance().mean), rel=1e-9
    )
    assert float(mild.mean[0, 4]) != pytest.approx(float(harsh.mean[0, 4]), rel=1e-3)


def test_refuses_what_the_models_refuse() -> None:
    references, items, targets, order = setting(True)
    with pytest.raises(ValueError, match="irt-2pl: refresh: expected at least 1"):
        irt.simulate_irt_2pl(references, targets, order, n_max=3, refresh=0)
    with pytest.raises(ValueError, match="irt-2pl: expected scores 0 or 1"):
        irt.simulate_irt_2pl(references, 0.5 * targets, order, n_max=3)
    with pytest.raises(ValueError, match="irt-beta: items were fitted for irt-2pl"):
        irt.simulate_irt_beta(references, targets, order, n_max=3, items=items)

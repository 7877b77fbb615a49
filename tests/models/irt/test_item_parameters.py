from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.models.irt import BetaResponse, TwoParameterLogistic, fit_items
from gp_eval.models.irt import item_parameters as module


def references(scores: Tensor, **options) -> References:
    return References(
        scores,
        [f"q{i}" for i in range(scores.shape[0])],
        [f"m{k}" for k in range(scores.shape[1])],
        **options,
    )


def random_scores(n_items: int, n_references: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(n_items, n_references, generator=generator, dtype=torch.float64)


@pytest.fixture(scope="module")
def few() -> References:
    return references(random_scores(4, 6).round())


def test_the_mode_is_one_draw(few: References) -> None:
    items = fit_items(few, TwoParameterLogistic(), draws=7)
    assert items.discrimination.shape == items.difficulty.shape == (1, 4)
    assert items.r_hat_max is None
    assert items.item_ids == few.items


@pytest.mark.parametrize("continuous", [False, True])
def test_mcmc_thins_to_the_draws_and_reports_r_hat(
    continuous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, drawn = [], []

    def sample(density, start, *, chains, samples, seed):
        value, gradient = density(start)
        assert value.isfinite()
        assert gradient.shape == start.shape
        seen.append((chains, samples, seed))
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(
            chains, samples, len(start), generator=generator, dtype=torch.float64
        )
        drawn.append(start + 0.1 * noise)
        return drawn[-1]

    monkeypatch.setattr(module, "sample_by_nuts", sample)
    scores = random_scores(4, 6)
    family = BetaResponse() if continuous else TwoParameterLogistic()
    refs = references(scores if continuous else scores.round())
    mode = fit_items(refs, family)
    items = fit_items(refs, family, inference="mcmc", draws=50, seed=3)
    assert seen == [(2, 200, 3)]
    assert items.discrimination.shape == items.difficulty.shape == (50, 4)
    # The first and the last draw are kept, and the chains start at the mode.
    ends = drawn[0].reshape(400, 14)[[0, 399]]
    assert torch.equal(items.discrimination[[0, -1]], ends[:, 6:10])
    assert torch.equal(items.difficulty[[0, -1]], ends[:, 10:])
    centre = drawn[0].reshape(400, 14).mean(0)
    torch.testing.assert_close(
        centre[6:],
        torch.cat([mode.discrimination, mode.difficulty], 1)[0],
        atol=0.03,
        rtol=0,
    )
    assert items.r_hat_max is not None
    assert 0.99 < items.r_hat_max < 1.1
    fit_items(refs, family, inference="mcmc", draws=1001)
    assert seen[-1] == (2, 501, 0)


def test_mcmc_is_fixed_by_its_seed_and_spreads_around_the_mode(
    few: References, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(density, start, *, chains, samples, seed):
        return full(density, start, chains=chains, warmup=30, samples=30, seed=seed)

    full = module.sample_by_nuts
    monkeypatch.setattr(module, "sample_by_nuts", short)
    monkeypatch.setattr(module, "_SAMPLES", 30)
    first, again, other = (
        fit_items(few, TwoParameterLogistic(), inference="mcmc", draws=20, seed=seed)
        for seed in (1, 1, 2)
    )
    assert torch.equal(first.discrimination, again.discrimination)
    assert torch.equal(first.difficulty, again.difficulty)
    assert not torch.equal(first.difficulty, other.difficulty)
    mode = fit_items(few, TwoParameterLogistic())
    spread = first.difficulty.std(0)
    assert bool((spread > 0.2).all())
    assert bool(((first.difficulty.mean(0) - mode.difficulty[0]) < 3 * spread).all())


def test_refuses_what_it_cannot_do(few: References) -> None:
    family = TwoParameterLogistic()
    with pytest.raises(ValueError, match="expected 'map' or 'mcmc', got 'vi'"):
        fit_items(few, family, inference="vi")
    with pytest.raises(ValueError, match="irt-2pl: draws: expected at least 1, got 0"):
        fit_items(few, family, draws=0)
    with pytest.raises(ValueError, match="irt-2pl: expected scores 0 or 1"):
        fit_items(references(random_scores(3, 2)), family)
    with pytest.raises(ValueError, match=r"irt-beta: expected scores in \[0, 1\]"):
        fit_items(references(2 * random_scores(3, 2)), BetaResponse())
    holes = random_scores(3, 2).round()
    holes[0, 0] = float("nan")
    with pytest.raises(DataError, match="irt-2pl: 1 missing cells"):
        fit_items(references(holes, missing="keep"), family)

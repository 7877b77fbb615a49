from __future__ import annotations

import pytest
import torch
from lmc_oracles import varied
from torch import Tensor

from gp_eval.errors import NotPositiveDefiniteError
from gp_eval.kernels import LMCKernel, default_latents
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.optim import Fit, PairScores, fit_adamw, step_schedule
from gp_eval.optim.lmc_objective import AutogradLMCObjective, ClosedFormLMCObjective

COUNTS = torch.tensor([1.0, 4.0, 2.0, 3.0, 1.0, 1.0], dtype=torch.float64)


def make(kind: type = ClosedFormLMCObjective):
    """Two targets and three latents, in the state a session starts from."""
    generator = torch.Generator().manual_seed(6)
    phi = torch.rand(6, 4, generator=generator, dtype=torch.float64)
    pairs = torch.randint(0, 12, (20,), generator=generator)
    score = torch.rand(20, generator=generator, dtype=torch.float64)
    data = PairScores.from_scores(pairs, score, phi.mean(1).repeat(2), COUNTS)
    likelihood = BucketGaussianLikelihood(count_dim=-2).double()
    likelihood.noise = 0.1
    kernel = LMCKernel(default_latents(3), 2).double()
    return kind(kernel, likelihood, phi, data)


def state(objective) -> Tensor:
    return torch.cat([e[1].detach().reshape(-1) for e in objective.parameters()])


def literal_loop(objective, steps: int, lr: float, decay: float) -> list[Tensor]:
    """torch's AdamW over the modules' own parameters, clipped after each step."""
    modules = (objective.kernel, objective.likelihood)
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=decay)
    path = []
    for _ in range(steps):
        _, gradient = objective(state(objective))
        start = 0
        for parameter in parameters:
            block = gradient[start : start + parameter.numel()]
            parameter.grad = block.view_as(parameter).clone()
            start += parameter.numel()
        optimizer.step()
        with torch.no_grad():
            for latent in objective.kernel.latents:
                latent.raw_alpha.clamp_(min=1e-4)
                latent.raw_beta.clamp_(min=1e-4)
            objective.likelihood.raw_noise.clamp_(min=1e-4)
        path.append(state(objective).clone())
    return path


@pytest.mark.parametrize("kind", [ClosedFormLMCObjective, AutogradLMCObjective])
@pytest.mark.parametrize(("lr", "decay"), [(0.01, 0.01), (0.1, 0.0), (0.3, 0.2)])
def test_iterates_are_those_of_torch_with_clipping(
    kind: type, lr: float, decay: float
) -> None:
    path = literal_loop(make(), 25, lr, decay)
    for steps in (1, 2, 10, 25):
        made = make(kind)
        fit_adamw(made, steps=steps, learning_rate=lr, weight_decay=decay)
        # Autograd and the closed form differ in the last digits of each gradient.
        rtol = 1e-12 if kind is ClosedFormLMCObjective else 1e-8
        torch.testing.assert_close(state(made), path[steps - 1], rtol=rtol, atol=1e-12)


def test_default_decay_is_that_of_torch_and_counts() -> None:
    default, torchs, none = make(), make(), make()
    fit_adamw(default, steps=5, learning_rate=0.1)
    fit_adamw(torchs, steps=5, learning_rate=0.1, weight_decay=0.01)
    fit_adamw(none, steps=5, learning_rate=0.1, weight_decay=0.0)
    assert torch.equal(state(default), state(torchs))
    assert not torch.allclose(state(default), state(none), rtol=1e-4)


def test_bounds_are_kept_after_every_step_and_reached() -> None:
    """A huge rate throws parameters onto the bounds of Appendix A.4."""
    seen = []

    class Watched(ClosedFormLMCObjective):
        def __call__(self, values: Tensor) -> tuple[Tensor, Tensor]:
            seen.append(values.clone())
            return super().__call__(values)

    made = make(Watched)
    fit_adamw(made, steps=40, learning_rate=2.0)
    low = torch.cat([entry[2].reshape(-1) for entry in made.parameters()])
    path = torch.stack([*seen, state(made)])
    assert bool((path >= low).all())
    bounded = path[:, low.isfinite()]
    assert bounded.shape[1] == 7
    assert int((bounded == 1e-4).any(0).sum()) >= 3
    assert float(bounded.min()) == 1e-4
    assert float(path[:, low.isinf()].min()) < 0


def test_lowers_the_objective() -> None:
    made = make()
    before = float(made(state(made))[0])
    fit = fit_adamw(made, steps=60, learning_rate=0.01)
    assert float(made(state(made))[0]) < before - 0.5
    assert isinstance(fit, Fit)
    assert fit.evaluations == 60


def test_value_is_the_one_before_the_last_step() -> None:
    long, short = make(), make()
    fit = fit_adamw(long, steps=8, learning_rate=0.05)
    fit_adamw(short, steps=7, learning_rate=0.05)
    assert fit.value == float(short(state(short))[0])
    assert "before the last one" in fit.message


def test_progress_is_told_after_every_step() -> None:
    told: list[tuple[int, int]] = []
    fit_adamw(
        make(),
        steps=4,
        learning_rate=0.05,
        progress=lambda done, of: told.append((done, of)),
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_two_runs_are_equal_and_leave_the_global_generator_alone() -> None:
    ends = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        before = torch.random.get_rng_state()
        made = make()
        fit_adamw(made, steps=10, learning_rate=0.1)
        assert torch.equal(torch.random.get_rng_state(), before)
        ends.append(state(made))
    assert torch.equal(*ends)


@pytest.mark.parametrize("steps", [0, -3])
def test_less_than_one_step_is_an_error(steps: int) -> None:
    with pytest.raises(ValueError, match=f"steps: expected at least 1, got {steps}"):
        fit_adamw(make(), steps=steps, learning_rate=0.1)


def test_frozen_parameters_stay() -> None:
    made = make(AutogradLMCObjective)
    made.kernel.latents[1].raw_beta.requires_grad_(False)
    made.likelihood.raw_noise.requires_grad_(False)
    weights = made.kernel.task_weights.detach().clone()
    fit_adamw(made, steps=3, learning_rate=0.1)
    assert made.kernel.latents[1].beta.item() == 1.0
    assert made.likelihood.noise.item() == 0.1
    assert not torch.equal(made.kernel.task_weights, weights)


def test_nothing_to_train_is_no_error() -> None:
    made = make(AutogradLMCObjective)
    before = state(made)
    for module in (made.kernel, made.likelihood):
        module.requires_grad_(False)
    fit = fit_adamw(made, steps=3, learning_rate=0.1)
    assert (fit.evaluations, fit.message) == (0, "no trainable parameters")
    for module in (made.kernel, made.likelihood):
        module.requires_grad_(True)
    assert torch.equal(state(made), before)


def test_a_covariance_without_a_factor_on_the_way_is_an_error() -> None:
    """Not NaN in the parameters."""
    made = make()
    varied(made.kernel)
    before = state(made)
    with pytest.raises(NotPositiveDefiniteError):
        fit_adamw(made, steps=5, learning_rate=1e200)
    assert torch.equal(state(made), before)


def test_steps_are_halved_down_to_fifty() -> None:
    assert [step_schedule(u) for u in range(6)] == [500, 250, 125, 62, 50, 50]
    assert step_schedule(10**4) == 50


def test_schedules_with_other_numbers() -> None:
    assert [step_schedule(u, first=40, floor=6) for u in range(4)] == [40, 20, 10, 6]
    # A first update below the floor is a choice of the user, who gets it each time.
    assert [step_schedule(u, first=20) for u in range(3)] == [20, 20, 20]
    assert [step_schedule(u, first=50) for u in range(3)] == [50, 50, 50]

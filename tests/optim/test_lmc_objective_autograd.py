from __future__ import annotations

import pytest
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, RBFKernel
from gpytorch.priors import GammaPrior, NormalPrior
from lmc_objectives import at_present, fused, likelihood, setting
from lmc_oracles import custom_latents, varied

from gp_eval.kernels import LMCKernel, ReferenceMaternKernel, ReferenceScoreKernel
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.optim import make_lmc_objective
from gp_eval.optim.lmc_objective import AutogradLMCObjective, ClosedFormLMCObjective

WEIGHTS = torch.tensor([0.2, 0.0, 0.5, 0.3])


@pytest.mark.parametrize(
    ("n_targets", "latents"),
    [
        (3, custom_latents()),
        (2, [RBFKernel(), ReferenceScoreKernel()]),
        (2, [ReferenceScoreKernel(), ReferenceMaternKernel(weights=WEIGHTS)]),
        (2, [ReferenceScoreKernel(beta_constraint=GreaterThan(0.1))]),
    ],
)
def test_other_latents_go_by_autograd(n_targets: int, latents: list[Kernel]) -> None:
    data = setting(n_targets)
    kernel = varied(LMCKernel(latents, n_targets))
    made = make_lmc_objective(kernel, likelihood(), data.phi, data.pairs)
    assert isinstance(made, AutogradLMCObjective)
    point = at_present(made)
    value, gradient = made(point)
    rows = torch.cat(
        [
            data.phi[data.bucket],
            data.counts[data.bucket].unsqueeze(-1),
            data.target.double().unsqueeze(-1),
        ],
        -1,
    )
    # LMCKernel itself over the items, without buckets and pairs.
    gram = kernel(rows).to_dense().detach()
    gram = gram + torch.diag(0.07 * data.counts[data.bucket])
    residual = data.score - data.mean[data.bucket]
    solved = torch.linalg.solve(gram, residual)
    expected = 0.5 * residual @ solved + 0.5 * torch.logdet(gram)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=0)
    for i in range(point.shape[0]):
        step = torch.zeros_like(point)
        step[i] = 1e-6
        slope = (made(point + step)[0] - made(point - step)[0]) / 2e-6
        assert float(gradient[i]) == pytest.approx(float(slope), rel=1e-5, abs=1e-6)


def with_priors() -> list[tuple[LMCKernel, BucketGaussianLikelihood]]:
    """A prior on a latent, on the noise, and on the weights of the targets."""
    on_latent = varied(
        LMCKernel([ReferenceScoreKernel(beta_prior=GammaPrior(2.0, 3.0))], 2)
    )
    on_weights = varied(LMCKernel([ReferenceScoreKernel()], 2))
    on_weights.register_prior("weight_prior", NormalPrior(0.0, 0.5), "task_weights")
    plain = varied(LMCKernel([ReferenceScoreKernel()], 2))
    return [
        (on_latent, likelihood()),
        (on_weights, likelihood()),
        (plain, likelihood(noise_prior=GammaPrior(2.0, 3.0))),
    ]


@pytest.mark.parametrize("case", [0, 1, 2])
def test_log_priors_are_subtracted(case: int) -> None:
    data = setting(2)
    kernel, noise = with_priors()[case]
    made = make_lmc_objective(kernel, noise, data.phi, data.pairs)
    plain = make_lmc_objective(
        varied(LMCKernel([ReferenceScoreKernel()], 2)),
        likelihood(),
        data.phi,
        data.pairs,
    )
    assert isinstance(made, AutogradLMCObjective)
    assert isinstance(plain, ClosedFormLMCObjective)
    point = at_present(plain)
    prior, at = [
        (GammaPrior(2.0, 3.0), point[3:4]),
        (NormalPrior(0.0, 0.5), point[:2]),
        (GammaPrior(2.0, 3.0), point[4:5]),
    ][case]
    difference = made(point)[0] - plain(point)[0]
    # The priors' own parameters are float32.
    torch.testing.assert_close(
        difference, -prior.log_prob(at).sum().double(), rtol=1e-6, atol=1e-8
    )
    assert not torch.allclose(made(point)[1], plain(point)[1])


@pytest.mark.parametrize("name", ["raw_beta", "task_weights", "raw_noise"])
def test_frozen_parameters_are_left_out_and_the_rest_is_the_same(name: str) -> None:
    data, kernel, noise = setting(2), fused(2, 2), likelihood()
    full = make_lmc_objective(kernel, noise, data.phi, data.pairs)
    point = at_present(full)
    _, whole = full(point)
    frozen = [
        (n, p)
        for n, p, *_ in full.parameters()
        if n.endswith(name) and "base_kernels.1" not in n
    ]
    assert len(frozen) == 1
    frozen[0][1].requires_grad_(False)
    part = make_lmc_objective(kernel, noise, data.phi, data.pairs)
    assert isinstance(part, AutogradLMCObjective)
    left = [entry[0] for entry in part.parameters()]
    assert frozen[0][0] not in left
    _, gradient = part(at_present(part))
    frozen[0][1].requires_grad_(True)
    kept = [
        torch.full((p.numel(),), n != frozen[0][0]) for n, p, *_ in full.parameters()
    ]
    torch.testing.assert_close(gradient, whole[torch.cat(kept)])


def test_a_transform_on_the_noise_or_the_weights_goes_by_autograd() -> None:
    data = setting(2)
    soft = likelihood(noise_constraint=GreaterThan(1e-4))
    bounded = fused(2, 2)
    bounded.register_constraint("task_weights", GreaterThan(-5.0))
    for kernel, noise in ((fused(2, 2), soft), (bounded, likelihood())):
        made = make_lmc_objective(kernel, noise, data.phi, data.pairs)
        assert isinstance(made, AutogradLMCObjective)

"""Scores of several targets and their likelihood, item by item."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from lmc_oracles import varied
from torch import Tensor

from gp_eval.kernels import LMCKernel, default_latents
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.optim import PairScores


@dataclass
class Setting:
    """Scores of items with their buckets, and the same by pair."""

    phi: Tensor
    counts: Tensor
    target: Tensor
    bucket: Tensor
    score: Tensor
    mean: Tensor

    @property
    def pairs(self) -> PairScores:
        size = self.phi.shape[0]
        return PairScores.from_scores(
            self.target * size + self.bucket,
            self.score,
            self.mean.repeat(int(self.target.max()) + 1),
            self.counts,
        )


def setting(n_targets: int, n: int = 40, size: int = 24, k: int = 4) -> Setting:
    """Ragged scores with repeats; the last bucket looks like the first."""
    generator = torch.Generator().manual_seed(n_targets)

    def integers(high: int) -> Tensor:
        return torch.randint(0, high, (n,), generator=generator)

    phi = torch.rand(size, k, generator=generator, dtype=torch.float64)
    phi[-1] = phi[0]
    target = integers(n_targets)
    target[-1] = n_targets - 1
    return Setting(
        phi=phi,
        counts=torch.randint(1, 6, (size,), generator=generator).double(),
        target=target,
        bucket=integers(size),
        score=torch.rand(n, generator=generator, dtype=torch.float64),
        mean=phi.mean(1),
    )


def likelihood(noise: float = 0.07, **options) -> BucketGaussianLikelihood:
    made = BucketGaussianLikelihood(count_dim=-2, **options).double()
    made.noise = noise
    return made


def fused(n_targets: int, n_latents: int) -> LMCKernel:
    return varied(LMCKernel(default_latents(n_latents), n_targets))


def at_present(objective) -> Tensor:
    parts = [entry[1].detach().reshape(-1) for entry in objective.parameters()]
    return torch.cat(parts).clone()


def literal(data: Setting, values: Tensor, kinds: list[str]) -> Tensor:
    """Item-level negative log likelihood without n/2 log 2 pi, differentiable.

    ``values`` are weights ``L x T``, then ``alpha, beta`` of each latent and sigma^2.
    """
    n_latents, n_targets = len(kinds), int(data.target.max()) + 1
    weights = values[: n_latents * n_targets].view(n_latents, n_targets)
    rest, noise = values[n_latents * n_targets : -1], values[-1]
    x = data.phi[data.bucket]
    squared = (x[:, None] - x[None]).square().sum(-1)
    distance = torch.where(squared > 0, squared, 1.0).sqrt() * (squared > 0)
    gram = torch.diag(noise * data.counts[data.bucket])
    for latent, kind in enumerate(kinds):
        alpha, beta = rest[2 * latent], rest[2 * latent + 1]
        if kind == "se":
            shape = torch.exp(-beta / x.shape[1] * squared)
        else:
            scaled = 3.0**0.5 * beta * distance
            shape = (1.0 + scaled) * torch.exp(-scaled)
        own = weights[latent][data.target]
        gram = gram + alpha * own[:, None] * own[None] * shape
    residual = data.score - data.mean[data.bucket]
    solved = torch.linalg.solve(gram, residual)
    return 0.5 * residual @ solved + 0.5 * torch.logdet(gram)


def kinds(n_latents: int) -> list[str]:
    return ["se"] * ((n_latents + 1) // 2) + ["matern"] * (n_latents // 2)

"""Posterior draws by Pyro's NUTS from a density with a hand-written gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gp_eval.errors import MissingDependencyError

__all__ = ["DensityAndGradient", "r_hat", "sample_by_nuts"]

DensityAndGradient = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From a vector ``P`` to its log density, a scalar, and the gradient, ``P``."""


class _Potential(torch.autograd.Function):
    """Minus a log density whose gradient is known; Pyro differentiates what it gets."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, density: DensityAndGradient) -> Tensor:
        value, gradient = density(z)
        ctx.save_for_backward(gradient)
        return -value

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return -outer[0] * gradient, None


def sample_by_nuts(
    density: DensityAndGradient,
    start: Tensor,
    *,
    chains: int = 2,
    warmup: int = 150,
    samples: int = 200,
    seed: int = 0,
) -> Tensor:
    """Draws of independent chains; the global random state is left as it was.

    Args:
        density: Log density and its gradient.
        start: Where every chain starts, shape ``P``.
        chains: Number of chains, run one after the other.
        warmup: Iterations of each chain that adapt and are dropped.
        samples: Draws kept of each chain.
        seed: Fixes the draws.

    Returns:
        A tensor ``chains x samples x P``.

    Raises:
        MissingDependencyError: Without pyro-ppl.
    """
    try:
        from pyro.infer import MCMC, NUTS
    except ImportError as error:
        raise MissingDependencyError(
            "inference='mcmc' needs pyro-ppl: pip install pyro-ppl"
        ) from error

    def potential(parameters: dict[str, Tensor]) -> Tensor:
        return _Potential.apply(parameters["z"], density)

    drawn = []
    # Pyro draws from torch's global generator; the CPU's is the only one it touches.
    with torch.random.fork_rng(devices=[]):
        for chain in range(chains):
            torch.manual_seed(seed * chains + chain)
            sampler = MCMC(
                NUTS(potential_fn=potential),
                num_samples=samples,
                warmup_steps=warmup,
                initial_params={"z": start.clone()},
                disable_progbar=True,
            )
            sampler.run()
            drawn.append(sampler.get_samples()["z"].detach())
    return torch.stack(drawn)


def r_hat(draws: Tensor) -> Tensor:
    r"""Split potential scale reduction factor of ``chains x samples x ...`` draws.

    Gelman et al. (2013): each chain is cut in half, and :math:`\hat R^2` is the
    pooled over the within-half variance. Draws that never move have 1.

    Raises:
        ValueError: For fewer than 4 draws a chain.
    """
    half = draws.shape[1] // 2
    if half < 2:
        raise ValueError(f"draws: expected at least 4 a chain, got {draws.shape[1]}")
    halves = torch.cat([draws[:, :half], draws[:, -half:]])
    within = halves.var(dim=1).mean(0)
    between = halves.mean(1).var(dim=0)
    squared = (half - 1) / half + between / within
    return torch.where(within + between == 0.0, 1.0, squared).sqrt()

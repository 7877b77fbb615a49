r"""Moments of abilities :math:`\theta = \sigma(f)` under a Gaussian ``f``.

:math:`E[\sigma(f)]` has no closed form; Appendix B.3 of the BayesAME paper names three
approximations. Each comes with the matching *slope*, :math:`E[\sigma'(f)]`: by Stein's
identity it is the coefficient of the best linear predictor of :math:`\theta` from
``f``, and since :math:`\sigma' = \sigma (1 - \sigma)` it is also the mean variance of a
Bernoulli score of that ability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

__all__ = [
    "Abilities",
    "Theta",
    "linear_abilities",
    "monte_carlo_abilities",
    "probit_abilities",
]

Theta = Literal["linear", "probit", "monte-carlo"]
_BLOCK = 2**18


@dataclass(frozen=True)
class Abilities:
    r"""What is believed about :math:`\theta = \sigma(f)`.

    Attributes:
        mean: :math:`E[\theta]`, shape ``B``.
        slope: :math:`E[\sigma'(f)] = E[\theta (1 - \theta)]`, shape ``B``.
    """

    mean: Tensor
    slope: Tensor


def linear_abilities(mean: Tensor, reference: Tensor) -> Abilities:
    r"""Linearisation around reference points (Osborne et al. 2012).

    :math:`E[\theta_b] \approx t_b + t_b (1 - t_b) (E[f_b] - \operatorname{logit} t_b)`
    with :math:`t_b = \sigma(f_{b,0})`. It may leave [0, 1]: far from the reference
    point the line is not the curve.

    Args:
        mean: Posterior mean of ``f``, shape ``B``.
        reference: :math:`\sigma(f_{b,0})`, in (0, 1), shape ``B``.
    """
    slope = reference * (1.0 - reference)
    return Abilities(reference + slope * (mean - torch.logit(reference)), slope)


def probit_abilities(mean: Tensor, variance: Tensor) -> Abilities:
    r"""MacKay's rescaled probit, :math:`\sigma(\kappa E[f])`.

    :math:`\kappa = 1 / \sqrt{1 + \pi \operatorname{Var}(f) / 8}`: doubt draws
    :math:`E[\theta]` towards 1/2. The BayesAME paper prints the root as a *factor*,
    which would draw it away; MacKay (1992), whom it cites, divides, and so does this.
    The slope is the derivative with respect to :math:`E[f]`.

    Args:
        mean: Posterior mean of ``f``, shape ``B``.
        variance: Posterior variance of ``f``, shape ``B``.
    """
    kappa = (1.0 + math.pi / 8.0 * variance).rsqrt()
    value = torch.sigmoid(kappa * mean)
    return Abilities(value, kappa * value * (1.0 - value))


def monte_carlo_abilities(mean: Tensor, variance: Tensor, draws: Tensor) -> Abilities:
    r"""Monte Carlo means over :math:`f_b = E[f_b] + \sqrt{\operatorname{Var} f_b} z`.

    Args:
        mean: Posterior mean of ``f``, shape ``B``.
        variance: Posterior variance of ``f``, shape ``B``.
        draws: Standard normal ``z``, the same for all buckets.
    """
    spread, total = variance.clamp_min(0.0).sqrt(), torch.zeros_like(mean)
    slope = torch.zeros_like(mean)
    for part in draws.split(max(1, _BLOCK // mean.shape[0])):
        value = torch.sigmoid(mean + part.unsqueeze(-1) * spread)
        total += value.sum(0)
        slope += (value * (1.0 - value)).sum(0)
    return Abilities(total / draws.shape[0], slope / draws.shape[0])

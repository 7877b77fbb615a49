"""Half widths and probabilities of beliefs that are normal or of Student's t."""

from __future__ import annotations

from statistics import NormalDist

import torch
from scipy.special import stdtr, stdtrit
from torch import Tensor

__all__ = ["check_dof", "half_width", "probability_below"]


def half_width(
    variance: Tensor, dof: Tensor | None = None, *, level: float = 0.95
) -> Tensor:
    """Half the width of the central interval; every interval of ours is made here.

    ``sqrt(variance)`` times the quantile of the normal distribution or of Student's t.
    Where the variance is 0, as at ``n = N``, so is the width, whatever ``dof``.

    Args:
        variance: Squared scales of the beliefs, of any shape, squared score units.
        dof: Degrees of freedom > 0 that broadcast with ``variance``; infinite for a
            normal belief, ``None`` if all are.
        level: Probability of the interval, in (0, 1).

    Returns:
        Half widths in score units, of the broadcast shape.

    Raises:
        ValueError: For a level outside (0, 1), or ``dof`` not above 0.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level: expected 0 < level < 1, got {level}")
    upper = 0.5 + level / 2.0
    normal = NormalDist().inv_cdf(upper)
    if dof is None:
        return normal * variance.sqrt()
    dof = check_dof(dof)
    # One call for all: a microsecond each, so that there is nothing to cache.
    of_t = torch.as_tensor(stdtrit(dof.detach().cpu().numpy(), upper)).to(variance)
    quantile = torch.where(dof.isinf().to(variance.device), normal, of_t)
    return quantile * variance.sqrt()


def probability_below(deviation: Tensor, dof: Tensor | None = None) -> Tensor:
    """Standard normal or Student's t distribution function.

    Args:
        deviation: Distances from the centre in units of the scale, of any shape.
        dof: As in :func:`half_width`, broadcasting with ``deviation``.

    Raises:
        ValueError: For ``dof`` not above 0.
    """
    normal = torch.special.ndtr(deviation)
    if dof is None:
        return normal
    dof = check_dof(dof)
    below = stdtr(dof.detach().cpu().numpy(), deviation.detach().cpu().numpy())
    of_t = torch.as_tensor(below).to(deviation)
    return torch.where(dof.isinf().to(deviation.device), normal, of_t)


def check_dof(dof: Tensor) -> Tensor:
    """Degrees of freedom as they came.

    Raises:
        ValueError: For one that is not above 0, NaN among them.
    """
    if bool((wrong := ~(dof > 0.0)).any()):
        raise ValueError(f"dof: expected values > 0, got {dof[wrong][:5].tolist()}")
    return dof

"""Uncertainty over the draw of targets, by resampling whole targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from gp_eval.planning.content import Estimate

__all__ = ["estimate", "resampled", "wilson"]

_DRAWS = 1000
_Z = 1.959963984540054


def resampled(targets: Sequence[str], *, seed: int, draws: int = _DRAWS) -> np.ndarray:
    """How often each run counts in each resample, ``draws x R``.

    Runs of one target are not independent, so targets are drawn, with replacement, and
    all runs of a target come along.
    """
    names, of_run = np.unique(np.asarray(targets), return_inverse=True)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), draws)
    return counts[:, of_run].astype(float)


def estimate(
    values: np.ndarray,
    weights: np.ndarray,
    transform: Callable[[np.ndarray], np.ndarray] = lambda mean: mean,
) -> Estimate:
    """A transformed mean over runs with its percentile interval.

    Args:
        values: One number a run, shape ``R``.
        weights: What :func:`resampled` gave.
        transform: Applied to the mean, such as a square root.
    """
    means = (weights @ values) / weights.sum(-1)
    low, high = np.quantile(transform(means), [0.025, 0.975])
    value = float(transform(values.mean()))
    return Estimate(value=value, low=float(low), high=float(high))


def wilson(share: float, n: int) -> Estimate:
    """A share with Wilson's interval for ``n`` independent trials.

    Resampling would give a share of 1 no uncertainty at all. Runs of one target count
    as one trial, which is on the safe side.
    """
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + (_Z / n / 2) ** 2)
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Estimate(value=share, low=min(low, share), high=max(high, share))

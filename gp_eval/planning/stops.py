"""Where simulated runs stop, and what they know then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gp_eval.experiments.summary import first_stop
from gp_eval.models.protocol import Performance
from gp_eval.planning.settings import wanted_width
from gp_eval.planning.tasks import Done
from gp_eval.stopping import StoppingRule

__all__ = ["Stops", "find_stops", "squared_errors"]


@dataclass(frozen=True)
class Stops:
    """``R`` runs at their stop, each array of shape ``R``.

    Attributes:
        targets: Ids of the pseudo-targets.
        items: Evaluated items.
        errors: Estimate less truth, in score units.
        covered: Whether the 95 % interval holds the truth.
        stopped: Whether the rule was met or everything evaluated; the others count at
            their last item.
        narrow: Items after which the interval stayed narrow enough up to the stop,
            whether or not the estimate was stable.
        projected: ``items``; for a run that was cut, those at which its interval would
            be narrow enough if it went on like the mean of a random sample, whose
            variance is proportional to ``1 / n - 1 / N``.
    """

    targets: tuple[str, ...]
    items: np.ndarray
    errors: np.ndarray
    covered: np.ndarray
    stopped: np.ndarray
    narrow: np.ndarray
    projected: np.ndarray


def find_stops(results: Sequence[Done], stop: StoppingRule) -> Stops:
    """Apply a stopping rule, without its budget, to stored curves."""
    curves = [done.curves for done in results if done.curves is not None]
    mean = torch.cat([c.mean for c in curves])
    variance = torch.cat([c.variance for c in curves]).clamp_min(0.0)
    widths = 2 * torch.cat([c.half_width() for c in curves])
    n, stopped = first_stop(
        mean, widths, width=wanted_width(stop), stable=stop.stable, window=stop.window
    )
    place = (n - 1).unsqueeze(-1)
    truth = torch.cat([done.truth for done in results])
    errors = mean.gather(1, place).squeeze(-1) - truth
    half = widths.gather(1, place).squeeze(-1) / 2
    n_items = results[0].n_items
    stopped |= n == n_items
    last = variance.gather(1, place).squeeze(-1)
    return Stops(
        targets=_targets(results),
        items=n.double().numpy(),
        errors=errors.numpy(),
        # At n = N both sides are 0 up to the rounding of a sum.
        covered=(errors.abs() <= half + 1e-12).double().numpy(),
        stopped=stopped.numpy(),
        narrow=_narrow_from(widths, n, wanted_width(stop)).double().numpy(),
        projected=torch.where(
            stopped, n, _projected(n, last, n_items, wanted_width(stop))
        ).numpy(),
    )


def _narrow_from(widths: Tensor, n: Tensor, width: float) -> Tensor:
    """One after the last place before ``n`` at which the interval was too wide."""
    place = torch.arange(1, widths.shape[1] + 1)
    wide = (widths > width) & (place < n.unsqueeze(-1))
    return torch.where(wide, place, 0).amax(-1) + 1


def _projected(n: Tensor, variance: Tensor, n_items: int, width: float) -> Tensor:
    """At least ``n``: a run may also have been cut while its estimate moved."""
    single = variance / (1.0 / n - 1.0 / n_items).clamp_min(1e-12)
    wanted = (width / Performance(n, torch.ones(())).width()).square()
    return torch.maximum(n.double(), single / (wanted + single / n_items))


def squared_errors(results: Sequence[Done], n: int) -> np.ndarray:
    """Squared errors of all runs after ``n`` items, shape ``R``."""
    errors = [
        done.curves.mean[:, n - 1] - done.truth
        for done in results
        if done.curves is not None
    ]
    return torch.cat(errors).square().numpy()


def _targets(results: Sequence[Done]) -> tuple[str, ...]:
    return tuple(name for done in results for name in done.task.fold.targets)

"""Would more references help? Items and error against their number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gp_eval.planning.bootstrap import resampled
from gp_eval.planning.content import Estimate, ReferenceCurve
from gp_eval.planning.stops import find_stops, squared_errors
from gp_eval.planning.tasks import Done
from gp_eval.stopping import StoppingRule

__all__ = ["fit_inverse", "reference_curve"]


def fit_inverse(sizes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Least squares of ``values = a + b / size``.

    Args:
        sizes: Numbers of references, shape ``S``, at least two different ones.
        values: Values there, ``... x S``.

    Returns:
        ``a`` and ``b``, ``... x 2``.
    """
    inverse = 1.0 / sizes
    centred = inverse - inverse.mean()
    slope = (values - values.mean(-1, keepdims=True)) @ centred / (centred @ centred)
    return np.stack([values.mean(-1) - slope * inverse.mean(), slope], axis=-1)


def reference_curve(
    results: Sequence[Sequence[Done]],
    stop: StoppingRule,
    *,
    n_references: int,
    more: int,
    seed: int,
) -> ReferenceCurve:
    """Fit ``a + b / K`` to items at the stop and to squared errors at a fixed number.

    Items need not follow such a curve, so that it is put through the two largest sizes,
    which are next to what is asked; intervals also hold what the fit to all sizes says.

    All sizes have the same targets, so that these cancel in the comparison; intervals
    are over resampled targets, the same for all sizes. Errors are compared after the
    same number of items, the mean stop with the most references, because at the stop
    they are all about as large as the width allows.

    Args:
        results: Runs of one model, from few references in the simulation to most, the
            same targets each time, in the same order.
        stop: The asked rule.
        n_references: References of the user, ``K``.
        more: How many more are asked about.
        seed: Seed of the resampling.

    Raises:
        ValueError: If targets differ from size to size.
    """
    runs = [find_stops(group, stop) for group in results]
    if any(r.targets != runs[0].targets for r in runs):
        raise ValueError("results: expected the same targets for every size")
    items = np.stack([r.items for r in runs], axis=-1)
    at_n = max(1, round(float(runs[-1].items.mean())))
    squares = np.stack([squared_errors(group, at_n) for group in results], axis=-1)
    # Folds may differ by a reference; what is fitted are their means.
    used = np.array(
        [np.mean([d.task.fold.n_references for d in group]) for group in results]
    )
    weights = resampled(runs[0].targets, seed=seed)
    place = (float(n_references), float(n_references + more))
    items_at = _fits(used, items, weights, place)
    rmse_at = [np.sqrt(fit) for fit in _fits(used, squares, weights, place)]
    return ReferenceCurve(
        model=results[0][0].task.model,
        sizes=used.tolist(),
        items=items.mean(0).tolist(),
        rmse=np.sqrt(squares.mean(0)).tolist(),
        at_n=at_n,
        references=n_references,
        more=more,
        items_now=_interval([fit[:, 0] for fit in items_at]),
        items_more=_interval([fit[:, 1] for fit in items_at]),
        items_change=_interval([_change(fit) for fit in items_at]),
        rmse_now=_interval([fit[:, 0] for fit in rmse_at]),
        rmse_more=_interval([fit[:, 1] for fit in rmse_at]),
        rmse_change=_interval([_change(fit) for fit in rmse_at]),
    )


def _fits(
    sizes: np.ndarray, values: np.ndarray, weights: np.ndarray, at: tuple[float, ...]
) -> list[np.ndarray]:
    """Predictions through the two largest sizes, and of the fit to all."""
    return [
        _predict(sizes[-2:], values[:, -2:], weights, at),
        _predict(sizes, values, weights, at),
    ]


def _predict(
    sizes: np.ndarray, values: np.ndarray, weights: np.ndarray, at: tuple[float, ...]
) -> np.ndarray:
    """Predictions at ``at``, at least 0: the whole sample first, then resamples."""
    means = (weights @ values) / weights.sum(-1, keepdims=True)
    fit = fit_inverse(sizes, np.vstack([values.mean(0), means]))
    return np.stack([fit[:, 0] + fit[:, 1] / k for k in at], axis=-1).clip(min=0.0)


def _change(pair: np.ndarray) -> np.ndarray:
    now, more = pair.T
    return np.where(now > 0, more / np.where(now > 0, now, 1.0) - 1.0, 0.0)


def _interval(fits: Sequence[np.ndarray]) -> Estimate:
    """The first fit with an interval that holds those of all."""
    bounds = np.stack([np.quantile(fit[1:], [0.025, 0.975]) for fit in fits])
    low, high = float(bounds[:, 0].min()), float(bounds[:, 1].max())
    return Estimate(value=float(fits[0][0]), low=low, high=high)

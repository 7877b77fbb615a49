"""One model against another on the same targets, references and seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gp_eval.experiments.calibration import run_clusters
from gp_eval.experiments.clusters import jackknife_standard_error
from gp_eval.experiments.metrics import evaluation_weighted_rmse
from gp_eval.experiments.store import CellResult

__all__ = ["RmseRatio", "geometric_mean", "rmse_ratio", "squares_per_target"]


@dataclass(frozen=True)
class RmseRatio:
    """Integrated RMSE of a model relative to another's, on the same runs.

    Attributes:
        ratio: The model's integral over the base's; below 1 the model is better.
        log_se: Standard error of the ratio's logarithm, by the jackknife over targets
            and seeds; NaN for one of each.
        integral: The model's evaluation-weighted integrated RMSE over n / N in
            ``n_first / N .. n_max / N``, all of it unless runs were cut.
        base_integral: The base's.
        n_first: The first ``n`` at which both have an estimate.
        n_max: The last ``n`` of both.
        n_seeds: Pairs of seed and draw that both have; others are left out.
        n_targets: Targets over all draws.
    """

    ratio: float
    log_se: float
    integral: float
    base_integral: float
    n_first: int
    n_max: int
    n_seeds: int
    n_targets: int

    @property
    def se(self) -> float:
        """Standard error of the ratio itself, to first order."""
        return self.ratio * self.log_se


def squares_per_target(
    results: Iterable[CellResult],
) -> dict[tuple[int, str], Tensor]:
    """Mean over seeds of the squared errors, ``n_max``, by draw and target."""
    errors: dict[tuple[int, str], list[Tensor]] = defaultdict(list)
    for result in results:
        for name, mean, truth in zip(
            result.targets, result.curves.mean, result.truth, strict=True
        ):
            errors[result.cell.draw, name].append((mean - truth).square())
    return {key: torch.stack(rows).mean(0) for key, rows in errors.items()}


def rmse_ratio(results: Sequence[CellResult], base: Sequence[CellResult]) -> RmseRatio:
    r"""Ratio of integrated RMSEs, with runs pooled in the squared domain.

    Both are read on the same draws, seeds and ``n``. The standard error of the log
    ratio is by the jackknife over targets and seeds, each left out in both models at
    once: their errors go together, so that it is far less than that of two integrals by
    themselves.

    Args:
        results: Results of the model in one setting.
        base: Results of the model to compare with, in the same setting.

    Raises:
        ValueError: If they share no seed, or are of other data, targets or settings.
    """
    mine, theirs = _by_key(results), _by_key(base)
    if not (shared := sorted(mine.keys() & theirs.keys())):
        raise ValueError("results, base: expected a common seed and draw, found none")
    pairs = [(mine[key], theirs[key]) for key in shared]
    settings = {_setting(result) for pair in pairs for result in pair}
    if len(settings) > 1:
        raise ValueError(f"results, base: expected one setting, got {sorted(settings)}")
    if any(a.targets != b.targets for a, b in pairs):
        raise ValueError("results, base: expected the same targets")
    clusters = run_clusters([a for a, _ in pairs])
    n_items, squares = pairs[0][0].n_items, _squares(pairs)
    first = int(squares.isfinite().all(0).all(0).long().argmax())
    squares = squares[..., first:]

    def integrals(kept: Tensor) -> Tensor:
        rmse = (kept @ squares / kept.sum(-1, keepdim=True)).sqrt()
        return evaluation_weighted_rmse(rmse, n_first=first + 1, n_items=n_items)

    def log_ratio(kept: Tensor) -> Tensor:
        own, other = integrals(kept)
        return (own / other).log()

    own, other = integrals(squares.new_ones(1, len(clusters))).squeeze(-1).tolist()
    return RmseRatio(
        ratio=own / other,
        log_se=float(jackknife_standard_error(log_ratio, clusters)),
        integral=own,
        base_integral=other,
        n_first=first + 1,
        n_max=first + squares.shape[-1],
        n_seeds=len(shared),
        n_targets=len({(key[0], name) for key in shared for name in mine[key].targets}),
    )


def geometric_mean(ratios: Sequence[RmseRatio]) -> tuple[float, float]:
    """Geometric mean of ratios over cells and the standard error of its logarithm.

    Cells count alike, and as independent of each other.

    Raises:
        ValueError: For no ratios.
    """
    if not ratios:
        raise ValueError("ratios: expected at least one, got none")
    logs = [math.log(r.ratio) for r in ratios]
    error = math.sqrt(math.fsum(r.log_se**2 for r in ratios)) / len(ratios)
    return math.exp(math.fsum(logs) / len(logs)), error


def _by_key(results: Sequence[CellResult]) -> dict[tuple[int, int], CellResult]:
    return {(r.cell.draw, r.cell.seed): r for r in results}


def _setting(result: CellResult) -> tuple[str, str, float, str]:
    cell = result.cell
    return cell.data, cell.regime, cell.reference_fraction, result.fingerprint


def _squares(pairs: Sequence[tuple[CellResult, CellResult]]) -> Tensor:
    """Squared errors of both models, ``2 x R x n`` over the ``n`` that both have."""
    n_max = min(r.curves.mean.shape[1] for pair in pairs for r in pair)
    return torch.stack(
        [
            torch.cat(
                [r.curves.mean[:, :n_max] - r.truth.unsqueeze(-1) for r in results]
            ).square()
            for results in zip(*pairs, strict=True)
        ]
    )

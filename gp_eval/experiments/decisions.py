"""How often a decision about the score is wrong, and what it costs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from gp_eval.decision import Decision
from gp_eval.experiments.store import CellResult
from gp_eval.models.protocol import Performance

__all__ = [
    "DISTANCES",
    "MARGINS",
    "DecisionRates",
    "DecisionSummary",
    "first_decision",
    "summarise_decisions",
]

MARGINS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, math.inf)
"""Edges of the classes of ``|R - threshold|``, in score units."""

DISTANCES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
"""Distances of thresholds that are set relative to each target's true score."""


@dataclass(frozen=True)
class DecisionRates:
    """What a rule gives over a class of runs.

    Attributes:
        low: Smallest ``|R - threshold|`` of the class, in score units.
        high: Its end; the same as ``low`` where every run has this distance.
        runs: Decisions of the class.
        error: Share of runs that were decided wrongly, ``None`` without any run.
        undecided: Share of runs that were not decided before the last item; at ``n =
            N`` the verdict is exact, and with curves cut before it there is none.
        mean_fraction: Mean of n / N at the decision, or at the last item.
    """

    low: float
    high: float
    runs: int
    error: float | None
    undecided: float | None
    mean_fraction: float | None


@dataclass(frozen=True)
class DecisionSummary:
    """A decision rule on all runs of one model in one setting.

    Attributes:
        data: Name of the data set.
        regime: How targets were split off.
        reference_fraction: Share of the pool used as references.
        model: Name of the model.
        decision: The rule.
        overall: All runs.
        by_margin: Runs by ``|R - threshold|``.
        relative: Runs with the threshold at each distance below the target's true
            score and at the same distance above it, whatever the one of the rule.
    """

    data: str
    regime: str
    reference_fraction: float
    model: str
    decision: Decision
    overall: DecisionRates
    by_margin: tuple[DecisionRates, ...]
    relative: tuple[DecisionRates, ...]

    def record(self) -> dict[str, Any]:
        """For ``gp-eval simulate --json``; the last class has no end, ``null``."""
        return {
            "statement": self.decision.statement,
            "level": self.decision.level,
            "window": self.decision.window,
            **_without_margin(self.overall),
            "by_margin": [
                {**asdict(r), "high": None if math.isinf(r.high) else r.high}
                for r in self.by_margin
            ],
            "relative": [
                {"distance": r.low, **_without_margin(r)} for r in self.relative
            ],
        }


def _without_margin(rates: DecisionRates) -> dict[str, Any]:
    return {k: v for k, v in asdict(rates).items() if k not in ("low", "high")}


def first_decision(
    mean: Tensor, variance: Tensor, decision: Decision, *, truth: Tensor, n_items: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Where each run is decided and how, on whole curves ``R x n_max``.

    Args:
        mean: Estimates.
        variance: Variances of the benchmark score.
        decision: The rule; see :meth:`~gp_eval.Decision.verdict`.
        truth: The scores themselves, shape ``R``: what is known at ``n = N``.
        n_items: ``N``.

    Returns:
        Items at the decision, or ``n_max``; the verdict; and whether the belief decided
        before the last item, shape ``R`` each. Without a decision the verdict is the
        true one if curves reach ``n = N``; otherwise it means nothing.
    """
    n_runs, n_max = mean.shape
    p = decision.probability(Performance(mean, variance))[:, : n_items - 1]
    n = torch.full((n_runs,), n_max, dtype=torch.long)
    exact = torch.tensor([decision.holds(r) for r in truth.tolist()])
    if p.shape[1] < decision.window:
        return n, exact, torch.zeros_like(exact)

    def lasting(side: Tensor) -> Tensor:
        return side.unfold(1, decision.window, 1).all(-1)

    yes = lasting(p > decision.level)
    either = yes | lasting(1.0 - p > decision.level)
    decided, first = either.any(1), either.long().argmax(1)
    verdict = yes.gather(1, first.unsqueeze(-1)).squeeze(-1)
    return (
        torch.where(decided, first + decision.window, n),
        torch.where(decided, verdict, exact),
        decided,
    )


def summarise_decisions(
    results: Iterable[CellResult],
    decision: Decision,
    *,
    margins: Sequence[float] = MARGINS,
    distances: Sequence[float] = DISTANCES,
) -> list[DecisionSummary]:
    """One summary for each data set, regime, fraction and model, in order of arrival.

    The rule is applied to the stored curves: one simulation serves any number of them.
    Every target is a model whose true score is known, so the error rate is measured.
    Near the threshold decisions are hard and far from it easy: rates for one threshold
    say as much about how many targets lie near it as about the rule.

    Args:
        results: Finished cells.
        decision: The rule.
        margins: Edges of the classes of ``|R - threshold|``, rising.
        distances: Distances of the thresholds set relative to each true score.
    """
    groups: dict[tuple[str, str, float, str], list[CellResult]] = defaultdict(list)
    for result in results:
        c = result.cell
        groups[c.data, c.regime, c.reference_fraction, c.model].append(result)
    summaries = []
    for key, group in groups.items():
        runs = _Runs(group)
        margin = (runs.truth - decision.threshold).abs()
        outcome = runs.outcome(decision)
        by_margin = [
            _rates(low, high, [o[(low <= margin) & (margin < high)] for o in outcome])
            for low, high in pairwise(margins)
        ]
        relative = [_rates(d, d, runs.at_distance(decision, d)) for d in distances]
        summaries.append(
            DecisionSummary(
                *key,
                decision=decision,
                overall=_rates(0.0, math.inf, outcome),
                by_margin=tuple(by_margin),
                relative=tuple(relative),
            )
        )
    return summaries


class _Runs:
    """All runs of a model in one setting."""

    def __init__(self, group: Sequence[CellResult]) -> None:
        self.mean = torch.cat([r.curves.mean for r in group])
        self.variance = torch.cat([r.curves.variance for r in group]).clamp_min(0.0)
        self.truth = torch.cat([r.truth for r in group])
        self.n_items = group[0].n_items

    def outcome(self, decision: Decision, *, relative: bool = False) -> list[Tensor]:
        """Wrong, undecided and n / N of each run.

        A relative threshold is one on what is left of the score minus its true value.
        """
        shift = self.truth if relative else torch.zeros_like(self.truth)
        truth = self.truth - shift
        n, verdict, decided = first_decision(
            self.mean - shift.unsqueeze(-1),
            self.variance,
            decision,
            truth=truth,
            n_items=self.n_items,
        )
        true = torch.tensor([decision.holds(r) for r in truth.tolist()])
        return [decided & (verdict != true), ~decided, n.double() / self.n_items]

    def at_distance(self, decision: Decision, distance: float) -> list[Tensor]:
        both = [
            self.outcome(replace(decision, threshold=d), relative=True)
            for d in (-distance, distance)
        ]
        return [torch.cat(parts) for parts in zip(*both, strict=True)]


def _rates(low: float, high: float, outcome: Sequence[Tensor]) -> DecisionRates:
    wrong, undecided, fraction = (values.double() for values in outcome)
    if not len(wrong):
        return DecisionRates(low, high, 0, None, None, None)
    return DecisionRates(
        low=low,
        high=high,
        runs=len(wrong),
        error=float(wrong.mean()),
        undecided=float(undecided.mean()),
        mean_fraction=float(fraction.mean()),
    )

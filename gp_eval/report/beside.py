"""Targets beside the reference models that scored about the same."""

from __future__ import annotations

from dataclasses import dataclass

from gp_eval.report.content import Report

__all__ = ["Beside", "Gap", "beside"]

_NEAREST = 6
"""Reference models shown around each target, on either side."""


@dataclass(frozen=True)
class Beside:
    """A row of the table.

    Attributes:
        name: A target or a reference model.
        score: Its estimate or its full-benchmark score.
        low: Lower end of the interval of a target.
        high: Upper end of the interval of a target.
        is_target: Which of both it is.
    """

    name: str
    score: float
    low: float
    high: float
    is_target: bool


@dataclass(frozen=True)
class Gap:
    """Reference models left out between two rows.

    Attributes:
        n: How many.
    """

    n: int


def beside(report: Report, nearest: int = _NEAREST) -> list[Beside | Gap]:
    """Targets and references by score, the best first, few of many references.

    Shown are the best and the worst reference and the nearest of each target.
    """
    rows = [
        Beside(t.target, t.estimate, t.low, t.high, is_target=True)
        for t in report.targets
    ]
    rows += [
        Beside(r.model, r.score, r.score, r.score, is_target=False)
        for r in report.references
        if r.score is not None
    ]
    rows.sort(key=lambda row: (-row.score, not row.is_target))
    references = [i for i, row in enumerate(rows) if not row.is_target]
    kept = {i for i, row in enumerate(rows) if row.is_target}
    kept |= set(references[:1]) | set(references[-1:])
    for target in [i for i, row in enumerate(rows) if row.is_target]:
        kept |= set([i for i in references if i < target][-nearest:])
        kept |= set([i for i in references if i > target][:nearest])
    shown: list[Beside | Gap] = []
    left_out = 0
    for i, row in enumerate(rows):
        if i not in kept:
            left_out += 1
            continue
        if left_out:
            shown.append(Gap(left_out))
            left_out = 0
        shown.append(row)
    return shown

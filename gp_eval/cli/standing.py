"""Where a session stands, target by target, for commands that print it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gp_eval.cli.output import note
from gp_eval.loop import Result
from gp_eval.session import MultiTargetSession, Session
from gp_eval.stopping import StoppingRule

__all__ = [
    "BUDGET_SPENT",
    "fell_short",
    "note_off_range",
    "note_untrained",
    "off_range",
    "pending_counts",
    "record",
    "skipped_counts",
]

BUDGET_SPENT = 3
"""Exit code where the budget was spent before the wanted width."""

AnySession = Session | MultiTargetSession


def pending_counts(session: AnySession) -> dict[str, int]:
    """Number of pending items of each target."""
    if isinstance(session, Session):
        return {session.targets[0]: len(session.pending)}
    return _count(session.targets, [target for target, _ in session.pending])


def skipped_counts(session: AnySession) -> dict[str, int]:
    """Number of items of each target that were skipped."""
    if isinstance(session, Session):
        return {session.targets[0]: len(session.skipped)}
    return _count(session.targets, [target for target, _ in session.skipped])


def _count(targets: Sequence[str], named: Sequence[str]) -> dict[str, int]:
    counts = dict.fromkeys(targets, 0)
    for target in named:
        counts[target] += 1
    return counts


def record(result: Result, *, pending: int, skipped: int) -> dict[str, Any]:
    """For ``--json``; keys are stable."""
    return {
        "target": result.target,
        "estimate": result.mean,
        "low": result.low,
        "high": result.high,
        "width": result.width,
        "n": result.n,
        "N": result.N,
        "pending": pending,
        "skipped": skipped,
        "done": result.stop_reason is not None,
        "stop_reason": result.stop_reason,
        "off_range_since": None if result.range is None else result.range.since,
        "off_range": off_range(result),
    }


def fell_short(results: Sequence[Result], stop: StoppingRule) -> bool:
    """Whether a budget was spent before the wanted width."""
    return any(
        result.stop_reason == "max_items" and result.width > stop.width
        for result in results
    )


def note_off_range(results: Sequence[Result]) -> None:
    """Say so where a target left what its references span."""
    for result in results:
        sentence = off_range(result)
        if sentence is not None:
            note(f"{result.target}: {sentence}")


def off_range(result: Result) -> str | None:
    """What was seen and done about it, where a target left the references' range."""
    return None if result.range is None else result.range.sentence


def note_untrained(session: AnySession) -> None:
    """Say so where the numbers are those of a model that has learned nothing yet."""
    left = session.initial_left if isinstance(session, MultiTargetSession) else 0
    if left:
        note(
            f"Not trained yet: the estimates mean nothing before {left} more scores of "
            "the initial items are told."
        )

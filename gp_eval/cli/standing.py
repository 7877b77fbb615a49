"""Where a session stands, target by target, for commands that print it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gp_eval.cli.output import note
from gp_eval.report.outcome import cost_sentence, decision_sentence, shortfall
from gp_eval.result import Result
from gp_eval.session import MultiTargetSession, Session
from gp_eval.stopping import StoppingRule

__all__ = [
    "BUDGET_SPENT",
    "details",
    "fell_short",
    "note_off_range",
    "note_untrained",
    "off_range",
    "pending_counts",
    "record",
    "skipped_counts",
]

BUDGET_SPENT = 3
"""Exit code where a budget was spent before the wanted width or decision."""

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


def record(
    result: Result, stop: StoppingRule, *, pending: int, skipped: int
) -> dict[str, Any]:
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
        **_asked_for(result, stop),
        "off_range_since": None if result.range is None else result.range.since,
        "off_range": off_range(result),
    }


def _asked_for(result: Result, stop: StoppingRule) -> dict[str, Any]:
    """Keys that are there where a statement is to be decided, or items cost."""
    more: dict[str, Any] = {}
    if stop.until is not None:
        more |= {
            "statement": stop.until.statement,
            "level": stop.until.level,
            "probability": result.probability,
            "verdict": result.verdict,
        }
    if result.cost is not None:
        more |= {"cost": result.cost, "max_cost": stop.max_cost}
    return more


def fell_short(results: Sequence[Result], stop: StoppingRule) -> bool:
    """Whether a budget was spent before the wanted width, or the decision."""
    return any(shortfall(result, stop) is not None for result in results)


def details(session: AnySession) -> list[str]:
    """What is decided and what was spent, a line each."""
    costs = session.costs if isinstance(session, Session) else None
    stop = session.config.stop
    return [
        f"{result.target}: {sentence}"
        for result in session.estimates()
        for sentence in (
            decision_sentence(result, stop),
            cost_sentence(result, stop, costs),
        )
        if sentence is not None
    ]


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

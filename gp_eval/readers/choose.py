"""Which task, metric and filter: never guessed where there is a choice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gp_eval.errors import DataError
from gp_eval.readers.lm_eval_run import is_wanted
from gp_eval.readers.records import SCORED, Block, Log

__all__ = ["Choice", "choose"]

_SHOWN = 12


@dataclass(frozen=True)
class Choice:
    """The blocks that were chosen.

    Args:
        blocks: At least one; all of one metric, and of one filter within a task.
        tasks: Their tasks, sorted.
        metric: Their metric.
        filters: Their filters, by task; ``""`` where the format has none.
    """

    blocks: list[Block]
    tasks: list[str]
    metric: str
    filters: dict[str, str]


def choose(
    logs: Sequence[Log],
    *,
    tasks: Sequence[str] = (),
    metric: str | None = None,
    filter: str | None = None,
) -> Choice:
    """Narrow logs down to one score for each model, item and run.

    Args:
        logs: What was read.
        tasks: Names, patterns such as ``mmlu_*``, or names of suites in the logs.
        metric: Name of the metric; needed where there are several.
        filter: Name of the answer filter; needed where there are several.

    Raises:
        DataError: Where more than one is left (the choices are listed with their
            means), the named one is not there, or it is refused (with the reason).
    """
    blocks = [block for log in logs for block in log.blocks]
    refused = {name: why for log in logs for name, why in log.refused.items()}
    blocks = _of_tasks(blocks, logs, tasks, refused)
    blocks = _of_metric(blocks, metric, refused)
    blocks = _of_filter(blocks, filter)
    return Choice(
        blocks=blocks,
        tasks=sorted({block.task for block in blocks}),
        metric=blocks[0].metric,
        filters={block.task: block.filter for block in blocks},
    )


def _of_tasks(
    blocks: list[Block],
    logs: Sequence[Log],
    tasks: Sequence[str],
    refused: dict[str, str],
) -> list[Block]:
    present = sorted({block.task for block in blocks})
    if not present:
        reasons = "; ".join(f"{name}: {why}" for name, why in sorted(refused.items()))
        raise DataError(
            f"no usable score in these logs{': ' if reasons else ''}{reasons}"
        )
    if not tasks:
        if len(present) > 1:
            raise DataError(
                "several tasks: name one or more with --task (patterns such as "
                f"'mmlu_*' or '*' work):\n{_listing(blocks, lambda b: b.task)}"
            )
        return blocks
    suites = {name: members for log in logs for name, members in log.suites.items()}
    kept: set[str] = set()
    for task in tasks:
        members = _members(task, suites)
        found = {name for name in present if is_wanted(name, (task, *members))}
        if not found:
            raise DataError(
                f"--task {task}: not in these logs; they hold:\n"
                + (_listing(blocks, lambda b: b.task))
            )
        kept |= found
    return [block for block in blocks if block.task in kept]


def _members(name: str, suites: dict[str, list[str]]) -> set[str]:
    """All tasks below a suite, which may consist of suites."""
    found: set[str] = set()
    waiting = list(suites.get(name, ()))
    while waiting:
        member = waiting.pop()
        if member not in found:
            found.add(member)
            waiting += suites.get(member, ())
    return found


def _of_metric(
    blocks: list[Block], metric: str | None, refused: dict[str, str]
) -> list[Block]:
    present = {block.metric for block in blocks}
    listing = _listing(blocks, lambda b: b.metric)
    if metric is None:
        if len(present) > 1:
            unusable = "".join(f"\n  not {m}: {why}" for m, why in refused.items())
            raise DataError(
                f"several metrics: name one with --metric:\n{listing}{unusable}"
            )
        return blocks
    if metric not in present:
        why = refused.get(metric, "not in these logs")
        raise DataError(f"--metric {metric}: {why}; usable ones:\n{listing}")
    kept = [block for block in blocks if block.metric == metric]
    lacking = sorted({b.task for b in blocks} - {b.task for b in kept})
    if lacking:
        raise DataError(f"--metric {metric}: tasks without it: {', '.join(lacking)}")
    return kept


def _of_filter(blocks: list[Block], filter: str | None) -> list[Block]:
    listing = _listing(blocks, lambda b: b.filter or "(none named)")
    if filter is not None:
        kept = [block for block in blocks if block.filter == filter]
        lacking = sorted({b.task for b in blocks} - {b.task for b in kept})
        if lacking:
            raise DataError(
                f"--filter {filter}: tasks without it: {', '.join(lacking)}; "
                f"the logs hold:\n{listing}"
            )
        return kept
    by_task = defaultdict(set)
    for block in blocks:
        by_task[block.task].add(block.filter)
    if any(len(filters) > 1 for filters in by_task.values()):
        raise DataError(
            "several filters, each with a score for every item: name one with "
            f"--filter:\n{listing}"
        )
    return blocks


def _listing(blocks: Iterable[Block], key: object) -> str:
    """Choices, a line each: how many scores, and their mean."""
    scores: dict[str, list[np.ndarray]] = defaultdict(list)
    for block in blocks:
        scores[key(block)].append(block.scores[block.states == SCORED])  # type: ignore[operator]
    lines = []
    for name, parts in sorted(scores.items()):
        values = np.concatenate(parts)
        mean = f"mean {values.mean():.4g}" if len(values) else "no score"
        lines.append(f"  {name or '(unnamed)'} ({len(values)} scores, {mean})")
    more = len(lines) - _SHOWN
    return "\n".join(lines[:_SHOWN] + ([f"  and {more} more"] if more > 0 else []))

"""Ids of items: that of the log, with the task before it where there are several."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from typing import Any

from gp_eval._names import some
from gp_eval.errors import DataError

__all__ = [
    "as_inspect_ids",
    "as_lm_eval_samples",
    "item_name",
    "natural_key",
    "split_items",
]


def item_name(task: str, item: str, *, several: bool) -> str:
    """``item``, or ``task/item`` in references of several tasks."""
    return f"{task}/{item}" if several else item


def natural_key(item: str) -> tuple[int, int, str]:
    """Sorts ids that are whole numbers as numbers, before all others."""
    if item.isascii() and item.isdecimal() and len(item) < 19:
        return 0, int(item), item
    return 1, 0, item


def split_items(
    items: Sequence[str],
    *,
    meta: Mapping[str, Any],
    groups: Mapping[str, str],
    task: str | None = None,
) -> dict[str, list[str]]:
    """Ids as the harness knows them, by task.

    Args:
        items: Ids of references.
        meta: Their ``meta``, which names the tasks they were built from.
        groups: Group of each item; in references of several tasks it is the task.
        task: The task, for references that do not name one.

    Raises:
        DataError: If the task is not known.
    """
    tasks = meta.get("tasks") or []
    if len(tasks) > 1:
        split: dict[str, list[str]] = {}
        for item in items:
            name = groups[item]
            split.setdefault(name, []).append(item.removeprefix(f"{name}/"))
        return split
    only = task or (tasks[0] if tasks else None)
    if not only:
        raise DataError(
            "the references do not name their task: give --task, or build them with "
            "gp-eval refs build"
        )
    return {only: list(items)} if items else {}


def as_lm_eval_samples(split: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    """``--samples`` of lm-eval: sorted and unique, because it mislabels other lists.

    Only tasks with items are named; run exactly these with ``--tasks``, because
    lm-eval runs any other task, and one with an empty list, in full.

    Raises:
        DataError: For an id that is not a document number.
    """
    samples = {}
    for task, ids in split.items():
        wrong = [i for i in ids if not (i.isascii() and i.isdecimal())]
        if wrong:
            raise DataError(f"not document numbers of lm-eval: {some(wrong)}")
        if ids:
            samples[task] = sorted({int(i) for i in ids})
    return samples


def as_inspect_ids(split: Mapping[str, Sequence[str]]) -> list[str]:
    """``--sample-id`` of Inspect, whose ids are patterns: escaped.

    With several tasks each id has its task before it.
    """
    several = len(split) > 1
    return [
        (f"{task}:" if several else "") + glob.escape(item)
        for task, ids in split.items()
        for item in ids
    ]

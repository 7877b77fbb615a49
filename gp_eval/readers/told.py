"""Scores of one target out of a log, for the session that asked for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gp_eval._names import some
from gp_eval.errors import DataError, ScoreError
from gp_eval.readers.build import check_subset
from gp_eval.readers.choose import Choice, choose
from gp_eval.readers.collect import Collection, read_logs
from gp_eval.readers.detect import detect
from gp_eval.readers.digests import (
    check_documents,
    check_hashes,
    count_other_prompts,
)
from gp_eval.readers.lm_eval_gold import GOLD
from gp_eval.readers.policies import OnError, Policies
from gp_eval.readers.records import Options
from gp_eval.readers.scores import LongTable, long_table, settle
from gp_eval.readers.tables import csv_columns

__all__ = ["Told", "is_log", "read_told", "told_of", "value_options"]


@dataclass(frozen=True)
class Told:
    """Scores of a target.

    Args:
        scores: By item.
        counts: What every policy did.
        is_prefix: Whether these are the first items of the benchmark, as ``--limit``
            takes them: no random sample.
    """

    scores: dict[str, float]
    counts: dict[str, Any]
    is_prefix: bool


def is_log(path: Path) -> bool:
    """Whether a file is a log, not a plain list of items and scores."""
    if not path.is_file():
        return False
    found = detect(path)
    if found == "csv":
        with path.open("rb") as stream:
            if stream.read(4) != b"PAR1":
                return not {"item", "score"} <= set(csv_columns(path)[0])
    return found is not None


def read_told(
    path: Path,
    *,
    items: Sequence[str],
    meta: Mapping[str, Any],
    metric: str | None = None,
    filter: str | None = None,
    model: str | None = None,
    on_error: OnError = "skip",
) -> Told:
    """Scores of one model from a log or a folder of logs.

    Metric, filter, scale and direction are those of the references unless given.

    Args:
        path: The log.
        items: All items of the session.
        meta: ``meta`` of its references.
        metric: Name of the metric.
        filter: Name of the answer filter.
        model: The model, where the log holds several.
        on_error: ``"skip"`` leaves failed items to be asked for again, ``"zero"``
            scores them as worst, ``"error"`` refuses.

    Raises:
        DataError: For a log that cannot be used, or with a choice left.
        ScoreError: For items that are not the session's, by id or by digest.
    """
    metric = metric or meta.get("metric")
    collection = read_logs([path], options=value_options(metric))
    return told_of(
        collection,
        items=items,
        meta=meta,
        metric=metric,
        filter=filter,
        model=model,
        on_error=on_error,
    )


def told_of(
    collection: Collection,
    *,
    items: Sequence[str],
    meta: Mapping[str, Any],
    metric: str | None,
    filter: str | None,
    model: str | None,
    on_error: OnError,
) -> Told:
    """As :func:`read_told`, of logs that were read already."""
    metric = metric or meta.get("metric")
    choice, several = _choose(collection, meta, metric, filter)
    choice = _of_model(choice, model)
    for block in choice.blocks:
        check_subset(block, len(items))
    table = long_table(choice, several=several)
    counts: dict[str, Any] = {"records": len(table.frame)}
    digests = check_hashes(table, "check", counts)
    check_documents(digests, meta.get("item_hashes") or {})
    counts["items_with_other_prompts_than_the_references"] = count_other_prompts(
        table, meta.get("prompt_hashes") or {}
    )
    scores = _by_item(table, _policies(meta, on_error), counts)
    scores = _known(scores, items, meta, counts)
    n = len(scores)
    return Told(
        scores=scores,
        counts=counts,
        is_prefix=1 < n < len(items) and set(items[:n]) == set(scores),
    )


def _policies(meta: Mapping[str, Any], on_error: OnError) -> Policies:
    """Scale and direction of the references."""
    scale = meta.get("scale")
    return Policies(
        on_error=on_error,
        scale=tuple(scale) if isinstance(scale, list) else scale,
        lower_is_better=meta.get("lower_is_better"),
    )


def _known(
    scores: Mapping[str, float],
    items: Sequence[str],
    meta: Mapping[str, Any],
    counts: dict[str, Any],
) -> dict[str, float]:
    """Scores of items of the session; those that the build left out are counted."""
    known = set(items)
    left_out = set(meta.get("items_left_out") or ())
    unknown = [item for item in scores if item not in known and item not in left_out]
    if unknown:
        raise ScoreError(
            f"item: {some(unknown)} are not among the {len(items)} items of this "
            f"benchmark, such as {some(items, 3)}"
        )
    counts["items_not_in_references"] = sum(item not in known for item in scores)
    return {item: score for item, score in scores.items() if item in known}


def value_options(metric: str | None) -> Options:
    """Options that read a metric again as the references were read."""
    names = {"gold_prob": None, **{name: key for key, name in GOLD.items()}}
    if metric in names:
        return Options(value="gold-prob", metric=names[metric])
    return Options(metric=metric)


def _choose(
    collection: Collection,
    meta: Mapping[str, Any],
    metric: str | None,
    filter: str | None,
) -> tuple[Choice, bool]:
    """The blocks, and whether ids have their task before them."""
    filters = meta.get("filters") or {}
    if filter is None:
        for log in collection.logs:
            have = {(block.task, block.filter) for block in log.blocks}
            log.blocks = [
                b
                for b in log.blocks
                if b.filter == filters.get(b.task, b.filter)
                or (b.task, filters[b.task]) not in have
            ]
    present = {block.task for log in collection.logs for block in log.blocks}
    tasks = list(meta.get("tasks") or ())
    if present == {""} or not tasks:
        return choose(collection.logs, metric=metric, filter=filter), False
    there = [task for task in tasks if task in present]
    if not there:
        raise DataError(
            f"the log is of task {some(sorted(present))}, the references are of "
            f"{some(tasks)}"
        )
    choice = choose(collection.logs, tasks=there, metric=metric, filter=filter)
    return choice, len(tasks) > 1


def _of_model(choice: Choice, model: str | None) -> Choice:
    names = sorted({block.model for block in choice.blocks})
    if model is None and len(names) == 1:
        return choice
    if model not in names:
        raise DataError(
            f"the log holds the models {some(names)}: name one with --log-model"
            + (f", not {model!r}" if model else "")
        )
    return Choice(
        blocks=[block for block in choice.blocks if block.model == model],
        tasks=choice.tasks,
        metric=choice.metric,
        filters=choice.filters,
    )


def _by_item(
    table: LongTable, policies: Policies, counts: dict[str, Any]
) -> dict[str, float]:
    settled = settle(table, policies, counts)
    return {
        table.items[i]: score
        for i, score in zip(settled["item"], settled["score"].tolist(), strict=True)
    }

"""Samples of lm-eval: ``--log_samples`` of 0.4 and ``--write_out`` of 0.3.

One row per document and filter. Files of 0.4.3-0.4.6 do not name the filter: the k-th
row of a document belongs to the k-th unnamed filter, ``block-k``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gp_eval._names import some
from gp_eval.errors import DataError
from gp_eval.readers.lm_eval_gold import GOLD, gold_of_row, gold_of_write_out
from gp_eval.readers.lm_eval_run import Run, is_wanted, run_of
from gp_eval.readers.records import Log, Options, Rows, hash_number
from gp_eval.readers.source import json_rows

__all__ = ["read_lm_eval"]

_STANDARD = frozenset(
    [
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "truth"),
        *("filter", "metrics", "doc_hash", "prompt_hash", "target_hash"),
    ]
)
_WRITE_OUT_KEY = re.compile(r"(prompt|logit)_\d+$")


class _Filter:
    """Rows of one filter, and the order of their ids in each pass over them."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.ascending = True
        self.first: dict[int, int] = {}
        self._times: Counter[int] = Counter()
        self._last: dict[int, int] = {}

    def place(self, doc_id: int, digest: int) -> int | None:
        """Which repetition of the document this is; None for another document."""
        self._times[doc_id] = turn = self._times[doc_id] + 1
        self.ascending &= doc_id > self._last.get(turn, -1)
        self._last[turn] = doc_id
        before = self.first.setdefault(doc_id, len(self.rows))
        if turn > 1 and self.rows.hash_of(before) != digest:
            return None
        return turn


def read_lm_eval(path: Path, options: Options) -> Log:
    """Read one samples file.

    Raises:
        DataError: For rows without ``doc_id``, or ids that cannot be right, as
            ``--samples`` writes them for a list that is not sorted.
    """
    log = Log(path, "lm-eval")
    run = run_of(path, options.tasks)
    log.suites = run.suites
    wanted = options.tasks + tuple(
        member for task in options.tasks for member in run.suites.get(task, ())
    )
    if not is_wanted(run.task, wanted) and not any(
        is_wanted(name, options.tasks) for name in run.suites
    ):
        log.notes["files of other tasks"] += 1
        return log
    filters, named = _gather(path, options, log)
    for name, part in filters.items():
        _check_ids(path, run, part, named)
        log.refused.update(part.rows.refused)
        log.blocks += part.rows.blocks(
            model=run.model,
            task=run.task,
            source=path,
            filter=name,
            date=run.date,
            full_size=run.original,
            ascending=part.ascending or not named,  # older ones had no --samples
            higher_is_better=run.higher_is_better,
            settings=run.settings,
        )
    if not filters:
        raise DataError(f"{str(path)!r}: holds no samples")
    _refuse_other_aggregates(log, run)
    return log


def _gather(path: Path, options: Options, log: Log) -> tuple[dict[str, _Filter], bool]:
    """Rows by filter, and whether the file names its filters."""
    filters: dict[str, _Filter] = {}
    turn: Counter[int] = Counter()
    named = True
    for line, row in json_rows(path):
        doc_id = row.get("doc_id")
        if type(doc_id) is not int or doc_id < 0:
            raise DataError(
                f"{str(path)!r}, row {line}: expected a doc_id of 0 or more, got "
                f"{doc_id!r:.60}"
            )
        name = row.get("filter")
        if name is None:
            named = False
            turn[doc_id] += 1
            name = f"block-{turn[doc_id]}"
        digest = hash_number(row.get("doc_hash"))
        part = filters.setdefault(str(name), _Filter())
        place = part.place(doc_id, digest)
        if place is None:
            raise _wrong_ids(path, f"id {doc_id} stands for two documents")
        log.notes["rows that repeat a document"] += place > 1
        part.rows.add(
            str(doc_id),
            _values(path, line, row, options),
            epoch=place,
            digest=digest,
            prompt=hash_number(row.get("prompt_hash")),
        )
    if not named:
        _check_blocks(path, filters)
        if len(filters) == 1:
            filters = {"": filters["block-1"]}
    return filters, named


def _values(
    path: Path, line: int, row: dict[str, Any], options: Options
) -> dict[str, Any]:
    """Logged values by metric, or the probability of the right choice."""
    if options.value == "score":
        return {name: row.get(name) for name in _metrics(row, options.metric)}
    name = GOLD.get(options.metric or "", "gold_prob")
    try:
        if "logit_0" in row:
            return {name: gold_of_write_out(row) if name == "gold_prob" else None}
        return {name: gold_of_row(row, options.metric)}
    except ValueError as error:
        raise DataError(
            f"{str(path)!r}, row {line}: the right choice cannot be told: {error}"
        ) from error


def _metrics(row: dict[str, Any], asked: str | None) -> Iterator[str]:
    """Metrics of a row; keys beside them only when asked for by name."""
    listed = row.get("metrics")
    if isinstance(listed, list):
        yield from (name for name in listed if isinstance(name, str))
        if asked in row and asked not in listed and asked not in _STANDARD:
            yield str(asked)
        return
    for key in row:
        if key not in _STANDARD and not _WRITE_OUT_KEY.match(key):
            yield key


def _check_blocks(path: Path, filters: dict[str, _Filter]) -> None:
    """Unnamed filters all hold the same documents."""
    first = filters["block-1"].first.keys() if filters else set()
    for part in filters.values():
        if part.first.keys() != first:
            repeated = sorted(part.first)
            raise DataError(
                f"{str(path)!r}: some ids come more often than others, such as "
                f"{some(repeated)}, and the file does not name its filters"
            )


def _check_ids(path: Path, run: Run, part: _Filter, named: bool) -> None:
    """Refuse ids that ``--samples`` wrote wrongly; it came after named filters."""
    if part.ascending or not named:
        return
    is_prefix = max(part.first) + 1 == len(part.first)
    is_partial = (
        run.original is not None
        and run.effective is not None
        and run.effective < run.original
    )
    if not is_prefix or (is_partial and not run.limited):
        raise _wrong_ids(path, "its ids are not in rising order")


def _wrong_ids(path: Path, what: str) -> DataError:
    return DataError(
        f"{str(path)!r}: {what}: lm-eval writes the wrong ids for a --samples list "
        "that is not sorted and unique (its issue 4084), so these scores belong to "
        "other documents; run it again with a sorted list"
    )


def _refuse_other_aggregates(log: Log, run: Run) -> None:
    """A metric whose benchmark value is no mean of its item values is of no use."""
    for block in list(log.blocks):
        how = run.aggregations.get(block.metric, "mean")
        whole = run.results.get(f"{block.metric},{block.filter or 'none'}")
        if not isinstance(whole, int | float):
            continue
        with np.errstate(invalid="ignore"):
            mean = float(block.scores.mean())
        if math.isclose(mean, whole, rel_tol=1e-6, abs_tol=1e-6):
            continue
        if how == "mean":
            log.notes["metrics whose mean is not the one of the results file"] += 1
            continue
        log.blocks.remove(block)
        log.refused[block.metric] = (
            f"the harness aggregates it by {how!r} to {whole:.6g}, which is not the "
            f"mean over items, {mean:.6g}"
        )

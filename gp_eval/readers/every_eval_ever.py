"""Every Eval Ever: JSON lines of instances, one score each, from any harness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gp_eval.errors import DataError
from gp_eval.readers.records import Log, Options, Rows, hash_number
from gp_eval.readers.source import json_document, json_lines

__all__ = ["read_every_eval_ever"]

_TAIL = "_samples.jsonl"


def read_every_eval_ever(path: Path, options: Options) -> Log:
    """Read one file of instances.

    The metric is ``score``; ``is_correct`` is read when asked for. A file may hold
    several models and evaluations.

    Raises:
        DataError: For lines without the fields that the format requires.
    """
    log = Log(path, "eee")
    parts: dict[tuple[str, str], Rows] = {}
    times: dict[tuple[str, str, str], int] = {}
    key = "is_correct" if options.metric == "is_correct" else "score"
    for line, row in json_lines(path):
        where = f"{str(path)!r}, line {line}"
        model, task, item = (
            _text(row, name, where)
            for name in ("model_id", "evaluation_name", "sample_id")
        )
        evaluation = row.get("evaluation")
        if not isinstance(evaluation, dict):
            raise DataError(f"{where}: expected an object evaluation")
        times[model, task, item] = epoch = times.get((model, task, item), 0) + 1
        parts.setdefault((model, task), Rows()).add(
            item,
            {key: evaluation.get(key)},
            epoch=epoch,
            digest=hash_number(row.get("sample_hash")),
            error=row.get("error") is not None,
        )
    if not parts:
        raise DataError(f"{str(path)!r}: holds no instances")
    log.notes["rows that repeat a sample"] += sum(n - 1 for n in times.values())
    better = _directions(path)
    for (model, task), rows in parts.items():
        log.refused.update(rows.refused)
        log.blocks += rows.blocks(
            model=model,
            task=task,
            source=path,
            higher_is_better={key: better.get(task)},
        )
    return log


def _text(row: dict[str, Any], name: str, where: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise DataError(f"{where}: expected a text {name}, got {value!r:.60}")
    return value


def _directions(path: Path) -> dict[str, bool]:
    """Whether higher is better, by evaluation, from the file that goes with this."""
    if not path.name.endswith(_TAIL):
        return {}
    record = path.with_name(path.name.removesuffix(_TAIL) + ".json")
    if not record.is_file():
        return {}
    document = json_document(record)
    results = document.get("evaluation_results") if isinstance(document, dict) else None
    directions: dict[str, bool] = {}
    for result in results if isinstance(results, list) else []:
        config = result.get("metric_config") if isinstance(result, dict) else None
        lower = config.get("lower_is_better") if isinstance(config, dict) else None
        if isinstance(lower, bool):
            directions[str(result.get("evaluation_name"))] = not lower
    return directions

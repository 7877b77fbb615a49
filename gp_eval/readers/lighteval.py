"""lighteval details: Parquet files of all versions, and the first leaderboard's.

Rows are always shuffled. Since 0.11 they carry ids; before, an item is known by the
digest of its text, and items of equal text are told apart by their order.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

from gp_eval.errors import DataError
from gp_eval.readers.gold import gold_probability
from gp_eval.readers.records import Log, Options, Rows, hash_number
from gp_eval.readers.source import json_document
from gp_eval.readers.tables import parquet_columns, read_parquet

__all__ = ["is_lighteval", "read_lighteval"]

_NAME = re.compile(
    r"^details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d:.-]+)\.parquet$"
)
_STRUCTS = ("doc.id", "doc.task_name", "doc.gold_index", "metric")
_OLD = ("example", "hashes", "metrics", "gold_index", "pred_logits", "predictions")
_TOP_SCORES = ("acc", "acc_norm", "mc1", "mc2", "f1", "em", "exact_match", "qem")


def is_lighteval(columns: list[str]) -> bool:
    """Whether a table with these columns is one of details."""
    have = set(columns)
    return {"doc", "metric"} <= have or (
        "example" in have and bool(have & {"metrics", "hashes"})
    )


def read_lighteval(path: Path, options: Options) -> Log:
    """Read one file of details.

    Raises:
        DataError: For columns of another shape.
    """
    log = Log(path, "lighteval")
    columns = parquet_columns(path)
    if not is_lighteval(columns):
        raise DataError(f"{str(path)!r}: not lighteval details: it has {columns}")
    table = read_parquet(path, _needed(columns))
    named = _NAME.match(path.name)
    task = named["task"] if named else path.stem
    rows, seen = Rows(), Counter[str]()
    for position in range(0, table.num_rows, 1024):
        for row in table.slice(position, 1024).to_pylist():
            task = _add(rows, seen, row, task, options, path)
    if not len(rows):
        raise DataError(f"{str(path)!r}: holds no rows")
    log.notes["items of equal text, told apart by order"] += len(rows) - len(seen)
    log.refused.update(rows.refused)
    model, better = _run(path, named["date"] if named else "", task)
    log.blocks = rows.blocks(
        model=model,
        task=task,
        source=path,
        date=named["date"].replace(":", "-") if named else "",
        higher_is_better=better,
    )
    return log


def _needed(columns: list[str]) -> list[str]:
    """Columns to read: of structs and rows with long texts, only what is used."""
    if "doc" in columns:
        return [*_STRUCTS, "model_response.logprobs"]
    return [c for c in columns if c in _OLD or c in _TOP_SCORES]


def _add(
    rows: Rows,
    seen: Counter[str],
    row: dict[str, Any],
    task: str,
    options: Options,
    path: Path,
) -> str:
    """One row; returns the task it names."""
    document = row.get("doc")
    if isinstance(document, dict):
        item, digest = str(document.get("id")), 0
        task = str(document.get("task_name") or task)
        values, gold = row.get("metric"), document.get("gold_index")
        response = row.get("model_response") or {}
        logliks = response.get("logprobs") if isinstance(response, dict) else None
        if item in seen or document.get("id") is None:
            raise DataError(f"{str(path)!r}: id {item!r} is missing or listed twice")
        seen[item] += 1
    else:
        item, digest = _old_item(row, path)
        values, gold = _old_values(row, path), _literal(row.get("gold_index"))
        logliks = _literal(row.get("pred_logits") or row.get("predictions"))
        seen[item] += 1
        if seen[item] > 1:
            item = f"{item}#{seen[item]}"
    if not isinstance(values, dict):
        raise DataError(f"{str(path)!r}: metrics of {item!r}: got {values!r:.60}")
    if options.value == "gold-prob":
        values = {"gold_prob": _gold(logliks, gold)}
    rows.add(item, values, digest=digest)
    return task


def _old_item(row: dict[str, Any], path: Path) -> tuple[str, int]:
    hashes = row.get("hashes")
    logged = hashes.get("example") if isinstance(hashes, dict) else None
    if isinstance(logged, str) and logged:
        return logged, hash_number(logged)
    text = row.get("example")
    if not isinstance(text, str):
        raise DataError(f"{str(path)!r}: a row has no example text")
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return digest, int(digest, 16)


def _old_values(row: dict[str, Any], path: Path) -> Any:
    """A table of metrics, as a struct or as Python text, or columns at the top."""
    if "metrics" in row and row["metrics"] is not None:
        return _literal(row["metrics"])
    return {name: row[name] for name in _TOP_SCORES if name in row}


def _literal(value: Any) -> Any:
    """The value of a text that is a Python literal; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def _gold(logliks: Any, gold: Any) -> float | None:
    if not isinstance(logliks, list) or len(logliks) < 2:
        return None
    if isinstance(logliks[0], list):  # [log-likelihood, is greedy] for each choice
        logliks = [pair[0] for pair in logliks]
    places = gold if isinstance(gold, list) else [gold]
    if not all(isinstance(x, int | float) for x in [*logliks, *places]):
        return None
    return gold_probability([float(x) for x in logliks], [int(g) for g in places])


def _run(path: Path, date: str, task: str) -> tuple[str, dict[str, Any]]:
    """Model and directions, from the results file or the folders."""
    folder = path.resolve().parent
    candidates = [folder / f"results_{date}.json"]
    if "details" in folder.parts:  # OUT/details/ORG/MODEL/DATE -> OUT/results/ORG/MODEL
        at = len(folder.parts) - 1 - folder.parts[::-1].index("details")
        out, below = Path(*folder.parts[:at]), folder.parts[at + 1 : -1]
        candidates.append(out.joinpath("results", *below, f"results_{date}.json"))
        fallback = "/".join(below) or folder.name
    else:
        name = next(
            (p for p in reversed(folder.parts) if p.startswith("details_")), folder.name
        )
        fallback = name.removeprefix("details_").replace("__", "/", 1)
    for candidate in candidates:
        if candidate.is_file():
            document = json_document(candidate)
            if isinstance(document, dict):
                return _named(document, fallback), _directions(document, task)
    return fallback, {}


def _named(document: dict[str, Any], fallback: str) -> str:
    general = document.get("config_general")
    name = general.get("model_name") if isinstance(general, dict) else None
    return str(name or fallback)


def _directions(document: dict[str, Any], task: str) -> dict[str, Any]:
    tasks = document.get("config_tasks")
    config = tasks.get(task) if isinstance(tasks, dict) else None
    metrics = config.get("metrics") if isinstance(config, dict) else None
    return {
        metric["metric_name"]: metric.get("higher_is_better")
        for metric in (metrics if isinstance(metrics, list) else [])
        if isinstance(metric, dict) and isinstance(metric.get("metric_name"), str)
    }

"""What a samples file of lm-eval does not say: the task, the model, the settings.

The samples file names neither. The task is in its name, the rest in the results file of
the same date in the same folder, if there is one.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from gp_eval.errors import DataError
from gp_eval.readers.source import json_document

__all__ = ["Run", "is_wanted", "model_of_args", "run_of"]

_SAMPLES = re.compile(
    r"^samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)$"
)
_SUFFIXES = (".gz", ".zst", ".jsonl", ".json")
_WRITE_OUT = "_write_out_info"
_MODEL_KEYS = ("pretrained", "model", "path", "engine")


@dataclass(frozen=True)
class Run:
    """One run on one task: what the names and the results file say.

    Args:
        task: Name of the task.
        model: Name of the model.
        date: Date of the run, in a form that sorts; ``""`` if unknown.
        original: Items of the whole task, if known.
        effective: Items that were run, if known.
        limited: Whether ``--limit`` was given.
        higher_is_better: Direction by metric.
        aggregations: How the harness aggregates a metric, by metric.
        results: Aggregates by ``metric,filter``.
        settings: Shots, version of the task and of the harness.
        suites: Names that stand for several tasks.
    """

    task: str
    model: str
    date: str = ""
    original: int | None = None
    effective: int | None = None
    limited: bool = False
    higher_is_better: dict[str, bool] = field(default_factory=dict)
    aggregations: dict[str, str] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    suites: dict[str, list[str]] = field(default_factory=dict)


def is_wanted(task: str, patterns: tuple[str, ...]) -> bool:
    """Whether a task has one of the names or patterns; no patterns want all."""
    return not patterns or any(
        task == pattern or fnmatch.fnmatchcase(task, pattern) for pattern in patterns
    )


def run_of(path: Path, tasks: tuple[str, ...] = ()) -> Run:
    """The run a samples file belongs to.

    Args:
        path: The file.
        tasks: Tasks asked for; they tell where the task begins in names of the form
            ``<model args>_<task>.jsonl``.
    """
    stem = path.name
    while stem.endswith(_SUFFIXES):
        stem = stem[: stem.rindex(".")]
    found = _SAMPLES.match(stem)
    if found:
        return _dated(path, found["task"], found["date"])
    if stem.endswith(_WRITE_OUT):
        return Run(task=stem.removesuffix(_WRITE_OUT), model=_folder_model(path))
    return _undated(path, stem, tasks)


def _undated(path: Path, stem: str, tasks: tuple[str, ...]) -> Run:
    """``<model args>_<task>`` of the first 0.4 versions; model args may be empty."""
    ends = [task for task in tasks if stem.endswith(f"_{task}") or stem == task]
    task = max(ends, key=len) if ends else stem.rpartition("_")[2]
    arguments = stem.removesuffix(task).removesuffix("_")
    return Run(task=task, model=model_of_args(arguments) or _folder_model(path))


def _dated(path: Path, task: str, date: str) -> Run:
    folder = path.parent
    results = _results_of(folder, date, folder.stat().st_mtime_ns)
    if results is None:
        return Run(task=task, model=_folder_model(path), date=date)
    config = _table(results.get("config"))
    counts = _table(_table(results.get("n-samples")).get(task))
    task_config = _table(_table(results.get("configs")).get(task))
    settings = {
        "shots": _table(results.get("n-shot")).get(task),
        "task_version": _table(results.get("versions")).get(task),
        "harness": results.get("lm_eval_version"),
    }
    return Run(
        task=task,
        model=_model_of_results(results, config) or _folder_model(path),
        date=date,
        original=_whole(counts.get("original")),
        effective=_whole(counts.get("effective")),
        limited=config.get("limit") is not None,
        higher_is_better=_table(_table(results.get("higher_is_better")).get(task)),
        aggregations=_aggregations(task_config),
        results=_table(_table(results.get("results")).get(task)),
        settings={
            k: v for k, v in settings.items() if isinstance(v, str | int | float)
        },
        suites={
            str(name): [str(member) for member in members]
            for name, members in _table(results.get("group_subtasks")).items()
            if isinstance(members, list) and members
        },
    )


@lru_cache(maxsize=32)
def _results_of(folder: Path, date: str, changed: int) -> dict[str, Any] | None:
    """The results file of a date, if the folder has one.

    Read once for all tasks of a run; again when the folder has ``changed``.
    """
    candidates = [
        folder / f"results_{date}.json",
        *sorted(folder.glob(f"*_{date}.json")),
    ]
    for candidate in candidates:
        if candidate.is_file() and not candidate.name.startswith("samples_"):
            document = json_document(candidate)
            if not isinstance(document, dict):
                raise DataError(f"{str(candidate)!r}: expected a JSON object")
            return document
    return None


def _model_of_results(results: dict[str, Any], config: dict[str, Any]) -> str:
    name = results.get("model_name")
    if not isinstance(name, str) or not name:
        arguments = config.get("model_args")
        name = model_of_args(arguments)
    return _tidy(name)


def model_of_args(arguments: Any) -> str:
    """The model in ``pretrained=org/name,dtype=...``, or the arguments as they are."""
    if isinstance(arguments, str):
        text = arguments
        pairs = dict(p.split("=", 1) for p in text.split(",") if "=" in p)
    elif isinstance(arguments, dict):
        pairs, text = arguments, ""
    else:
        return ""
    name = next((str(pairs[key]) for key in _MODEL_KEYS if key in pairs), text)
    return _tidy(name.replace("__", "/", 1))


def _tidy(name: str) -> str:
    """A model kept in a folder is called by the folder's name."""
    if name.startswith((".", "/", "~")):
        return name.rstrip("/").rpartition("/")[2]
    return name


def _folder_model(path: Path) -> str:
    return path.resolve().parent.name.replace("__", "/", 1)


def _aggregations(config: dict[str, Any]) -> dict[str, str]:
    listed = config.get("metric_list")
    return {
        entry["metric"]: entry["aggregation"]
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, dict)
        and isinstance(entry.get("metric"), str)
        and isinstance(entry.get("aggregation"), str)
    }


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

"""Inspect logs: ``.eval`` archives and ``.json``, finished, cancelled or killed.

Only the header and the summaries of the samples are read, never the transcripts.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gp_eval.errors import DataError
from gp_eval.readers.archive import Archive, open_archive
from gp_eval.readers.records import Log, Options, Rows, number
from gp_eval.readers.source import json_document, parse_json

__all__ = ["log_of_samples", "read_inspect", "whole_samples"]

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "no": 0.0}
_JOURNAL = re.compile(r"^_journal/summaries/(\d+)\.json$")
_IN_PROGRESS = "started"


def read_inspect(path: Path, options: Options) -> Log:
    """Read one log.

    A metric is the name of a scorer, or ``scorer/key`` where its value is a table of
    numbers. Epochs of a sample stay apart here. A retry shares ``task_id`` with the
    run it repeats.

    Raises:
        DataError: For another shape or a sample listed twice.
    """
    log = Log(path, "inspect")
    with path.open("rb") as stream:
        is_archive = stream.read(4) == b"PK\x03\x04"
    if is_archive:
        with open_archive(path) as archive:
            header, samples = _from_archive(archive, path)
    else:
        header = _object(json_document(path), path, "the log")
        samples = header.get("samples") or []
    evaluation = _object(header.get("eval"), path, "eval")
    if not isinstance(samples, list):
        raise DataError(f"{str(path)!r}: samples: expected a list")
    status = str(header.get("status") or _IN_PROGRESS)
    if status != "success":
        # The mean of some epochs is another score than the mean of all.
        complete = whole_samples(samples, _epochs(evaluation))
        log.notes["epochs of unfinished samples"] += len(samples) - len(complete)
        samples = complete
    rows, bare = _rows(samples, path)
    log.notes[f"runs with status {status}"] += status != "success"
    log.notes["samples without any score"] += bare
    log.refused.update(rows.refused)
    dataset = evaluation.get("dataset")
    log.blocks = rows.blocks(
        model=str(evaluation.get("model") or path.resolve().parent.name),
        task=str(evaluation.get("task") or ""),
        source=path,
        run=str(evaluation.get("task_id") or path),
        date=_utc(evaluation.get("created")),
        full_size=_size(dataset),
        settings=_settings(evaluation),
    )
    if not log.blocks and not log.refused:
        log.refused["*"] = (
            f"the log (status {status}) has {len(samples)} samples and no score; "
            "inspect score LOG adds them"
            if samples
            else f"the log (status {status}) has no samples"
        )
    return log


def log_of_samples(
    samples: list[dict[str, Any]], path: Path, *, task: str, model: str
) -> Log:
    """Samples of a run that is not over, as a log.

    Args:
        samples: With ``id``, ``epoch``, ``scores`` and ``error``, as in summaries.
        path: Where the log will be; only named.
        task: Name of the task.
        model: Name of the model.
    """
    log = Log(path, "inspect")
    rows, _ = _rows(samples, path)
    log.refused.update(rows.refused)
    log.blocks = rows.blocks(model=model, task=task, source=path)
    return log


def whole_samples(samples: list[Any], epochs: int) -> list[Any]:
    """Those of which all epochs are there, and those that are no samples."""
    ids = [str(s.get("id")) if isinstance(s, dict) else None for s in samples]
    counts = Counter(ids)
    pairs = zip(samples, ids, strict=True)
    return [s for s, key in pairs if key is None or counts[key] >= epochs]


def _epochs(evaluation: dict[str, Any]) -> int:
    config = evaluation.get("config")
    epochs = config.get("epochs") if isinstance(config, dict) else None
    return epochs if isinstance(epochs, int) else 1


def _from_archive(archive: Archive, path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Header and summaries; those of the journal where the run was killed."""

    def entry(name: str) -> Any:
        return parse_json(archive.read(name), f"{str(path)!r}, entry {name!r}")

    names = set(archive.names)
    if "header.json" in names:
        header = entry("header.json")
    elif "_journal/start.json" in names:
        header = entry("_journal/start.json")
    else:
        raise DataError(f"{str(path)!r}: a zip, but no Inspect log: it has no header")
    if "summaries.json" in names:
        summaries = entry("summaries.json")
    else:
        parts = [(int(m[1]), n) for n in names if (m := _JOURNAL.match(n))]
        summaries = []
        for _, name in sorted(parts):
            part = entry(name)
            if not isinstance(part, list):
                raise DataError(f"{str(path)!r}: {name!r} is not a list of samples")
            summaries += part
    return _object(header, path, "the header"), summaries


def _object(value: Any, path: Path, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{str(path)!r}: {what}: expected an object, got {value!r:.60}")
    return value


def _rows(samples: list[Any], path: Path) -> tuple[Rows, int]:
    """Rows of all samples, and how many of them had no score at all."""
    rows, bare = Rows(_number), 0
    seen: set[tuple[str, int]] = set()
    for position, sample in enumerate(samples, start=1):
        where = f"{str(path)!r}, sample {position}"
        if not isinstance(sample, dict) or not isinstance(sample.get("id"), str | int):
            raise DataError(f"{where}: expected an object with an id")
        item, epoch = str(sample["id"]), sample.get("epoch", 1)
        if not isinstance(epoch, int) or not abs(epoch) < 2**31:
            raise DataError(f"{where}: epoch is {epoch!r:.60}")
        if (item, epoch) in seen:
            raise DataError(f"{where}: id {item!r} is listed twice in epoch {epoch}")
        seen.add((item, epoch))
        values = _values(sample, where)
        bare += not values
        rows.add(
            item,
            values,
            epoch=epoch,
            error=sample.get("error") is not None,
        )
    return rows, bare


def _values(sample: dict[str, Any], where: str) -> dict[str, Any]:
    """Values by scorer; a table of values counts under ``scorer/key`` as well."""
    scores = sample.get("scores")
    if scores is None:
        scores = {"score": sample["score"]} if sample.get("score") else {}
    if not isinstance(scores, dict):
        raise DataError(f"{where}: scores: expected an object")
    values: dict[str, Any] = {}
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        values[scorer] = value
        if isinstance(value, dict):
            values |= {f"{scorer}/{key}": part for key, part in value.items()}
    return values


def _number(value: Any) -> float | str:
    """Inspect's own words for scores; an unknown text is no number, not 0."""
    if isinstance(value, str):
        if value in _LETTERS:
            return _LETTERS[value]
        if value.lower() in _WORDS:
            return _WORDS[value.lower()]
    return number(value)


def _utc(date: Any) -> str:
    """A date that sorts as text, whatever its time zone; ``""`` if it is none."""
    try:
        return datetime.fromisoformat(date).astimezone(UTC).isoformat()
    except (TypeError, ValueError, OverflowError):
        return ""


def _size(dataset: Any) -> int | None:
    """Items of the whole dataset, if at least as many as were planned.

    A run that draws its samples as it goes (``SampleSource``) only knows its first.
    """
    if not isinstance(dataset, dict) or not isinstance(dataset.get("samples"), int):
        return None
    return int(dataset["samples"])


def _settings(evaluation: dict[str, Any]) -> dict[str, Any]:
    packages = evaluation.get("packages")
    settings = {
        "task_version": evaluation.get("task_version"),
        "harness": packages.get("inspect_ai") if isinstance(packages, dict) else None,
    }
    return {k: v for k, v in settings.items() if isinstance(v, str | int | float)}

"""Small logs in the formats of the harnesses, written by hand."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

DATE = "2026-01-02T03-04-05.678901"


def digest(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()


def lm_row(
    doc_id: int, *, filter: str | None = "none", **metrics: Any
) -> dict[str, Any]:
    """A row of 0.4.7+; without a filter, of 0.4.3."""
    row: dict[str, Any] = {
        "doc_id": doc_id,
        "doc": {"q": doc_id},
        "target": "0",
        "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": []}}},
        "resps": [["x"]],
        "filtered_resps": ["x"],
        "doc_hash": digest(doc_id),
        "prompt_hash": digest(f"prompt {doc_id}"),
    }
    if filter is not None:
        row |= {"filter": filter, "metrics": list(metrics)}
    return row | metrics


def choice_row(
    doc_id: int, logliks: Sequence[float], target: object, **metrics: Any
) -> dict[str, Any]:
    """A row of a multiple-choice task."""
    return lm_row(doc_id, **metrics) | {
        "target": target,
        "arguments": {
            f"gen_args_{i}": {"arg_0": "Q", "arg_1": f" {'abcdefgh'[i] * (i + 1)}"}
            for i in range(len(logliks))
        },
        "filtered_resps": [[str(x), "False"] for x in logliks],
    }


def write_lm_eval(
    folder: Path,
    rows: Iterable[Mapping[str, Any]],
    *,
    model: str = "org__m",
    task: str = "task",
    date: str = DATE,
    results: Mapping[str, Any] | None = None,
) -> Path:
    path = folder / model / f"samples_{task}_{date}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    if results is not None:
        (path.parent / f"results_{date}.json").write_text(json.dumps(results))
    return path


def inspect_sample(
    item: int | str, value: Any = None, *, epoch: int = 1, error: str | None = None
) -> dict[str, Any]:
    scores = {} if error or value is None else {"match": {"value": value}}
    sample: dict[str, Any] = {"id": item, "epoch": epoch, "scores": scores}
    return sample | ({"error": error} if error else {})


def inspect_header(**evaluation: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "toy",
            "task_id": "t1",
            "model": "org/m",
            "created": "2026-01-02T03:04:05+00:00",
            "dataset": {"samples": 3},
            "config": {},
            **evaluation,
        },
    }


def write_eval(
    path: Path,
    samples: Sequence[Mapping[str, Any]],
    *,
    killed: bool = False,
    zstd: bool = False,
    extra: Mapping[str, bytes] | None = None,
    **evaluation: Any,
) -> Path:
    """An Inspect archive; a killed run has its journal only."""
    header = inspect_header(**evaluation)
    kind, method = zipfile, zipfile.ZIP_DEFLATED
    if zstd:
        kind = pytest.importorskip("backports.zstd.zipfile")
        method = kind.ZIP_ZSTANDARD
    with kind.ZipFile(path, "w", method) as archive:
        if killed:
            del header["status"]
            archive.writestr("_journal/start.json", json.dumps(header))
            for i, sample in enumerate(samples, start=1):
                archive.writestr(f"_journal/summaries/{i}.json", json.dumps([sample]))
        else:
            archive.writestr("summaries.json", json.dumps(list(samples)))
            archive.writestr("header.json", json.dumps(header))
        for name, data in (extra or {}).items():
            archive.writestr(name, data)
    return path

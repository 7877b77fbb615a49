"""Which format a file is in: by its bytes and keys, and its name where those tie."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gp_eval.errors import DataError
from gp_eval.readers.archive import open_archive
from gp_eval.readers.lighteval import is_lighteval
from gp_eval.readers.score_tables import is_long, is_proeval, is_wide
from gp_eval.readers.source import head
from gp_eval.readers.tables import csv_columns, parquet_columns

__all__ = ["FORMATS", "detect", "expect_format"]

FORMATS = (
    *("lm-eval", "inspect", "lighteval", "helm", "eee", "csv", "proeval", "jbl"),
    "lb-pickle",
)
_TABLES = (".csv", ".tsv", ".csv.gz", ".csv.zst")
_JOBLIB = (".jbl", ".joblib")
_NAMES = (
    ("lm-eval", re.compile(r"^samples_.+_\d{4}-\d\d-\d\dT[\d.-]+\.jsonl?")),
    ("inspect", re.compile(r"\.eval$")),
    ("helm", re.compile(r"^per_instance_stats\.json$")),
)
_PICKLES = (".pickle", ".pkl")


def detect(path: Path) -> str | None:
    """The format of a file, or None for a file of none of them.

    Raises:
        DataError: For a file that cannot be read at all.
    """
    if path.suffix in _JOBLIB:
        return None if path.stem.endswith("_models") else "jbl"
    if path.suffix in _PICKLES:
        return "lb-pickle"
    start = head(path)
    if start.startswith(b"PK\x03\x04"):
        return _of_archive(path)
    if start.startswith(b"PAR1"):
        return _of_columns(parquet_columns(path))
    if path.name.endswith(_TABLES):
        return _of_columns(csv_columns(path)[0])
    text = start.lstrip()
    found = _of_json(text) if text.startswith((b"{", b"[")) else None
    # A log that is empty or damaged must not pass for some other file of a folder.
    return found or next((f for f, name in _NAMES if name.search(path.name)), None)


def _of_archive(path: Path) -> str | None:
    with open_archive(path) as archive:
        names = set(archive.names)
    return "inspect" if names & {"header.json", "_journal/start.json"} else None


def _of_columns(columns: list[str]) -> str | None:
    if is_lighteval(columns):
        return "lighteval"
    if is_proeval(columns):
        return "proeval"
    return "csv" if is_long(columns) or is_wide(columns) else None


def _of_json(text: bytes) -> str | None:
    """From the first object; from the names in the text if that one is longer."""
    first = _first_object(text)
    if first is None:
        keys = set(re.findall(r'"([A-Za-z_]\w*)"\s*:', text.decode("utf-8", "ignore")))
    else:
        keys = set(first)
    in_array = text.startswith(b"[")
    if "doc_id" in keys and keys & {"filtered_resps", "resps", "prompt_0", "logit_0"}:
        return "lm-eval"
    if "instance_id" in keys and "stats" in keys and in_array:
        return "helm"
    if {"evaluation_id", "sample_id", "evaluation"} <= keys and not in_array:
        return "eee"
    if "eval" in keys and keys & {"version", "status", "plan"} and not in_array:
        return "inspect"
    return None


def _first_object(text: bytes) -> dict[str, Any] | None:
    decoded = text.decode("utf-8", "ignore")
    begin = decoded.find("{")
    if begin < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(decoded, begin)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def expect_format(path: Path, format: str) -> str:
    """The format to read an explicitly named file in.

    Raises:
        DataError: For a file of no known format where ``format`` is ``"auto"``.
    """
    if format != "auto":
        return format
    found = detect(path)
    if found is None:
        raise DataError(
            f"{str(path)!r}: of no known format ({', '.join(FORMATS)}); name it with "
            "--format if it is one of them"
        )
    return found

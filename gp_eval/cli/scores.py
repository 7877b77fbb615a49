"""Scores given on the command line or in small files."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from gp_eval.errors import ScoreError

__all__ = ["parse_pairs", "read_scores"]


def parse_pairs(pairs: Sequence[str]) -> dict[str, float]:
    """Scores from ``ITEM=SCORE`` words; the item may hold ``=`` itself.

    Raises:
        ScoreError: For a word that is not of that form, or an item given twice.
    """
    split = []
    for pair in pairs:
        item, sign, score = pair.rpartition("=")
        if not sign or not item:
            raise ScoreError(f"expected ITEM=SCORE, got {pair!r}")
        split.append((item, score))
    return _collect(split)


def read_scores(source: str) -> dict[str, float]:
    """Scores from a file, ``-`` for standard input.

    ``{"item": score, ...}``, JSON lines ``{"item": ..., "score": ...}``, or CSV with
    the columns ``item`` and ``score``; which of them shows in the text.

    Raises:
        ScoreError: For text of no such form, or an item given twice.
    """
    try:
        text = (
            sys.stdin.read() if source == "-" else Path(source).read_text("utf-8-sig")
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ScoreError(f"cannot read {source!r}: {error}") from error
    if text.lstrip().startswith("{"):
        return _from_json(text, source)
    rows = csv.DictReader(io.StringIO(text))
    if not {"item", "score"} <= set(rows.fieldnames or []):
        raise ScoreError(
            f"{source!r}: expected JSON, JSON lines or CSV columns item and score, got "
            f"columns {rows.fieldnames}"
        )
    return _collect((row["item"], row["score"]) for row in rows)


def _from_json(text: str, source: str) -> dict[str, float]:
    try:
        whole = json.loads(text, object_pairs_hook=list)
    except json.JSONDecodeError:
        whole = None
    if whole is not None and dict(whole).keys() != {"item", "score"}:
        return _collect(whole)
    try:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        return _collect((row["item"], row["score"]) for row in rows)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ScoreError(
            f'{source!r}: expected {{"item": score}} or lines of '
            f'{{"item": ..., "score": ...}}: {error!r}'
        ) from error


def _collect(pairs: Iterable[tuple[str, object]]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for item, raw in pairs:
        if item in scores:
            raise ScoreError(f"item: {item!r} is given twice")
        try:
            scores[str(item)] = float(raw)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ScoreError(
                f"score of {item!r}: expected a number, got {raw!r}"
            ) from None
    return scores

"""Scores given on the command line or in small files."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_eval.data.validation import some
from gp_eval.errors import ScoreError

__all__ = ["Scores", "for_targets", "parse_pairs", "read_scores"]

Scores = dict[tuple[str | None, str], float]
"""Scores by target and item; the target is ``None`` where nothing names it."""

_Row = tuple[object, object, object]  # target, item, score
_ROW = ({"item", "score"}, {"target", "item", "score"})


class _Object(list[tuple[str, Any]]):
    """A JSON object, with repeated keys if it has any."""


def parse_pairs(pairs: Sequence[str]) -> Scores:
    """Scores from ``ITEM=SCORE`` words; the item may hold ``=`` itself.

    Raises:
        ScoreError: For a word that is not of that form, or an item given twice.
    """
    rows: list[_Row] = []
    for pair in pairs:
        item, sign, score = pair.rpartition("=")
        if not sign or not item:
            raise ScoreError(f"expected ITEM=SCORE, got {pair!r}")
        rows.append((None, item, score))
    return _collect(rows)


def read_scores(source: str) -> Scores:
    """Scores from a file, ``-`` for standard input.

    CSV with the columns ``item``, ``score`` and, for several targets, ``target``; JSON
    lines of objects with these keys; or one JSON object, ``{"item": score, ...}`` or
    ``{"target": {"item": score, ...}, ...}``. Which of them shows in the text.

    Raises:
        ScoreError: For text of no such form, or an item given twice.
    """
    try:
        text = (
            sys.stdin.read() if source == "-" else Path(source).read_text("utf-8-sig")
        )
    except (OSError, UnicodeDecodeError) as error:
        raise ScoreError(f"cannot read {source!r}: {error}") from error
    if text.lstrip().startswith(("{", "[")):
        return _collect(_from_json(text, source))
    rows = csv.DictReader(io.StringIO(text))
    if not {"item", "score"} <= set(rows.fieldnames or []):
        raise ScoreError(
            f"{source!r}: expected JSON, JSON lines or CSV columns item and score, got "
            f"columns {rows.fieldnames}"
        )
    return _collect((row.get("target"), row["item"], row["score"]) for row in rows)


def for_targets(
    scores: Scores, targets: Sequence[str], target: str | None
) -> dict[tuple[str, str], float]:
    """The scores with every target filled in.

    Args:
        scores: As they were given.
        targets: Those of the session.
        target: The one that ``--target`` names.

    Raises:
        ScoreError: For an unknown target, one that contradicts ``--target``, or none
            where there are several.
    """
    filled: dict[tuple[str, str], float] = {}
    for (named, item), score in scores.items():
        if named is not None and target is not None and named != target:
            raise ScoreError(
                f"target: {named!r} for item {item!r}, but --target is {target!r}"
            )
        # The only target there is does not have to be named.
        only = targets[0] if len(targets) == 1 else None
        chosen = next((t for t in (named, target, only) if t is not None), None)
        if chosen is None:
            raise ScoreError(
                f"target: this session has several, {some(targets)}: name one by "
                "--target, or one for each score in a file"
            )
        if chosen not in targets:
            raise ScoreError(
                f"target: {chosen!r} is not among the targets of this session, "
                f"{some(targets)}"
            )
        if (chosen, item) in filled:
            raise ScoreError(f"item: {item!r} of {chosen!r} is given twice")
        filled[chosen, item] = score
    return filled


def _from_json(text: str, source: str) -> list[_Row]:
    try:
        whole = json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError:
        whole = None
    if isinstance(whole, _Object) and {name for name, _ in whole} not in _ROW:
        return [row for name, value in whole for row in _of_member(name, value)]
    try:
        # An array of such objects is what `ask --as json` prints, with scores added.
        lines = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
        return [_of_line(line) for line in lines]
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ScoreError(
            f'{source!r}: expected {{"item": score}}, {{"target": {{"item": score}}}} '
            f'or lines of {{"item": ..., "score": ...}}: {error!r}'
        ) from error


def _of_member(name: str, value: object) -> list[_Row]:
    """Scores of one target, or the score of one item."""
    if isinstance(value, _Object):
        return [(name, item, score) for item, score in value]
    return [(None, name, value)]


def _of_line(line: Mapping[str, object]) -> _Row:
    return line.get("target"), line["item"], line["score"]


def _collect(rows: Iterable[_Row]) -> Scores:
    scores: Scores = {}
    for named, given, raw in rows:
        target, item = None if named is None else str(named), str(given)
        if (target, item) in scores:
            raise ScoreError(f"item: {item!r} is given twice")
        try:
            scores[target, item] = float(raw)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ScoreError(
                f"score of {item!r}: expected a number, got {raw!r}"
            ) from None
    return scores

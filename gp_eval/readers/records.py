"""What every reader yields: blocks of scores, the same for all formats."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gp_eval.errors import DataError

__all__ = [
    "ERRORED",
    "INFINITE",
    "SCORED",
    "UNSCORED",
    "Block",
    "Log",
    "Options",
    "Rows",
    "Value",
    "expect",
    "hash_number",
    "number",
]

SCORED, ERRORED, UNSCORED, INFINITE = 0, 1, 2, 3

Value = Literal["score", "gold-prob"]
Converter = Callable[[Any], "float | str"]

_WORDS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Options:
    """What a reader is asked for.

    Args:
        value: ``"score"``, or ``"gold-prob"``: the probability of the right choice,
            where log-likelihoods were logged.
        metric: The metric asked for, if named; formats that log more than scores
            include it then.
        tasks: Names or patterns of the tasks asked for; empty means any. Only a hint:
            a reader may skip other tasks.
        allow_pickle: Whether pickle files are read (by a restricted unpickler).
    """

    value: Value = "score"
    metric: str | None = None
    tasks: tuple[str, ...] = ()
    allow_pickle: bool = False


@dataclass(frozen=True)
class Block:
    """Scores of one model on items of one task, by one metric, from one file.

    Args:
        model: Name of the model.
        task: Name of the task; ``""`` where the format has none.
        metric: Name of the metric.
        filter: Name of the answer filter; ``""`` where the format has none.
        items: ``n`` ids; an id repeats over epochs only.
        scores: ``n`` float64 scores, NaN or infinite where there is no usable one.
        states: ``n`` of ``SCORED``, ``ERRORED``, ``UNSCORED``, ``INFINITE``.
        epochs: ``n`` numbers of the repetition.
        hashes: ``n`` uint64 digests of the items as logged, 0 where not logged.
        prompts: ``n`` uint64 digests of the prompts, 0 where not logged.
        source: The file.
        run: What a retry shares with the run it repeats; the file elsewhere.
        date: When the run started, in a form that sorts; ``""`` if unknown.
        full_size: Items of the whole benchmark, if the log says so.
        ascending: Whether the ids came in rising order.
        higher_is_better: Direction of the metric, if the log says so.
        groups: ``n`` group names, or None.
        weights: ``n`` item weights, or None.
        settings: Provenance that references should share, such as ``shots``.
    """

    model: str
    task: str
    metric: str
    filter: str
    items: list[str]
    scores: np.ndarray
    states: np.ndarray
    epochs: np.ndarray
    hashes: np.ndarray
    prompts: np.ndarray
    source: str
    run: str
    date: str = ""
    full_size: int | None = None
    ascending: bool = True
    higher_is_better: bool | None = None
    groups: list[str] | None = None
    weights: np.ndarray | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Log:
    """One file, read.

    Args:
        path: The file.
        format: Name of its format.
        blocks: Its scores.
        refused: Metrics that are logged and cannot be used, with the reason.
        notes: Counts of what was left out or looked odd.
        suites: Names that stand for several tasks, such as ``mmlu``.
    """

    path: Path
    format: str
    blocks: list[Block] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    suites: dict[str, list[str]] = field(default_factory=dict)


def number(value: Any) -> float | str:
    """A logged value as a float (NaN for none), or why it is not a number."""
    if isinstance(value, bool | int | float | np.number | np.bool_):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if value is None:
        return float("nan")
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            return _WORDS[word]
        try:
            if "_" not in word:  # Python's own digit separator is no number in a log
                return float(word)
        except ValueError:
            pass
        return "a text"
    kind = {"list": "list", "tuple": "tuple", "dict": "dict", "ndarray": "list"}
    return f"a {kind.get(type(value).__name__, type(value).__name__)}"


def hash_number(digest: Any) -> int:
    """The first 64 bits of a hexadecimal digest; 0 for none."""
    if not isinstance(digest, str) or not digest:
        return 0
    try:
        return int(digest[:16], 16)
    except ValueError:
        return 0


class Rows:
    """Rows of one file with the same model, task and filter, becoming blocks.

    Values are turned into floats as they come, so that texts and nested values of a
    large log are not kept.
    """

    def __init__(self, convert: Converter = number) -> None:
        self.items: list[str] = []
        self.refused: dict[str, str] = {}
        self.groups: list[str] = []
        self.weights: list[float] = []
        self._convert = convert
        self._columns: dict[str, list[float]] = {}
        self._errors: list[bool] = []
        self._epochs: list[int] = []
        self._hashes: list[int] = []
        self._prompts: list[int] = []

    def __len__(self) -> int:
        return len(self.items)

    def add(
        self,
        item: str,
        values: Mapping[str, Any],
        *,
        epoch: int = 1,
        digest: int = 0,
        prompt: int = 0,
        error: bool = False,
    ) -> None:
        """One item with its values by metric."""
        n = len(self.items)
        for metric, value in values.items():
            column = self._columns.setdefault(metric, [])
            if len(column) < n:
                column.extend([float("nan")] * (n - len(column)))
            score = value if type(value) is float else self._convert(value)
            if isinstance(score, str):
                self.refused[metric] = f"its value for an item is {score}"
                score = float("nan")
            column.append(score)
        self.items.append(sys.intern(item))
        self._epochs.append(epoch)
        self._hashes.append(digest)
        self._prompts.append(prompt)
        self._errors.append(error)

    def hash_of(self, position: int) -> int:
        """The digest of a row."""
        return self._hashes[position]

    @property
    def metrics(self) -> list[str]:
        """Metrics whose every value is a number."""
        return [name for name in self._columns if name not in self.refused]

    def blocks(
        self,
        *,
        model: str,
        task: str,
        source: Path,
        filter: str = "",
        run: str | None = None,
        date: str = "",
        full_size: int | None = None,
        ascending: bool = True,
        higher_is_better: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> list[Block]:
        """A block for each usable metric; they share what is the same."""
        n = len(self.items)
        errors = np.array(self._errors, dtype=bool)
        epochs = _column(self._epochs, np.int32)
        hashes = _column(self._hashes, np.uint64)
        prompts = _column(self._prompts, np.uint64)
        weights = np.array(self.weights, dtype=np.float64) if self.weights else None
        blocks = []
        for metric in self.metrics:
            column = self._columns[metric]
            scores = np.array(column + [np.nan] * (n - len(column)), dtype=np.float64)
            better = (higher_is_better or {}).get(metric)
            blocks.append(
                Block(
                    model=model,
                    task=task,
                    metric=metric,
                    filter=filter,
                    items=self.items,
                    scores=scores,
                    states=_states(scores, errors),
                    epochs=epochs,
                    hashes=hashes,
                    prompts=prompts,
                    source=str(source),
                    run=run or str(source),
                    date=date,
                    full_size=full_size,
                    ascending=ascending,
                    higher_is_better=better if isinstance(better, bool) else None,
                    groups=self.groups or None,
                    weights=weights,
                    settings=settings or {},
                )
            )
        return blocks


def _column(values: list[int], dtype: Any) -> np.ndarray:
    """An array; one that is constant takes no memory."""
    array = np.array(values, dtype=dtype)
    if len(array) and (array == array[0]).all():
        return np.broadcast_to(array[0].copy(), array.shape)
    return array


def _states(scores: np.ndarray, errors: np.ndarray) -> np.ndarray:
    states = np.full(len(scores), SCORED, dtype=np.uint8)
    states[np.isinf(scores)] = INFINITE
    missing = np.isnan(scores)
    states[missing] = UNSCORED
    states[missing & errors] = ERRORED
    return states


def expect(condition: bool, path: Path, message: str) -> None:
    """Raise ``DataError`` naming the file unless the condition holds."""
    if not condition:
        raise DataError(f"{str(path)!r}: {message}")

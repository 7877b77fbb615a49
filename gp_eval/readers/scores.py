"""Chosen blocks as one long table, with repeats, failures and runs settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gp_eval._names import some
from gp_eval.errors import DataError
from gp_eval.readers.choose import Choice
from gp_eval.readers.identity import item_name
from gp_eval.readers.policies import Policies
from gp_eval.readers.records import ERRORED, INFINITE, SCORED, UNSCORED

__all__ = ["LongTable", "long_table", "settle"]

_CELL = ["model", "item"]
_KINDS = {"errored": ERRORED, "unscored": UNSCORED, "infinite": INFINITE}


@dataclass
class LongTable:
    """A row a score; names are numbers into the lists beside the frame.

    Args:
        frame: Columns item, model, run, source, date (its rank), epoch, score, state,
            hash, prompt.
        items: Ids as references have them.
        models: Names of the models.
        sources: The files.
    """

    frame: pd.DataFrame
    items: list[str]
    models: list[str]
    sources: list[str]


def long_table(choice: Choice, *, several: bool | None = None) -> LongTable:
    """All scores of the chosen blocks.

    Args:
        choice: The blocks.
        several: Whether ids have their task before them; default: where the blocks
            are of several tasks.
    """
    several = len(choice.tasks) > 1 if several is None else several
    items: dict[str, int] = {}
    blocks = choice.blocks
    positions = []
    for block in blocks:
        names = block.items
        if several:
            names = [item_name(block.task, i, several=True) for i in names]
        codes = [items.setdefault(name, len(items)) for name in names]
        positions.append(np.array(codes, dtype=np.int32))
    sizes = [len(block.items) for block in blocks]
    lists: dict[str, list[str]] = {}
    frame = {"item": np.concatenate(positions)}
    for name in ("model", "run", "source", "date"):
        values = [getattr(block, name) for block in blocks]
        lists[name] = sorted(set(values))  # sorted: the number of a date is its rank
        rank = {value: i for i, value in enumerate(lists[name])}
        frame[name] = np.repeat(np.array([rank[v] for v in values], np.int32), sizes)
    for name, attribute in (
        ("epoch", "epochs"),
        ("score", "scores"),
        ("state", "states"),
        ("hash", "hashes"),
        ("prompt", "prompts"),
    ):
        frame[name] = np.concatenate([getattr(block, attribute) for block in blocks])
    return LongTable(pd.DataFrame(frame), list(items), lists["model"], lists["source"])


def settle(
    table: LongTable, policies: Policies, counts: dict[str, Any]
) -> pd.DataFrame:
    """One score for each model and item; what was done is added to ``counts``.

    The order is: retries replace what they repeat, failures go by ``on_error``, scores
    are scaled and turned, epochs are averaged, runs go by ``runs``.

    Raises:
        DataError: For what the policies do not allow, naming models and items.
    """
    frame = _refuse_repeats(table)
    frame = _latest_try(frame, counts)
    frame = _failures(table, frame, policies, counts)
    frame = frame.assign(score=_on_scale(frame, policies))
    if policies.on_error == "zero":
        frame.loc[frame["state"] != SCORED, "score"] = _worst(policies)
    return _one_run(table, _mean_of_epochs(frame, counts), policies, counts)


def _refuse_repeats(table: LongTable) -> pd.DataFrame:
    frame = table.frame
    twice = frame.duplicated([*_CELL, "source", "epoch"])
    if twice.any():
        where = [table.items[i] for i in frame.loc[twice, "item"].unique()]
        file = table.sources[frame.loc[twice, "source"].iloc[0]]
        raise DataError(f"{file!r}: items listed twice: {some(where)}")
    return frame


def _latest_try(frame: pd.DataFrame, counts: dict[str, Any]) -> pd.DataFrame:
    """Of a sample that was tried again: the latest that did not fail."""
    key = [*_CELL, "run", "epoch"]
    n = len(frame)
    if frame.duplicated(key).any():
        failed = (frame["state"] != SCORED).astype(np.int8)
        order = np.lexsort((frame["source"], -frame["date"], failed))
        frame = frame.iloc[order].drop_duplicates(key).sort_index()
    counts["superseded_by_a_retry"] = n - len(frame)
    return frame


def _failures(
    table: LongTable, frame: pd.DataFrame, policies: Policies, counts: dict[str, Any]
) -> pd.DataFrame:
    found = {name: frame["state"] == state for name, state in _KINDS.items()}
    for name, rows in found.items():
        counts[name] = int(rows.sum())
    bad = frame["state"] != SCORED
    counts["on_error"] = policies.on_error
    if not bad.any() or policies.on_error == "zero":
        return frame
    if policies.on_error == "skip":
        return frame[~bad]
    items = [table.items[i] for i in frame.loc[bad, "item"].unique()]
    models = [table.models[k] for k in frame.loc[bad, "model"].unique()]
    kinds = ", ".join(f"{counts[name]} {name}" for name in _KINDS if counts[name])
    raise DataError(
        f"{kinds} scores (models {some(models)}; items {some(items)}): choose "
        "--on-error skip (a missing cell) or zero (the worst score)"
    )


def _worst(policies: Policies) -> float:
    if policies.scale == "keep" and policies.lower_is_better:
        raise DataError("on_error: with --scale keep and lower-is-better nothing is 0")
    return 0.0


def _on_scale(frame: pd.DataFrame, policies: Policies) -> np.ndarray:
    """Scores in [0, 1], best last, unless told to keep them."""
    scores = frame["score"].to_numpy(copy=True)
    usable = scores[(frame["state"] == SCORED).to_numpy()]
    keeps = policies.scale == "keep"
    low, high = policies.scale if isinstance(policies.scale, tuple) else (0.0, 1.0)
    if not keeps and len(usable) and not (low <= usable.min() <= usable.max() <= high):
        raise DataError(
            f"scores lie between {usable.min():.6g} and {usable.max():.6g}, "
            f"expected {low:g} to {high:g}: give --scale LO,HI "
            "(mapped to 0 and 1) or --scale keep"
        )
    if not keeps and (low, high) != (0.0, 1.0):
        scores = (scores - low) / (high - low)
    if policies.lower_is_better:
        scores = -scores if keeps else 1.0 - scores
    return scores


def _mean_of_epochs(frame: pd.DataFrame, counts: dict[str, Any]) -> pd.DataFrame:
    key = [*_CELL, "run"]
    counts["repeats_averaged"] = int(frame.duplicated(key).sum())
    if not counts["repeats_averaged"]:
        return frame
    groups = frame.groupby(key, sort=False)
    return groups.agg({"score": "mean", "date": "max", "source": "first"}).reset_index()


def _one_run(
    table: LongTable, frame: pd.DataFrame, policies: Policies, counts: dict[str, Any]
) -> pd.DataFrame:
    repeated = frame.duplicated(_CELL, keep=False)
    counts["cells_with_several_runs"] = int(frame[repeated].groupby(_CELL).ngroups)
    counts["runs"] = policies.runs
    if not repeated.any():
        return frame[[*_CELL, "score"]]
    if policies.runs == "mean":
        return frame.groupby(_CELL, sort=False)["score"].mean().reset_index()
    if policies.runs == "latest":
        latest = frame.groupby(_CELL)["date"].transform("max") == frame["date"]
        tied = frame[latest].duplicated(_CELL, keep=False)
        if (frame[latest][tied].groupby(_CELL)["score"].nunique() > 1).any():
            raise DataError(
                "runs: no latest one, the logs bear no different dates: "
                + _which(table, frame[latest][tied])
            )
        return frame[latest].drop_duplicates(_CELL)[[*_CELL, "score"]]
    differing = frame[repeated].groupby(_CELL)["score"].transform("nunique") > 1
    if differing.any():
        raise DataError(
            f"{_which(table, frame[repeated][differing])} was run more than once with "
            "other scores: choose --runs latest or mean, or name fewer files"
        )
    return frame.drop_duplicates(_CELL)[[*_CELL, "score"]]


def _which(table: LongTable, frame: pd.DataFrame) -> str:
    model = frame["model"].iloc[0]
    sources = frame.loc[frame["model"] == model, "source"].unique()
    files: Sequence[str] = [Path(table.sources[i]).name for i in sources]
    return f"model {table.models[model]!r} (in {some(files)})"

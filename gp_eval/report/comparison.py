"""Picture of a comparison: the ranking, and who is better than whom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gp_eval.comparison import Comparison
from gp_eval.report.curves import matplotlib_figure

__all__ = ["plot_comparison"]

_BLUE, _GREY = "#1f6fb2", "#9a9a9a"
_CELL, _LEAST = 0.42, 1.2
"""Inches of a cell, and of the matrix: numbers are legible for any number of models."""
_RANKING, _GAP, _CHARACTER = 3.8, 0.3, 0.08
"""Inches of the ranking's width, of the space between, of a character of a name."""
_NAME = 28
"""Longest name drawn in full, in characters."""


def plot_comparison(comparison: Comparison, path: Path) -> Path:
    """Draw the ranking with intervals and the matrix of probabilities.

    On the left the models by estimate, the best on top, each with its interval and its
    range of ranks. On the right ``P(R_row > R_column)`` in per cent, in the same order;
    bold where the two are not tied.

    Args:
        comparison: Any number of models.
        path: A ``.png``, ``.svg`` or ``.pdf`` file.

    Returns:
        The path, absolute.
    """
    names = _labels(comparison.names)
    side = max(_CELL * len(names), _LEAST)
    margin = _CHARACTER * max(len(name) for name in names) + 0.5
    # Sizes in inches, not a layout engine: rows of both panels must be level.
    width, height = margin + _RANKING + _GAP + side, margin + side
    figure = matplotlib_figure()(figsize=(width, height), dpi=150)
    bottom, share = margin / height, side / height
    left = figure.add_axes((margin / width, bottom, _RANKING / width, share))
    right = figure.add_axes((1.0 - side / width, bottom, side / width, share))
    _draw_ranking(left, comparison, names)
    _draw_probabilities(right, comparison, names)
    figure.savefig(path, bbox_inches="tight", pad_inches=0.15)
    return path.absolute()


def _draw_ranking(axis: Any, comparison: Comparison, names: list[str]) -> None:
    rows = np.arange(len(names))
    means = np.array([ranked.mean for ranked in comparison.ranking])
    low = np.array([ranked.low for ranked in comparison.ranking])
    high = np.array([ranked.high for ranked in comparison.ranking])
    axis.hlines(rows, low, high, color=_BLUE, alpha=0.45, lw=4)
    axis.plot(means, rows, "o", color=_BLUE, ms=5)
    axis.set_yticks(rows, names, fontsize=9)
    axis.set_ylim(len(names) - 0.5, -0.5)  # the best on top
    axis.grid(axis="x", color=_GREY, alpha=0.3, lw=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel(f"benchmark score, {comparison.level * 100:g} % interval")
    axis.set_title("Ranking", fontsize=10, loc="left")
    axis.set_title("rank", fontsize=9, loc="right")
    # Room on the right, so that ranks do not lie on intervals.
    start, end = axis.get_xlim()
    axis.set_xlim(start, end + 0.16 * (end - start))
    for row, ranked in enumerate(comparison.ranking):
        axis.annotate(
            ranked.ranks,
            (1.0, row),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="center",
            fontsize=9,
        )


def _draw_probabilities(axis: Any, comparison: Comparison, names: list[str]) -> None:
    matrix = comparison.probabilities().numpy()
    shown = np.ma.masked_where(np.eye(len(names), dtype=bool), matrix)
    # Wider limits than 0 and 1 keep the colours light enough for black numbers.
    axis.imshow(shown, cmap="RdBu", vmin=-0.4, vmax=1.4, aspect="auto")
    position = {name: i for i, name in enumerate(comparison.names)}
    tied = {
        (position[a], position[b])
        for pair in comparison.pairs
        if pair.tied
        for a, b in ((pair.a, pair.b), (pair.b, pair.a))
    }
    for i, j in np.argwhere(~np.eye(len(names), dtype=bool)).tolist():
        axis.text(
            j,
            i,
            _percent(matrix[i, j]),
            ha="center",
            va="center",
            fontsize=8,
            fontweight="normal" if (i, j) in tied else "bold",
        )
    axis.set_xticks(range(len(names)), names, rotation=90, fontsize=9)
    axis.set_yticks(range(len(names)), [""] * len(names))
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_title(
        "P(row better than column), %; bold: not tied", fontsize=10, loc="left"
    )


def _percent(probability: float) -> str:
    """A whole number that never rounds to certainty."""
    rounded = round(100.0 * probability)
    if rounded == 100 and probability < 1.0:
        return ">99"
    if rounded == 0 and probability > 0.0:
        return "<1"
    return str(rounded)


def _labels(names: Sequence[str]) -> list[str]:
    """The names, long ones cut in the middle unless that makes two of them equal."""
    short = [
        name
        if len(name) <= _NAME
        else f"{name[: _NAME // 2 - 1]}…{name[-_NAME // 2 :]}"
        for name in names
    ]
    labels = short if len(set(short)) == len(names) else names
    return [label.replace("$", r"\$") for label in labels]  # no formulae

"""Pictures of runs: estimate and interval against the number of items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gp_eval.errors import MissingDependencyError

__all__ = [
    "Curve",
    "check_picture",
    "curve_limits",
    "matplotlib_figure",
    "plot_curves",
]

_BLUE, _GREY, _BLACK = "#1f6fb2", "#9a9a9a", "#222222"
_FORMATS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Curve:
    """One run as it is drawn.

    Attributes:
        title: Name of the target.
        estimates: Estimate after each evaluated item.
        widths: Width of the 95 % interval after each item.
        truth: The full-benchmark score, if it is known.
        n_items: ``N``.
        stop_reason: Why the run stopped, if it has.
        random_means: Means of a growing random sample, for comparison.
        stopped_at: ``n`` at which it stopped, if that is not the end.
    """

    title: str
    estimates: Sequence[float]
    widths: Sequence[float]
    truth: float | None
    n_items: int
    stop_reason: str | None
    random_means: Sequence[float] | None = None
    stopped_at: int | None = None


def check_picture(path: Path) -> None:
    """Find out before a long run whether the picture can be written.

    Raises:
        MissingDependencyError: Without matplotlib.
        ValueError: For a suffix that is not a picture format.
        FileNotFoundError: For a folder that does not exist.
    """
    matplotlib_figure()
    if path.suffix not in _FORMATS:
        raise ValueError(f"output: expected one of {_FORMATS}, got {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"output: no such folder: {str(path.parent)!r}")


def plot_curves(curves: Sequence[Curve], path: Path) -> Path:
    """Draw one panel a run and write the picture.

    Args:
        curves: The runs, at least one.
        path: A ``.png``, ``.svg`` or ``.pdf`` file.

    Returns:
        The path, absolute.
    """
    figure_class = matplotlib_figure()
    columns = min(2, len(curves))
    rows = math.ceil(len(curves) / columns)
    figure = figure_class(figsize=(5.2 * columns, 3.1 * rows + 0.5), dpi=150)
    figure.set_layout_engine("constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for axis, curve in zip(axes, curves, strict=False):
        _draw(axis, curve)
    for axis in axes[len(curves) :]:
        axis.set_visible(False)
    for axis in axes[: len(curves)][-columns:]:
        axis.set_xlabel("evaluated items n")
        axis.tick_params(labelbottom=True)
    for axis in axes[::columns]:
        axis.set_ylabel("benchmark score")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=len(labels), frameon=False
    )
    figure.savefig(path)
    return path.absolute()


def _draw(axis: Any, curve: Curve) -> None:
    n = np.arange(1, len(curve.estimates) + 1)
    estimates, half = np.array(curve.estimates), np.array(curve.widths) / 2
    if curve.random_means is not None:
        axis.plot(n, curve.random_means, color=_GREY, lw=0.9, label="random sample")
    axis.fill_between(
        n,
        estimates - half,
        estimates + half,
        color=_BLUE,
        alpha=0.22,
        lw=0,
        label="95 % interval",
    )
    axis.plot(n, estimates, color=_BLUE, lw=1.6, label="estimate")
    if curve.truth is not None:
        axis.axhline(curve.truth, color=_BLACK, lw=1.0, ls="--", label="true score")
    title = curve.title.replace("$", r"\$")  # names are no formulae
    axis.set_title(title, fontsize=10, loc="left")
    axis.set_ylim(*curve_limits(curve))
    axis.margins(x=0.02)
    axis.spines[["top", "right"]].set_visible(False)
    if curve.stop_reason is not None:
        last = curve.stopped_at or len(curve.estimates)
        axis.plot([last], [curve.estimates[last - 1]], "o", color=_BLUE, ms=5)
        axis.axvline(last, color=_BLUE, lw=0.9, ls=":")
        axis.annotate(
            f"stopped at {last} of {curve.n_items}",
            (last, 0.04),
            xycoords=("data", "axes fraction"),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=_BLUE,
        )


def curve_limits(curve: Curve) -> tuple[float, float]:
    """Vertical limits set by where the run settles, not by its first steps."""
    late = slice(len(curve.estimates) // 8, None)
    estimates, half = np.array(curve.estimates)[late], np.array(curve.widths)[late] / 2
    values = [*(estimates - half), *(estimates + half)]
    if curve.truth is not None:
        values.append(curve.truth)
    low, high = min(values), max(values)
    pad = 0.15 * (high - low) or 0.01
    return low - pad, high + pad


def matplotlib_figure() -> Any:
    """The ``Figure`` class of matplotlib, or an error that says how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "pictures need matplotlib: pip install 'gp-eval[plot]'"
        ) from error
    return Figure

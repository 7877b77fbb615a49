"""A picture of panels: settings side by side, what is drawn of them from the top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gp_eval.experiments.summary import Summary
from gp_eval.report.curves import matplotlib_figure

__all__ = ["Draw", "by_setting", "draw_panels", "new_figure", "save_figure"]

Draw = Callable[[Any, list[Summary], dict[str, str]], None]
"""Draws the summaries of a setting on an axis, with a colour for each model."""

_COLOURS = (
    "#1f6fb2",
    "#d1495b",
    "#6b6b6b",
    "#e9a23b",
    "#2a9d6f",
    "#8a5fbf",
    "#b5651d",
    "#17a2b8",
    "#c2185b",
    "#7a8b00",
)


def by_setting(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    """Summaries of each regime and fraction, under what a title calls it."""
    groups: dict[str, list[Summary]] = {}
    for s in summaries:
        title = f"{s.data}\n{s.regime}, {s.reference_fraction:.0%} of references"
        groups.setdefault(title, []).append(s)
    return groups


def new_figure(rows: int, columns: int, *, size: tuple[float, float]) -> Any:
    """A figure and its ``rows x columns`` axes, laid out so that nothing overlaps.

    Args:
        rows: Rows of panels.
        columns: Columns of panels.
        size: Width and height of a panel in inches.
    """
    figure = matplotlib_figure()(
        figsize=(size[0] * columns, size[1] * rows + 0.5), dpi=140
    )
    figure.set_layout_engine("constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_panels(
    summaries: Sequence[Summary], rows: Sequence[Draw], path: Path
) -> list[Path]:
    """Settings of one data set as columns, models as lines of one legend.

    Args:
        summaries: Summaries of one data set.
        rows: What draws each row.
        path: The picture without suffix.

    Returns:
        The pictures written.
    """
    settings = by_setting(summaries)
    models = list(dict.fromkeys(s.model for s in summaries))
    colour = {m: _COLOURS[i % len(_COLOURS)] for i, m in enumerate(models)}
    figure, axes = new_figure(len(rows), len(settings), size=(4.4, 2.8))
    for column, (title, group) in enumerate(settings.items()):
        for axis, draw in zip(axes[:, column], rows, strict=True):
            draw(axis, group, colour)
        axes[0, column].set_title(title, fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=min(len(labels), 2 + 2 * len(settings)),
        frameon=False,
    )
    return save_figure(figure, path)


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Write ``.png`` and ``.svg``, given the path without suffix."""
    written = []
    for suffix in (".png", ".svg"):
        target = path.with_suffix(suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target)
        written.append(target.absolute())
    return written

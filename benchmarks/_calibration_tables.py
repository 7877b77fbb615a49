"""The tables of ``benchmarks/calibration.py`` on stderr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from gp_eval.experiments.calibration_tables import with_error


def print_tables(
    cells: Sequence[dict[str, Any]], totals: Sequence[dict[str, Any]]
) -> None:
    """Ratios and coverage by cell, then over all cells."""
    console = Console(stderr=True, width=220, highlight=False)
    for table in (_cells(cells), _totals(totals)):
        console.print(table)
        console.print()


def _cells(records: Sequence[dict[str, Any]]) -> Table:
    shares = ("0.05", "0.1", "0.2", "0.33", "0.5")
    widths = [s["width"] for s in records[0]["stops"]] if records else []
    table = Table(box=None, pad_edge=False, title="By cell", title_justify="left")
    table.add_column("set, regime, model")
    columns = [
        *("n_max", "ratio"),
        *(f"cover {s}" for s in shares),
        *(f"stop {w:g}" for w in widths),
        "items at equal RMSE",
    ]
    for name in columns:
        table.add_column(name, justify="right")
    for r in records:
        coverage = [
            with_error(r["coverage"].get(s), r["coverage_se"].get(s)) for s in shares
        ]
        stops = [
            with_error(s["coverage_stopped"], s["coverage_stopped_se"])
            + f" @{s['mean_fraction']:.0%}"
            for s in r["stops"]
        ]
        equal = " ".join(with_error(value, None) for value in r["items_ratio"].values())
        ratio = with_error(r["ratio"], r["ratio_se"])
        name = f"{r['data']} {r['regime'][:6]} {r['model']}"
        table.add_row(name, str(r["n_max"]), ratio, *coverage, *stops, equal)
    return table


def _totals(totals: Sequence[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, title="Over cells", title_justify="left")
    table.add_column("")
    for total in totals:
        table.add_column(f"{total['model']} ({total['cells']} cells)", justify="right")

    def row(name: str, values: Sequence[str]) -> None:
        table.add_row(name, *values)

    row(
        "ratio, geometric mean",
        [
            with_error(t["ratio_geometric_mean"], t["ratio_geometric_mean_se"])
            for t in totals
        ],
    )
    row(
        "worst ratio",
        [
            with_error(t["worst_ratio"], t["worst_ratio_se"])
            + f" {_short(t['worst_cell'])}"
            for t in totals
        ],
    )
    row(
        "cells above 1 by 2 s.e.",
        [str(len(t["cells_above_1_by_2_se"])) for t in totals],
    )
    if not totals:
        return table
    for share in totals[0]["interval_score_ratio"]:
        scores = [t["interval_score_ratio"].get(share) for t in totals]
        row(f"interval score ratio at {share}", [with_error(s, None) for s in scores])
    for share in totals[0]["coverage"]:
        row(f"coverage at {share}", [_pooled(t["coverage"][share]) for t in totals])
    for width in totals[0]["at_stop"]:
        for key in ("coverage", "coverage_stopped"):
            row(
                f"{key} at width {width}",
                [_pooled(t["at_stop"][width][key]) for t in totals],
            )
    return table


def _pooled(value: dict[str, Any] | None) -> str:
    if value is None:
        return "-"
    low = f"min {with_error(value['min'], value['min_se'])} {_short(value['min_cell'])}"
    below = f"{len(value['cells_below_0.9'])} of {value['cells']} below 0.9"
    return f"{with_error(value['pooled'], value['se'])}; {below}; {low}"


def _short(cell: str) -> str:
    return cell.replace("polation", ".")

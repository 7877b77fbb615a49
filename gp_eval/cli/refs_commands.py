"""Flags of ``gp-eval refs build | show | check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli.options import DuplicateModels, DuplicatesOption, Json, option
from gp_eval.cli.refs_build import SUFFIXES, refs_build

__all__ = ["refs_app"]

refs_app = typer.Typer(
    help="Tables of reference scores: what earlier models scored.", no_args_is_help=True
)
refs_app.command("build")(refs_build)


@refs_app.command("show")
def refs_show(
    path: Annotated[Path, typer.Argument(help="A .npz, .parquet or wide .csv table.")],
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    json: Json = False,
) -> None:
    """Show what a reference table holds."""
    from gp_eval.cli.refs import show_references

    show_references(path, duplicate_models=duplicate_models.value, as_json=json)


@refs_app.command("check")
def refs_check(
    path: Annotated[Path, typer.Argument(help="A .npz, .parquet or wide .csv table.")],
    drop: Annotated[
        Path | None,
        option("drop", "Write the table without the models that findings name."),
    ] = None,
    drop_items: Annotated[
        bool,
        option("drop-items", "Leave out mis-keyed items, too; the score changes."),
    ] = False,
    keep: Annotated[
        list[str] | None,
        option("keep", "Model known to be right, as is its block; may be repeated."),
    ] = None,
    false_alarms: Annotated[
        float, option("false-alarms", "Probability of a false alarm, for each kind.")
    ] = 0.01,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    json: Json = False,
) -> None:
    """Find what silently ruins a prior: wrong item order, flips, copies, bad keys.

    Exits with 1 if there is an error among the findings, else with 0, whether or not
    a cleaned table is written.
    """
    if not 0.0 < false_alarms < 0.5:
        raise typer.BadParameter(
            f"--false-alarms: expected a number between 0 and 0.5, got {false_alarms}"
        )
    if drop_items and drop is None:
        raise typer.BadParameter("--drop-items: nothing is written without --drop OUT")
    if drop is not None:
        _refuse_output(path, drop)
    from gp_eval.cli.refs_check import check_table

    check_table(
        path,
        level=false_alarms,
        keep=keep or [],
        drop=drop,
        drop_items=drop_items,
        duplicate_models=duplicate_models.value,
        as_json=json,
    )


def _refuse_output(path: Path, output: Path) -> None:
    """Before the work, not after it: the input as output, or an unknown format."""
    if output.suffix not in SUFFIXES:
        raise typer.BadParameter(f"--drop: expected {' or '.join(SUFFIXES)}")
    same = output.exists() and path.exists() and output.samefile(path)
    if same or output.resolve() == path.resolve():
        raise typer.BadParameter("--drop: expected another file than the table checked")

"""Flags of ``gp-eval refs build | show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli.options import DuplicateModels, DuplicatesOption, Json
from gp_eval.cli.refs_build import refs_build

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

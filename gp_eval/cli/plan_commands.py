"""Flags of ``gp-eval plan``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli.options import (
    DuplicateModels,
    DuplicatesOption,
    Json,
    Score,
    Seed,
    Stable,
    Width,
    Window,
    option,
    stopping_rule,
)

__all__ = ["plan"]


class CompleteMissing(StrEnum):
    """What to do with missing cells; filling them would invent targets' scores."""

    error = "error"
    drop_items = "drop-items"
    drop_models = "drop-models"


class PlanRegimes(StrEnum):
    """Which references play the target."""

    both = "both"
    interpolation = "interpolation"
    extrapolation = "extrapolation"


def plan(
    refs: Annotated[
        str,
        typer.Argument(
            metavar="REFS",
            help="Table of reference scores, or 'digits' for the embedded one.",
        ),
    ],
    models: Annotated[
        str | None,
        option(
            "models",
            "Models, separated by commas. [default: population,bayesame,rs-mean]",
        ),
    ] = None,
    width: Width = 0.03,
    stable: Stable = 0.005,
    window: Window = 30,
    regime: Annotated[
        PlanRegimes,
        option("regime", "A new model like the references, better than all, or both."),
    ] = PlanRegimes.both,
    gap: Annotated[
        float, option("gap", "Share of references left out below the strongest.")
    ] = 0.0,
    seconds: Annotated[
        float, option("seconds", "Time for the simulations after the pilot.")
    ] = 60.0,
    targets: Annotated[
        int | None,
        option("targets", "Runs a model, in place of --seconds.", min=1),
    ] = None,
    n_max: Annotated[
        int | None,
        option("n-max", "Cap on evaluated items; larger sets have one.", min=1),
    ] = None,
    more: Annotated[
        int, option("more", "How many more references are asked about.", min=1)
    ] = 10,
    exclude: Annotated[
        list[str] | None,
        option("exclude", "Reference model to leave out; may be repeated."),
    ] = None,
    macro: Annotated[
        bool, option("macro", "Let every group of items count the same.")
    ] = False,
    score: Annotated[Score, option("score", "Scores of digits.")] = Score.probability,
    missing: Annotated[
        CompleteMissing, option("missing", "What to do with missing scores.")
    ] = CompleteMissing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    seed: Seed = 0,
    output: Annotated[
        list[Path] | None,
        # No variable: GP_EVAL_OUTPUT is one file, these are any number.
        typer.Option(
            "--output",
            "-o",
            help="File to write (.json, .png, .svg, .pdf); may be repeated.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, option("jobs", "Processes.", "--jobs", "-j", min=1)
    ] = None,
    json: Json = False,
) -> None:
    """Forecast items, error and coverage for a new model; recommend settings."""
    stop = stopping_rule(width=width, stable=stable, window=window)
    from gp_eval.cli.plan import run_plan
    from gp_eval.planning.settings import DEFAULT_MODELS, REGIMES, PlanSettings

    named = tuple(m.strip() for m in (models or "").split(",") if m.strip())
    if models is not None and not named:
        raise typer.BadParameter("--models: expected at least one name")
    settings = PlanSettings(
        models=named or DEFAULT_MODELS,
        stop=stop,
        regimes=REGIMES
        if regime is PlanRegimes.both
        else tuple(r for r in REGIMES if r == regime.value),
        gap=gap,
        budget_s=seconds,
        targets=targets,
        n_max=n_max,
        more=more,
        jobs=jobs,
        seed=seed,
    )
    run_plan(
        refs,
        settings,
        exclude=exclude or [],
        macro=macro,
        score=score.value,
        missing=missing.value,
        duplicate_models=duplicate_models.value,
        outputs=output or [],
        as_json=json,
    )

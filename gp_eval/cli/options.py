"""Options that several commands share, and their choices."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gp_eval.decision import Decision
from gp_eval.stopping import StoppingRule

__all__ = [
    "CostAware",
    "Costs",
    "DuplicateModels",
    "DuplicatesOption",
    "Form",
    "GroupBy",
    "Json",
    "Level",
    "MaxCost",
    "MaxItems",
    "Missing",
    "MissingOption",
    "Model",
    "OnAlarm",
    "OnAlarmOption",
    "OwnWidth",
    "Paper",
    "Pool",
    "Regime",
    "Run",
    "Score",
    "Seed",
    "Stable",
    "Strict",
    "Until",
    "Width",
    "Window",
    "decision_rule",
    "option",
    "stopping_rule",
]


class Score(StrEnum):
    """Scores of the embedded benchmark."""

    binary = "binary"
    probability = "probability"


class Form(StrEnum):
    """How ``ask`` prints items."""

    ids = "ids"
    json = "json"
    csv = "csv"
    lm_eval = "lm-eval"
    inspect = "inspect"


class Missing(StrEnum):
    """What to do with missing cells."""

    error = "error"
    drop_items = "drop-items"
    drop_models = "drop-models"
    mean = "mean"


class DuplicateModels(StrEnum):
    """What to do with repeated model ids."""

    error = "error"
    number = "number"


class Regime(StrEnum):
    """How targets are split off; ``both`` is interpolation and extrapolation."""

    both = "both"
    interpolation = "interpolation"
    extrapolation = "extrapolation"
    low_correlation = "low-correlation"
    high_correlation = "high-correlation"
    chronological = "chronological"


class Pool(StrEnum):
    """How the errors of several targets become one: mean of squares, or of roots."""

    squared = "squared"
    mean = "mean"


class OnAlarm(StrEnum):
    """What to do with a target out of the range of the references."""

    fallback = "fallback"
    warn = "warn"


class Paper(StrEnum):
    """Settings of the BayesAME paper; figures 3 and 15 are of several targets."""

    table1 = "table1"
    table2 = "table2"
    figure1 = "figure1"
    figure3 = "figure3"
    figure4 = "figure4"
    figure5 = "figure5"
    figure15 = "figure15"


def _env(flag: str) -> str:
    return f"GP_EVAL_{flag.upper().replace('-', '_')}"


def option(flag: str, text: str, *names: str, **options: Any) -> Any:
    """An option that ``GP_EVAL_<FLAG>`` and the config file can set as well."""
    declared = names or (f"--{flag}",)
    return typer.Option(*declared, help=text, envvar=_env(flag), **options)


Run = Annotated[Path, typer.Argument(help="Folder of the session.")]
Json = Annotated[bool, option("json", "One JSON object a line on stdout.")]
GroupBy = Annotated[
    str | None,
    option(
        "group-by",
        "Scores by group of items: 'groups' (those of the references) or FILE:COLUMN, "
        "such as metadata.csv:subject, with ids in the column item or the first one.",
    ),
]
Strict = Annotated[
    bool,
    option(
        "strict",
        "Exit with 3 if a budget was spent before the wanted width, or the decision.",
    ),
]
Model = Annotated[str, option("model", "Model that estimates the score.")]
Width = Annotated[
    float, option("width", "Stop below this full width of the 95 % interval.", min=0)
]
Stable = Annotated[
    float, option("stable", "... and this range of the last estimates.", min=0)
]
Window = Annotated[int, option("window", "Number of last estimates looked at.", min=1)]
OwnWidth = Annotated[
    float | None,
    option(
        "width",
        "Stop below this full width of the 95 % interval. [default: 0.03, with --until "
        "none]",
        min=0,
    ),
]
MaxItems = Annotated[
    int | None, option("max-items", "Budget of evaluated items.", min=1)
]
Costs = Annotated[
    Path | None,
    option("costs", "CSV file of item,cost: what each item costs, in any unit."),
]
MaxCost = Annotated[
    float | None, option("max-cost", "Budget of what evaluated items cost.", min=0)
]
CostAware = Annotated[
    bool | None,
    option(
        "cost-aware",
        "Select by information per cost. [default: with --costs, if the model selects "
        "by information]",
        "--cost-aware/--no-cost-aware",
    ),
]
Until = Annotated[
    str | None,
    option("until", "Stop once this is decided: 'score>=0.70' (or <=, >, <), quoted."),
]
Level = Annotated[
    float | None,
    option("level", "Posterior probability that decides --until. [default: 0.95]"),
]
OnAlarmOption = Annotated[
    OnAlarm,
    option(
        "on-alarm",
        "When the target leaves what the references span: estimate by a random sample "
        "of the other items, or only warn, as with several targets.",
    ),
]
Seed = Annotated[int, option("seed", "Fixes every random choice.")]
MissingOption = Annotated[
    Missing, option("missing", "What to do with missing reference scores.")
]
DuplicatesOption = Annotated[
    DuplicateModels, option("duplicate-models", "What to do with repeated model ids.")
]


def stopping_rule(
    *,
    width: float | None = None,
    stable: float | None = None,
    window: int | None = None,
    max_items: int | None = None,
    max_cost: float | None = None,
    until: str | None = None,
    level: float | None = None,
) -> StoppingRule:
    """The stopping rule of the flags that are given.

    The window is that of the estimates and that of the decision.

    Raises:
        BadParameter: For a value that the rule refuses: it is wrong usage.
    """
    given = {
        "width": width,
        "stable": stable,
        "window": window,
        "max_items": max_items,
        "max_cost": max_cost,
        "until": decision_rule(until, level=level, window=window),
    }
    try:
        rule: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        return StoppingRule(**rule)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def decision_rule(
    until: str | None, *, level: float | None, window: int | None
) -> Decision | None:
    """The decision of the flags, ``None`` without ``--until``.

    Raises:
        BadParameter: For another form of statement, or a level without one.
    """
    if until is None:
        if level is not None:
            raise typer.BadParameter("--level: needs --until")
        return None
    given = {"level": level, "window": window}
    try:
        rule: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        return Decision.parse(until, **rule)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error

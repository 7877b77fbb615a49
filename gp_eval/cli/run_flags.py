"""Types of the flags of ``gp-eval run``: ``None`` is what the session has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli import options
from gp_eval.cli.options import option

__all__ = [
    "AcceptChanges",
    "BatchSize",
    "Exclude",
    "Filter",
    "Metric",
    "Model",
    "OnAlarm",
    "OnErrorOption",
    "Plan",
    "Refs",
    "Seed",
    "Stable",
    "Target",
    "Targets",
    "Tool",
    "Tries",
    "Window",
]

Tool = Annotated[
    list[str], typer.Argument(metavar="-- TOOL...", help="The tool's own flags.")
]
Refs = Annotated[
    Path | None,
    option("refs", "Table of reference scores; needed the first time."),
]
Target = Annotated[
    str | None, option("target", "Name of the model. [default: of the tool's flags]")
]
Targets = Annotated[
    list[str] | None,
    option("target", "Name of a model; may be repeated. [default: target]"),
]
Model = Annotated[
    str | None, option("model", "Model that estimates the score. [default: bayesame]")
]
Stable = Annotated[
    float | None,
    option("stable", "Range of the last estimates. [default: 0.005]", min=0),
]
Window = Annotated[
    int | None,
    option("window", "Number of last estimates looked at. [default: 30]", min=1),
]
Seed = Annotated[int | None, option("seed", "Fixes every random choice. [default: 0]")]
Exclude = Annotated[
    list[str] | None,
    option("exclude", "Reference model to leave out; may be repeated."),
]
BatchSize = Annotated[int, option("batch", "Items handed to the tool at once.", min=1)]
OnErrorOption = Annotated[
    str,
    option(
        "on-error",
        "Items that fail: retry (and stop if that does not help), skip (they stay "
        "unobserved) or score:0.",
    ),
]
Tries = Annotated[
    int | None,
    option("tries", "How often an item is tried. [default: 3 to retry, else 1]", min=1),
]
Metric = Annotated[
    str | None, option("metric", "Metric that counts. [default: of the references]")
]
Filter = Annotated[
    str | None, option("filter", "Its filter. [default: of the references]")
]
AcceptChanges = Annotated[
    bool,
    typer.Option("--accept-changes", help="Go on with other flags of the tool."),
]
Plan = Annotated[
    Path | None,
    option(
        "plan",
        "JSON of gp-eval plan: model, width, stable and window, where no flag says "
        "else.",
    ),
]
OnAlarm = Annotated[
    options.OnAlarm | None,
    option(
        "on-alarm",
        "When the target leaves what the references span: estimate by a random sample "
        "of the other items, or only warn, as with several targets. [default: "
        "fallback]",
    ),
]

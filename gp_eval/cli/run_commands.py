"""Flags of ``gp-eval run lm-eval | inspect | command``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli.options import (
    CostAware,
    Costs,
    Json,
    Level,
    MaxCost,
    MaxItems,
    OwnWidth,
    Run,
    Strict,
    Until,
    option,
)

__all__ = ["run_app"]

run_app = typer.Typer(
    help="Run an evaluation tool on chosen items until the score is known. The same "
    "line goes on after any interruption.",
    no_args_is_help=True,
)

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


@run_app.command("lm-eval")
def run_lm_eval(
    run: Run,
    tool: Tool,
    refs: Refs = None,
    target: Target = None,
    model: Model = None,
    width: OwnWidth = None,
    stable: Stable = None,
    window: Window = None,
    max_items: MaxItems = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    cost_aware: CostAware = None,
    until: Until = None,
    level: Level = None,
    seed: Seed = None,
    exclude: Exclude = None,
    batch: BatchSize = 16,
    on_error: OnErrorOption = "retry",
    tries: Tries = None,
    metric: Metric = None,
    filter: Filter = None,
    subprocess: Annotated[
        bool,
        option("subprocess", "A process for each batch; prompts may then differ."),
    ] = False,
    accept_changes: AcceptChanges = False,
    json: Json = False,
    strict: Strict = False,
) -> None:
    """Evaluate a model with lm-evaluation-harness: RUN -- --model hf --tasks ..."""
    from gp_eval.cli.run import RunOptions, run_driver
    from gp_eval.drivers import LmEvalDriver
    from gp_eval.drivers.lm_eval_flags import model_name
    from gp_eval.drivers.lm_eval_subprocess import LmEvalSubprocessDriver

    kind = LmEvalSubprocessDriver if subprocess else LmEvalDriver
    run_driver(
        run,
        kind(tool, metric=metric, filter=filter),
        RunOptions(
            refs=refs,
            targets=[target] if target else [],
            default_target=model_name(tool),
            model=model,
            width=width,
            stable=stable,
            window=window,
            max_items=max_items,
            costs=costs,
            max_cost=max_cost,
            cost_aware=cost_aware,
            until=until,
            level=level,
            seed=seed,
            exclude=exclude or [],
            batch=batch,
            on_error=on_error,
            tries=tries,
            accept_changes=accept_changes,
            as_json=json,
            strict=strict,
        ),
    )


@run_app.command("inspect")
def run_inspect(
    run: Run,
    tool: Tool,
    refs: Refs = None,
    target: Target = None,
    model: Model = None,
    width: OwnWidth = None,
    stable: Stable = None,
    window: Window = None,
    max_items: MaxItems = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    cost_aware: CostAware = None,
    until: Until = None,
    level: Level = None,
    seed: Seed = None,
    exclude: Exclude = None,
    batch: BatchSize = 16,
    on_error: OnErrorOption = "retry",
    tries: Tries = None,
    metric: Annotated[
        str | None,
        option("metric", "Scorer that counts. [default: of the references]"),
    ] = None,
    one_run: Annotated[
        bool | None,
        option(
            "one-run",
            "One run of Inspect that is handed samples, or one for each batch. "
            "[default: one if Inspect can]",
            "--one-run/--run-each-batch",
        ),
    ] = None,
    accept_changes: AcceptChanges = False,
    json: Json = False,
    strict: Strict = False,
) -> None:
    """Evaluate a model with Inspect: RUN -- task.py@task --model provider/model"""
    from gp_eval.cli.run import RunOptions, run_driver
    from gp_eval.drivers import InspectDriver
    from gp_eval.drivers.inspect_flags import model_name

    run_driver(
        run,
        InspectDriver(tool, metric=metric, sample_source=one_run),
        RunOptions(
            refs=refs,
            targets=[target] if target else [],
            default_target=model_name(tool),
            model=model,
            width=width,
            stable=stable,
            window=window,
            max_items=max_items,
            costs=costs,
            max_cost=max_cost,
            cost_aware=cost_aware,
            until=until,
            level=level,
            seed=seed,
            exclude=exclude or [],
            batch=batch,
            on_error=on_error,
            tries=tries,
            accept_changes=accept_changes,
            as_json=json,
            strict=strict,
        ),
    )


@run_app.command("command")
def run_command(
    run: Run,
    tool: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...",
            help="The command, with {items} and {scores} for its files.",
        ),
    ],
    refs: Refs = None,
    target: Targets = None,
    model: Model = None,
    width: OwnWidth = None,
    stable: Stable = None,
    window: Window = None,
    max_items: MaxItems = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    cost_aware: CostAware = None,
    until: Until = None,
    level: Level = None,
    seed: Seed = None,
    exclude: Exclude = None,
    batch: BatchSize = 16,
    on_error: OnErrorOption = "retry",
    tries: Tries = None,
    accept_changes: AcceptChanges = False,
    json: Json = False,
    strict: Strict = False,
) -> None:
    """Evaluate with any command: RUN -- ./score.sh {items} {scores}

    The command reads an item a line from {items} and writes ITEM=SCORE lines (or CSV,
    JSON lines, a log) to {scores}; {target} is the name of the target.
    """
    from gp_eval.cli.run import RunOptions, run_driver
    from gp_eval.drivers import CommandDriver

    run_driver(
        run,
        CommandDriver(tool),
        RunOptions(
            refs=refs,
            targets=target or [],
            default_target="target",
            model=model,
            width=width,
            stable=stable,
            window=window,
            max_items=max_items,
            costs=costs,
            max_cost=max_cost,
            cost_aware=cost_aware,
            until=until,
            level=level,
            seed=seed,
            exclude=exclude or [],
            batch=batch,
            on_error=on_error,
            tries=tries,
            accept_changes=accept_changes,
            as_json=json,
            strict=strict,
        ),
    )

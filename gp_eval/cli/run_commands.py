"""Flags of ``gp-eval run lm-eval | inspect | command``."""

from __future__ import annotations

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
from gp_eval.cli.run_flags import (
    AcceptChanges,
    BatchSize,
    Exclude,
    Filter,
    Metric,
    Model,
    OnAlarm,
    OnErrorOption,
    Plan,
    Refs,
    Seed,
    Stable,
    Target,
    Targets,
    Tool,
    Tries,
    Window,
)

__all__ = ["run_app"]

run_app = typer.Typer(
    help="Run an evaluation tool on chosen items until the score is known. The same "
    "line goes on after any interruption.",
    no_args_is_help=True,
)


@run_app.command("lm-eval")
def run_lm_eval(
    run: Run,
    tool: Tool,
    refs: Refs = None,
    target: Target = None,
    model: Model = None,
    plan: Plan = None,
    width: OwnWidth = None,
    stable: Stable = None,
    window: Window = None,
    max_items: MaxItems = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    cost_aware: CostAware = None,
    until: Until = None,
    level: Level = None,
    on_alarm: OnAlarm = None,
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
            plan=plan,
            width=width,
            stable=stable,
            window=window,
            max_items=max_items,
            costs=costs,
            max_cost=max_cost,
            cost_aware=cost_aware,
            until=until,
            level=level,
            on_alarm=None if on_alarm is None else on_alarm.value,
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
    plan: Plan = None,
    width: OwnWidth = None,
    stable: Stable = None,
    window: Window = None,
    max_items: MaxItems = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    cost_aware: CostAware = None,
    until: Until = None,
    level: Level = None,
    on_alarm: OnAlarm = None,
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
            plan=plan,
            width=width,
            stable=stable,
            window=window,
            max_items=max_items,
            costs=costs,
            max_cost=max_cost,
            cost_aware=cost_aware,
            until=until,
            level=level,
            on_alarm=None if on_alarm is None else on_alarm.value,
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
    plan: Plan = None,
    width: OwnWidth = None,
    stable: Stable = None,
    window: Window = None,
    max_items: MaxItems = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    cost_aware: CostAware = None,
    until: Until = None,
    level: Level = None,
    on_alarm: OnAlarm = None,
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
            plan=plan,
            width=width,
            stable=stable,
            window=window,
            max_items=max_items,
            costs=costs,
            max_cost=max_cost,
            cost_aware=cost_aware,
            until=until,
            level=level,
            on_alarm=None if on_alarm is None else on_alarm.value,
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

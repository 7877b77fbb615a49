"""Flags of ``gp-eval start | ask | tell | status | report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli.options import (
    CostAware,
    Costs,
    DuplicateModels,
    DuplicatesOption,
    Form,
    GroupBy,
    Json,
    Level,
    MaxCost,
    MaxItems,
    Missing,
    MissingOption,
    OnAlarm,
    OnAlarmOption,
    OwnWidth,
    Run,
    Seed,
    Stable,
    Strict,
    Until,
    Window,
    option,
    stopping_rule,
)
from gp_eval.cli.refs_build import OnError

__all__ = ["ask", "report", "start", "status", "tell"]


def start(
    context: typer.Context,
    run: Run,
    refs: Annotated[Path, option("refs", "Table of reference scores.")],
    target: Annotated[
        list[str],
        option(
            "target",
            "Name of a model to evaluate; may be repeated (in the variable, names are "
            "separated by spaces).",
        ),
    ],
    model: Annotated[
        str | None,
        option(
            "model",
            "Model that estimates the score. [default: bayesame, for several targets "
            "bayesame-multi]",
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        option(
            "option",
            "NAME=JSON, an option of the model, such as batch=2; may be repeated.",
        ),
    ] = None,
    weights: Annotated[
        Path | None,
        option("weights", "CSV file of model,weight: how much each reference counts."),
    ] = None,
    metadata: Annotated[
        Path | None,
        option(
            "metadata",
            "CSV file of what is known about each model, ids first: references count "
            "by their likeness to the target.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        option(
            "like", "Row of --metadata that describes it. [default: the target's name]"
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        option(
            "plan",
            "JSON of gp-eval plan: model, width, stable and window, where no flag says "
            "else.",
        ),
    ] = None,
    width: OwnWidth = None,
    stable: Stable = 0.005,
    window: Window = 30,
    max_items: MaxItems = None,
    costs: Costs = None,
    max_cost: MaxCost = None,
    cost_aware: CostAware = None,
    until: Until = None,
    level: Level = None,
    seed: Seed = 0,
    exclude: Annotated[
        list[str] | None,
        option("exclude", "Reference model to leave out; may be repeated."),
    ] = None,
    macro: Annotated[
        bool, option("macro", "Let every group of items count the same.")
    ] = False,
    on_alarm: OnAlarmOption = OnAlarm.fallback,
    missing: MissingOption = Missing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
) -> None:
    """Start a session in a folder of its own, for one target or several."""
    from gp_eval.cli.model_options import parse_options, text_options
    from gp_eval.cli.sessions import start_session

    texts = text_options(model) if options and model is not None else ()
    given = parse_options(options or [], texts=texts)
    if (weights is not None) + (metadata is not None) + ("weights" in given) > 1:
        raise typer.BadParameter(
            "give one of --weights, --metadata and --option weights=..."
        )
    if like is not None and metadata is None:
        raise typer.BadParameter("--like: needs --metadata")
    if metadata is not None and like is None and len(target) > 1:
        raise typer.BadParameter(
            "--like: several targets share their weights; name the row to go by"
        )
    if plan is not None and len(target) > 1:
        raise typer.BadParameter("--plan: is about one target, several are given")
    start_session(
        run,
        refs,
        targets=target,
        model=model,
        options=given,
        weights=weights,
        metadata=None if metadata is None else (metadata, like or target[0]),
        stop=stopping_rule(
            width=width,
            stable=stable,
            window=window,
            max_items=max_items,
            max_cost=max_cost,
            until=until,
            level=level,
        ),
        costs=costs,
        cost_aware=cost_aware,
        seed=seed,
        exclude=exclude or [],
        macro=macro,
        on_alarm=on_alarm.value,
        missing=missing.value,
        duplicate_models=duplicate_models.value,
        plan=None if plan is None else (plan, _left_open(context)),
    )


def _left_open(context: typer.Context) -> set[str]:
    """Settings that no flag, variable or config file gives."""
    from gp_eval.cli.planned import SETTINGS

    sources = {name: context.get_parameter_source(name) for name in SETTINGS}
    return {n for n, source in sources.items() if source and source.name == "DEFAULT"}


def ask(
    run: Run,
    n: Annotated[int, option("n", "Number of items.", "-n", min=1)] = 1,
    form: Annotated[
        Form, option("as", "How to print them; for several targets as pairs.", "--as")
    ] = Form.ids,
    pending: Annotated[
        bool, typer.Option("--pending", help="Print what was asked and not told.")
    ] = False,
    task: Annotated[
        str | None,
        option("task", "Task for a harness, if the references name none."),
    ] = None,
    strict: Strict = False,
) -> None:
    """Print the next items to evaluate; nothing once the run has stopped."""
    from gp_eval.cli.sessions import ask_items

    raise typer.Exit(
        ask_items(run, n, form=form.value, pending=pending, task=task, strict=strict)
    )


def tell(
    run: Run,
    scores: Annotated[
        list[str] | None, typer.Argument(help="ITEM=SCORE, any number of them.")
    ] = None,
    source: Annotated[
        str | None,
        option(
            "from",
            "Log, or file of scores (.csv, .json, .jsonl), - for stdin.",
            "--from",
        ),
    ] = None,
    # No variable: GP_EVAL_TARGET names the targets of a session, this is one of them.
    target: Annotated[
        str | None,
        typer.Option("--target", help="Whose scores they are, of several targets."),
    ] = None,
    metric: Annotated[
        str | None, option("metric", "Metric in a log. [default: of the references]")
    ] = None,
    filter: Annotated[
        str | None, option("filter", "Filter in a log. [default: of the references]")
    ] = None,
    log_model: Annotated[
        str | None, option("log-model", "Model, if a log holds several.")
    ] = None,
    on_error: Annotated[
        OnError, option("on-error", "Failed items of a log; skip leaves them pending.")
    ] = OnError.skip,
) -> None:
    """Record scores: all of them, or none if one is wrong."""
    from gp_eval.cli.telling import tell_scores

    if bool(scores) == bool(source):
        raise typer.BadParameter("give either ITEM=SCORE arguments or --from FILE")
    tell_scores(
        run,
        scores or [],
        source,
        target=target,
        metric=metric,
        filter=filter,
        log_model=log_model,
        on_error=on_error.value,
    )


def status(
    run: Run, group_by: GroupBy = None, json: Json = False, strict: Strict = False
) -> None:
    """Show the estimate, its interval and whether the run has stopped."""
    from gp_eval.cli.sessions import show_status

    raise typer.Exit(show_status(run, group_by=group_by, as_json=json, strict=strict))


def report(
    run: Run,
    output: Annotated[
        list[Path],
        # No variable: GP_EVAL_OUTPUT is one file, these are any number.
        typer.Option(
            "--output",
            "-o",
            help="File to write (.html, .json, .md, .png); may be repeated.",
        ),
    ],
    group_by: GroupBy = None,
) -> None:
    """Write a report of the session as it stands."""
    from gp_eval.cli.report import report_run

    report_run(run, output, group_by=group_by)

"""Commands and flags; what they do is imported when it runs.

Nothing here imports torch, so that ``gp-eval --help`` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli.options import (
    DuplicateModels,
    DuplicatesOption,
    Form,
    Json,
    MaxItems,
    Missing,
    MissingOption,
    Model,
    Paper,
    Pool,
    Regime,
    Run,
    Score,
    Seed,
    Stable,
    Strict,
    Width,
    Window,
    option,
)
from gp_eval.cli.refs_build import OnError, refs_build
from gp_eval.errors import GpEvalError
from gp_eval.stopping import StoppingRule

__all__ = ["app", "main"]

app = typer.Typer(
    name="gp-eval",
    help="Estimate a model's full-benchmark score from a few well-chosen items.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
refs_app = typer.Typer(
    help="Tables of reference scores: what earlier models scored.", no_args_is_help=True
)
app.add_typer(refs_app, name="refs")
refs_app.command("build")(refs_build)


def _rule(
    *, width: float, stable: float, window: int, max_items: int | None = None
) -> StoppingRule:
    """The stopping rule of the flags; a value it refuses is wrong usage."""
    try:
        return StoppingRule(
            width=width, stable=stable, window=window, max_items=max_items
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.callback()
def _configure(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            envvar="GP_EVAL_CONFIG",
            help="TOML file with a table of flags for each command.",
        ),
    ] = None,
) -> None:
    from gp_eval.cli.config import load_config

    context.default_map = load_config(context, config)


@app.command()
def demo(
    targets: Annotated[
        int, option("targets", "Classifiers to hide and estimate.", min=1, max=20)
    ] = 4,
    score: Annotated[
        Score, option("score", "Probability of the true digit, or right / wrong.")
    ] = Score.probability,
    model: Model = "bayesame",
    width: Width = 0.03,
    stable: Stable = 0.005,
    window: Window = 30,
    seed: Seed = 0,
    output: Annotated[
        Path,
        option("output", "Picture to write (.png, .svg, .pdf).", "--output", "-o"),
    ] = Path("gp-eval-demo.png"),
    json: Json = False,
) -> None:
    """Estimate hidden classifiers of the embedded digits benchmark, and draw it."""
    from gp_eval.cli.demo import run_demo

    run_demo(
        n_targets=targets,
        score=score.value,
        model=model,
        stop=_rule(width=width, stable=stable, window=window),
        seed=seed,
        output=output,
        as_json=json,
    )


@refs_app.command("show")
def refs_show(
    path: Annotated[Path, typer.Argument(help="A .npz, .parquet or wide .csv table.")],
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    json: Json = False,
) -> None:
    """Show what a reference table holds."""
    from gp_eval.cli.refs import show_references

    show_references(path, duplicate_models=duplicate_models.value, as_json=json)


@app.command()
def start(
    run: Run,
    refs: Annotated[Path, option("refs", "Table of reference scores.")],
    target: Annotated[str, option("target", "Name of the model to evaluate.")],
    model: Model = "bayesame",
    width: Width = 0.03,
    stable: Stable = 0.005,
    window: Window = 30,
    max_items: MaxItems = None,
    seed: Seed = 0,
    exclude: Annotated[
        list[str] | None,
        option("exclude", "Reference model to leave out; may be repeated."),
    ] = None,
    macro: Annotated[
        bool, option("macro", "Let every group of items count the same.")
    ] = False,
    missing: MissingOption = Missing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
) -> None:
    """Start a session in a folder of its own."""
    from gp_eval.cli.sessions import start_session

    start_session(
        run,
        refs,
        target=target,
        model=model,
        stop=_rule(width=width, stable=stable, window=window, max_items=max_items),
        seed=seed,
        exclude=exclude or [],
        macro=macro,
        missing=missing.value,
        duplicate_models=duplicate_models.value,
    )


@app.command()
def ask(
    run: Run,
    n: Annotated[int, option("n", "Number of items.", "-n", min=1)] = 1,
    form: Annotated[Form, option("as", "How to print them.", "--as")] = Form.ids,
    pending: Annotated[
        bool, typer.Option("--pending", help="Print what was asked and not told.")
    ] = False,
    task: Annotated[
        str | None, option("task", "Task for --as, if the references name none.")
    ] = None,
    strict: Strict = False,
) -> None:
    """Print the next items to evaluate; nothing once the run has stopped."""
    from gp_eval.cli.sessions import ask_items

    raise typer.Exit(
        ask_items(run, n, form=form.value, pending=pending, task=task, strict=strict)
    )


@app.command()
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
    from gp_eval.cli.sessions import tell_scores

    if bool(scores) == bool(source):
        raise typer.BadParameter("give either ITEM=SCORE arguments or --from FILE")
    tell_scores(
        run,
        scores or [],
        source,
        metric=metric,
        filter=filter,
        log_model=log_model,
        on_error=on_error.value,
    )


@app.command()
def simulate(
    data: Annotated[
        list[str],
        typer.Argument(help="Score tables, or 'digits' for the embedded one."),
    ],
    models: Annotated[
        str | None,
        option(
            "models",
            "Models, separated by commas. [default: bayesame,bayesame-rs,rs-mean]",
        ),
    ] = None,
    regime: Annotated[
        Regime, option("regime", "How targets are split off.")
    ] = Regime.both,
    reference_fraction: Annotated[
        str | None,
        option("reference-fraction", "Shares of the pool, by commas. [default: 0.5]"),
    ] = None,
    seeds: Annotated[
        int | None, option("seeds", "Draws of the references. [default: 20]", min=1)
    ] = None,
    targets: Annotated[int, option("targets", "Targets of a draw.", min=1)] = 10,
    draws: Annotated[
        int | None,
        option("draws", "Draws of the targets where drawn. [default: 1]", min=1),
    ] = None,
    n_max: Annotated[
        int | None, option("n-max", "Cap on evaluated items.", min=1)
    ] = None,
    paper: Annotated[
        Paper | None,
        option(
            "paper", "Models of the paper, 40 seeds, 3 draws, unless flags say else."
        ),
    ] = None,
    score: Annotated[Score, option("score", "Scores of digits.")] = Score.probability,
    missing: MissingOption = Missing.error,
    duplicate_models: DuplicatesOption = DuplicateModels.error,
    output: Annotated[
        Path, option("output", "Folder of the results.", "--output", "-o")
    ] = Path("results"),
    jobs: Annotated[
        int | None, option("jobs", "Processes.", "--jobs", "-j", min=1)
    ] = None,
    pool: Annotated[
        Pool, option("pool", "How errors of targets are averaged in the table.")
    ] = Pool.squared,
    figures: Annotated[
        bool, option("figures", "Draw figures.", "--figures/--no-figures")
    ] = True,
    json: Json = False,
) -> None:
    """Compare models over many seeds and targets; the same line resumes."""
    from gp_eval.cli.simulate import run_simulation
    from gp_eval.experiments.tables import PAPER_MODELS, PAPER_OPTIONS

    _refuse_invented(missing)
    named = [m.strip() for m in (models or "").split(",") if m.strip()]
    if models is not None and not named:
        raise typer.BadParameter("--models: expected at least one name")
    usual = PAPER_MODELS if paper else ("bayesame", "bayesame-rs", "rs-mean")
    wanted = [*PAPER_MODELS, *named] if paper else named or usual
    run_simulation(
        data,
        models=list(dict.fromkeys(wanted)),
        options=PAPER_OPTIONS if paper else {},
        regimes=["interpolation", "extrapolation"]
        if regime is Regime.both
        else [regime.value],
        reference_fractions=_fractions(
            reference_fraction or (paper.fractions if paper else "0.5")
        ),
        seeds=seeds or (40 if paper else 20),
        n_targets=targets,
        draws=draws or (3 if paper else 1),
        n_max=n_max,
        score=score.value,
        missing=missing.value,
        duplicate_models=duplicate_models.value,
        output=output,
        jobs=jobs,
        pool=pool.value,
        figures=figures,
        as_json=json,
    )


def _refuse_invented(missing: Missing) -> None:
    if missing is Missing.mean:
        raise typer.BadParameter("--missing mean would invent the targets' scores")


def _fractions(text: str) -> list[float]:
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = [-1.0]
    if not all(0.0 < value <= 1.0 for value in values):
        raise typer.BadParameter(f"--reference-fraction: 0 < f <= 1, got {text!r}")
    return list(dict.fromkeys(values))


@app.command()
def status(run: Run, json: Json = False, strict: Strict = False) -> None:
    """Show the estimate, its interval and whether the run has stopped."""
    from gp_eval.cli.sessions import show_status

    raise typer.Exit(show_status(run, as_json=json, strict=strict))


def main() -> None:
    """Entry point: errors on stderr, one line, with their exit code."""
    try:
        app()
    except GpEvalError as error:
        print(f"gp-eval: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except (ValueError, OSError) as error:
        print(f"gp-eval: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

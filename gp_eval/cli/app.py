"""Commands and flags; what they do is imported when it runs.

Nothing here imports torch, so that ``gp-eval --help`` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gp_eval.cli.disco_commands import fit, predict, select
from gp_eval.cli.disco_experiment_commands import (
    calibration,
    cost,
    experiment,
    factors,
)
from gp_eval.cli.options import (
    DuplicateModels,
    DuplicatesOption,
    Json,
    Level,
    Missing,
    MissingOption,
    Model,
    Paper,
    Pool,
    Regime,
    Score,
    Seed,
    Stable,
    Until,
    Width,
    Window,
    decision_rule,
    option,
    stopping_rule,
)
from gp_eval.cli.plan_commands import plan
from gp_eval.cli.refs_commands import refs_app
from gp_eval.cli.run_commands import run_app
from gp_eval.cli.session_commands import ask, report, start, status, tell
from gp_eval.errors import GpEvalError

__all__ = ["app", "main"]

app = typer.Typer(
    name="gp-eval",
    help="Estimate a model's full-benchmark score from a few well-chosen items.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(refs_app, name="refs")
app.add_typer(run_app, name="run")
disco_app = typer.Typer(
    help="Choose items once, run later models on them, predict their full scores.",
    no_args_is_help=True,
)
app.add_typer(disco_app, name="disco")


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
        stop=stopping_rule(width=width, stable=stable, window=window),
        seed=seed,
        output=output,
        as_json=json,
    )


for command in (plan, start, ask, tell, status, report):
    app.command()(command)
for of_disco in (fit, select, predict, experiment, factors, calibration, cost):
    disco_app.command()(of_disco)


@app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Folders of sessions.")
    ],
    level: Annotated[float, option("level", "Probability of the intervals.")] = 0.95,
    output: Annotated[
        Path | None,
        option("output", "Picture to write (.png, .svg, .pdf).", "--output", "-o"),
    ] = None,
    json: Json = False,
) -> None:
    """Rank targets and say which is better, by how much and how surely."""
    from gp_eval.cli.compare import compare_runs

    if not 0.0 < level < 1.0:
        raise typer.BadParameter(f"--level: expected 0 < level < 1, got {level}")
    compare_runs(runs, level=level, as_json=json, output=output)


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
        Regime | None, option("regime", "How targets are split off. [default: both]")
    ] = None,
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
            "paper", "Settings of the paper, 40 seeds, 3 draws, unless flags say else."
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
    until: Until = None,
    level: Level = None,
    window: Window = 30,
    figures: Annotated[
        bool, option("figures", "Draw figures.", "--figures/--no-figures")
    ] = True,
    json: Json = False,
) -> None:
    """Compare models over many seeds and targets; the same line resumes."""
    from gp_eval.cli.simulate import run_simulation
    from gp_eval.experiments.presets import PRESETS

    _refuse_invented(missing)
    named = [m.strip() for m in (models or "").split(",") if m.strip()]
    if models is not None and not named:
        raise typer.BadParameter("--models: expected at least one name")
    preset = PRESETS[paper.value if paper else "default"]
    wanted = [*preset.models, *named] if paper else named or preset.models
    run_simulation(
        data,
        models=list(dict.fromkeys(wanted)),
        options=preset.options,
        regimes=list(preset.regimes) if regime is None else _regimes(regime),
        reference_fractions=list(preset.fractions)
        if reference_fraction is None
        else _fractions(reference_fraction),
        seeds=seeds or preset.seeds,
        n_targets=targets,
        draws=draws or preset.draws,
        n_max=n_max,
        score=score.value,
        missing=missing.value,
        duplicate_models=duplicate_models.value,
        output=output,
        jobs=jobs,
        pool=pool.value,
        decision=decision_rule(until, level=level, window=window),
        window=window,
        figures=figures,
        as_json=json,
    )


def _refuse_invented(missing: Missing) -> None:
    if missing is Missing.mean:
        raise typer.BadParameter("--missing mean would invent the targets' scores")


def _regimes(regime: Regime) -> list[str]:
    if regime is Regime.both:
        return [Regime.interpolation.value, Regime.extrapolation.value]
    return [regime.value]


def _fractions(text: str) -> list[float]:
    try:
        values = [float(word) for word in text.split(",")]
    except ValueError:
        values = [-1.0]
    if not all(0.0 < value <= 1.0 for value in values):
        raise typer.BadParameter(f"--reference-fraction: 0 < f <= 1, got {text!r}")
    return list(dict.fromkeys(values))


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

"""``gp-eval simulate``: models side by side on one or several data sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from gp_eval.cli.decisions import print_decisions
from gp_eval.cli.load import load_scores
from gp_eval.cli.output import note, print_json, print_table, progress_console
from gp_eval.data import References
from gp_eval.data.validation import DuplicateModels, Missing
from gp_eval.decision import Decision, check_threshold
from gp_eval.errors import DataError, GpEvalError
from gp_eval.experiments.calibration_tables import (
    coverage_table,
    stop_table,
    width_table,
)
from gp_eval.experiments.cells import Cell, Regime, plan_cells
from gp_eval.experiments.decisions import DecisionSummary, summarise_decisions
from gp_eval.experiments.simulate import simulate
from gp_eval.experiments.store import read_result
from gp_eval.experiments.summary import Summary, summarise
from gp_eval.experiments.tables import Pool, published_value, rmse_table

__all__ = ["run_simulation"]

_HOW_TO_READ = """\
Coverage ± its standard error over targets and seeds; at the stop of the runs that stop
before n = N, and mean n / N of all runs. The interval score is the width and a penalty
for misses: lower is better. The PIT error (mean over n / N) is 0 for perfect beliefs;
of so many runs it stays below the limit if they hold."""


def run_simulation(
    data: Sequence[str],
    *,
    models: list[str],
    options: Mapping[str, Mapping[str, int]],
    regimes: Sequence[str],
    reference_fractions: list[float],
    seeds: int,
    n_targets: int,
    draws: int,
    n_max: int | None,
    score: str,
    missing: Missing,
    duplicate_models: DuplicateModels,
    output: Path,
    jobs: int | None,
    pool: Pool,
    decision: Decision | None,
    window: int,
    figures: bool,
    as_json: bool,
) -> None:
    """Run what is not finished, then print a table or JSON, and draw figures."""
    if figures:
        from gp_eval.report.curves import check_picture

        check_picture(Path("figure.png"))
    tables = _load(data, score, missing, duplicate_models)
    if decision is not None:
        for table in tables.values():
            check_threshold(decision, table)
    cells = [
        cell
        for name, table in tables.items()
        for cell in plan_cells(
            [name],
            models=[_suited(m, table) if options else m for m in models],
            regimes=[cast(Regime, regime) for regime in regimes],
            reference_fractions=reference_fractions,
            seeds=seeds,
            n_targets=n_targets,
            draws=draws,
            n_max=n_max,
            options={_suited(m, table): given for m, given in options.items()},
        )
    ]
    refused = _run(cells, tables, output, jobs)
    results = [
        read_result(output / cell.path) for cell in cells if cell.path not in refused
    ]
    summaries = summarise(results, window=window)
    decisions = summarise_decisions(results, decision) if decision else []
    _report(
        summaries,
        decisions,
        refused,
        output,
        pool=pool,
        as_json=as_json,
        figures=figures,
    )


def _report(
    summaries: list[Summary],
    decisions: list[DecisionSummary],
    refused: dict[Path, str],
    output: Path,
    *,
    pool: Pool,
    as_json: bool,
    figures: bool,
) -> None:
    """Everything that can be shown, and an error for what was refused."""
    if as_json:
        for i, summary in enumerate(summaries):
            decided = {"decision": decisions[i].record()} if decisions else {}
            print_json(summary.record() | decided)
    else:
        if summaries:
            _print(summaries, pool)
        if decisions:
            print_decisions(decisions)
        note(f"Curves: {output.absolute()}")
    if figures:
        from gp_eval.experiments.calibration_figures import plot_calibration, plot_pit
        from gp_eval.experiments.figures import plot_summaries

        by_data: dict[str, list[Summary]] = defaultdict(list)
        for summary in summaries:
            by_data[summary.data].append(summary)
        for name, group in by_data.items():
            for draw, picture in (
                (plot_summaries, "comparison"),
                (plot_calibration, "calibration"),
                (plot_pit, "pit"),
            ):
                for path in draw(group, output / name / picture):
                    note(f"Figure: {path}")
    if refused:
        reasons = sorted({f"{path.parent}: {why}" for path, why in refused.items()})
        raise GpEvalError("\n  ".join([f"{len(refused)} cells refused:", *reasons]))


def _suited(model: str, table: References) -> str:
    """The IRT model for scores between 0 and 1 where scores are not only 0 and 1."""
    binary = bool(((table.scores == 0) | (table.scores == 1)).all())
    return "irt-beta" if model == "irt-2pl" and not binary else model


def _load(
    data: Sequence[str], score: str, missing: Missing, duplicates: DuplicateModels
) -> dict[str, References]:
    tables: dict[str, References] = {}
    for source in data:
        name, table = load_scores(
            source, score=score, missing=missing, duplicate_models=duplicates
        )
        if name in tables:
            raise DataError(f"data: two sets are called {name!r}")
        tables[name] = table
    return tables


def _run(
    cells: list[Cell], tables: dict[str, References], output: Path, jobs: int | None
) -> dict[Path, str]:
    """Run the cells; the reasons of those that were refused."""
    refused: dict[Path, str] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=progress_console()) as progress:
        task = progress.add_task("Simulating", total=len(cells))
        try:
            for outcome in simulate(cells, tables, output, jobs=jobs):
                progress.advance(task)
                if outcome.refused is not None:
                    refused[outcome.cell.path] = outcome.refused
        except KeyboardInterrupt:
            note("Interrupted; finished cells are kept, the same command goes on.")
            raise
    return refused


def _print(summaries: list[Summary], pool: Pool) -> None:
    columns, rows = rmse_table(summaries, pool=pool)
    print_table(columns, rows)
    note(
        "Evaluation-weighted integrated RMSE"
        + (
            "; in parentheses the value of the BayesAME paper."
            if any(published_value(s) is not None for s in summaries)
            else "."
        )
    )
    for table in (coverage_table, width_table, stop_table):
        print_table(*table(summaries))
    note(_HOW_TO_READ)

"""``gp-eval disco experiment | factors | calibration | cost``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pandas as pd
from rich.progress import Progress

from gp_eval.cli.output import note, print_json, print_table, progress_console
from gp_eval.data import References
from gp_eval.disco import DiscoOptions
from gp_eval.experiments.disco import (
    Costs,
    SplitName,
    Trial,
    error_correlations,
    factor_analysis,
    records,
    run_trials,
    summarise_trials,
    trials,
)

__all__ = [
    "print_costs",
    "run_calibration",
    "run_experiment",
    "run_factors",
    "tracked",
]

_SPREADS = ("_sd_splits", "_sd_draws")


def tracked(
    references: References,
    regimes: Sequence[str],
    *,
    n_splits: int,
    n_targets: int | None,
    gap: float,
) -> Iterator[Trial]:
    """The splits of the regimes, with a progress bar on stderr."""
    with Progress(console=progress_console(), transient=True) as bar:
        task = bar.add_task("Splits", total=len(regimes) * n_splits)
        for regime in regimes:
            for trial in trials(
                references,
                regime=cast(SplitName, regime),
                n_splits=n_splits,
                n_targets=n_targets,
                gap=gap,
            ):
                yield trial
                bar.advance(task)


def run_experiment(
    found: Iterator[Trial],
    base: DiscoOptions,
    *,
    budgets: Sequence[int],
    choices: Sequence[str],
    predictors: Sequence[str],
    n_draws: int,
    as_json: bool,
) -> None:
    """MAE and Spearman of every choice, predictor and budget."""
    changes = [
        {"k": k, "choice": choice, "predictor": predictor}
        | ({"guiding": None, "stratify": False} if choice == "random" else {})
        for choice in choices
        for predictor in predictors
        for k in budgets
        if predictor != "mean" or choice == "random"
    ]
    if not changes:
        raise ValueError(
            "predictor: 'mean' needs choice 'random': other items are no sample of the "
            "benchmark"
        )
    settings = [
        DiscoOptions.model_validate({**base.model_dump(), **change})
        for change in changes
    ]
    table = summarise_trials(run_trials(found, settings, n_draws=n_draws))
    _show(table, ["regime", "choice", "predictor", "k"], as_json=as_json)


def run_factors(
    found: Iterator[Trial], base: DiscoOptions, *, n_draws: int, as_json: bool
) -> None:
    """One factor at a time: guiding models, strata, PCA, predictor, sources."""
    table = factor_analysis(found, base, n_draws=n_draws)
    _show(table, ["factor", "level"], as_json=as_json)


def _show(table: pd.DataFrame, columns: list[str], *, as_json: bool) -> None:
    found = records(table)
    if as_json:
        for record in found:
            print_json(record)
        return
    heads = [
        "MAE",
        "± splits",
        "± draws",
        "Spearman",
        "± splits",
        "± draws",
        "coverage",
    ]
    rows = [
        [
            *(str(record[name]) for name in columns),
            *(_number(record[f"mae{part}"]) for part in ("", *_SPREADS)),
            *(_number(record[f"spearman{part}"], 3) for part in ("", *_SPREADS)),
            _number(record["coverage"], 2),
        ]
        for record in found
    ]
    print_table([*columns, *heads], rows)
    first = found[0]
    note(
        f"{first['n_splits']} splits, {first['n_targets']} targets each; ±: standard "
        "deviation over splits, and over draws of guiding models, random items and "
        "trees within a split"
    )


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def run_calibration(
    found: Iterator[Trial],
    references: References,
    base: DiscoOptions,
    *,
    n_draws: int,
    as_json: bool,
) -> None:
    """Correlation of the error with calibration error and mean confidence."""
    rows = run_trials(found, [base], n_draws=n_draws)
    table = records(error_correlations(rows, references))
    if as_json:
        for record in table:
            print_json(record)
        return
    print_table(
        ["error against", "Pearson", "95 % interval", "Spearman", "models"],
        [
            [
                record["measure"],
                f"{record['pearson']:.3f}",
                f"[{record['low']:.3f}, {record['high']:.3f}]",
                f"{record['spearman']:.3f}",
                str(record["n_models"]),
            ]
            for record in table
        ],
    )


def print_costs(costs: Costs, *, later: int | None, as_json: bool) -> None:
    """Offline, online and full cost, and where they meet."""
    record: dict[str, Any] = {
        "full": costs.full,
        "online": costs.online,
        "offline": costs.offline,
        "saved": costs.saved,
        "break_even": costs.break_even,
    }
    if later is not None:
        with_plan, without = costs.total(later)
        record |= {"later": later, "with_plan": with_plan, "without": without}
    if as_json:
        print_json(record)
        return
    names = {
        "full": "one model on all items",
        "online": "one model on the chosen items",
        "offline": "references and plan, once",
        "saved": "saved by each later model",
        "break_even": "later models from which the plan pays",
        "later": "later models planned",
        "with_plan": "their cost with the plan",
        "without": "their cost by full evaluation",
    }
    rows = [
        [names[name], "never" if value is None else f"{value:g}"]
        for name, value in record.items()
    ]
    print_table(["", "cost or number"], rows)

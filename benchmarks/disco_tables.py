"""MAE and Spearman of DISCO's choices and predictors on real models.

    OMP_NUM_THREADS=1 python benchmarks/disco_tables.py --table > disco_tables.jsonl

Random items with their mean, and random items, PDS and JSD with each predictor, at
K = 10, 25, 50 and 100, on the embedded digits (right / wrong) and on the sets of the
shared folder that carry class probabilities. Uniform splits; the same for all. Prints a
JSON line for each set, choice, predictor and K: means over the splits and the standard
deviation over them. Every setting is there; none was chosen on the targets.

One draw of random items and trees a split. The scores of ``vlmub_oodcv`` and
``lub_mmlu_pseudo`` are probabilities of the right option, in the latter of the models'
own consensus: of use for signatures, not for claims about accuracy. Both have 25 models
only, so that Spearman over the targets of a split is coarse.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import pandas as pd
from _common import emit, one_thread, shared_references
from rich.console import Console
from rich.table import Table

from gp_eval.data import References
from gp_eval.datasets import load_digits_benchmark
from gp_eval.disco import DiscoOptions, predictor_names
from gp_eval.experiments.disco import records, run_trials, summarise_trials, trials

SETS = ("digits", "vlmub_oodcv", "lub_mmlu_pseudo")
BUDGETS = (10, 25, 50, 100)
CHOICES = ("random", "pds", "jsd")


def load(name: str) -> References:
    if name == "digits":
        return load_digits_benchmark("binary")
    return shared_references(name)


def settings(predictors: list[str]) -> list[DiscoOptions]:
    found = [DiscoOptions(k=k, choice="random", predictor="mean") for k in BUDGETS]
    return found + [
        DiscoOptions.model_validate({"k": k, "choice": choice, "predictor": predictor})
        for choice in CHOICES
        for predictor in predictors
        for k in BUDGETS
    ]


def run(name: str, predictors: list[str], n_splits: int) -> list[dict[str, Any]]:
    scores = load(name)
    start = time.process_time()
    rows = run_trials(trials(scores, n_splits=n_splits), settings(predictors))
    seconds = time.process_time() - start
    summary = summarise_trials(rows)
    found = records(summary.drop(columns=["guiding", "stratify", "temperature"]))
    for record in found:
        emit(
            benchmark="disco_tables",
            data=name,
            N=len(scores.items),
            **record,
            cpu_s_all=round(seconds, 1),
        )
    return [{"data": name, **record} for record in found]


def print_table(rows: list[dict[str, Any]]) -> None:
    frame = pd.DataFrame(rows)
    for name, group in frame.groupby("data", sort=False):
        table = Table("choice", "predictor", *(f"K={k}" for k in BUDGETS), box=None)
        table.title = f"{name}: MAE x 100 / Spearman (coverage of the 95 % interval)"
        for (choice, predictor), line in group.groupby(
            ["choice", "predictor"], sort=False
        ):
            cells = [_cell(row) for row in line.sort_values("k").to_dict("records")]
            table.add_row(str(choice), str(predictor), *cells)
        Console(stderr=True, width=200).print(table)


def _cell(row: dict[Any, Any]) -> str:
    # A single split has no deviation, and predictions that all tie have no rank.
    mae, mae_sd, rank, rank_sd = (
        float("nan") if row[name] is None else float(row[name])
        for name in ("mae", "mae_sd_splits", "spearman", "spearman_sd_splits")
    )
    text = f"{100 * mae:.2f}±{100 * mae_sd:.2f} / {rank:.3f}±{rank_sd:.3f}"
    return text if pd.isna(row["coverage"]) else f"{text} ({row['coverage']:.2f})"


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", default=",".join(SETS), help="sets, by commas")
    parser.add_argument("--predictors", default=",".join(predictor_names()))
    parser.add_argument("--table", action="store_true", help="a table on stderr")
    options = parser.parse_args()
    found = []
    for name in options.only.split(","):
        found += run(name, options.predictors.split(","), options.splits)
    if options.table:
        print_table(found)


if __name__ == "__main__":
    main()

"""``gp-eval demo``: the whole method on the embedded benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from rich.progress import Progress

from gp_eval._random import random_order
from gp_eval.cli.output import note, print_json, print_table, progress_console
from gp_eval.data import References
from gp_eval.datasets import load_digits_benchmark
from gp_eval.evaluation import evaluate
from gp_eval.experiments import random_sample_rmse
from gp_eval.models import model_names
from gp_eval.report.curves import Curve, check_picture, plot_curves
from gp_eval.result import Result
from gp_eval.stopping import StoppingRule

__all__ = ["run_demo"]


@dataclass(frozen=True)
class DemoRun:
    """One hidden target: what was found, and what a random sample would say."""

    result: Result
    truth: float
    random_means: list[float]
    random_rmse: float

    @property
    def random_estimate(self) -> float:
        """Mean of one random sample as large as the coreset."""
        return self.random_means[self.result.n - 1]

    def record(self, model: str) -> dict[str, Any]:
        """What ``--json`` prints."""
        result = self.result
        return {
            "target": result.target,
            "model": model,
            "truth": self.truth,
            "estimate": result.mean,
            "low": result.low,
            "high": result.high,
            "n": result.n,
            "N": result.N,
            "stop_reason": result.stop_reason,
            "random_estimate": self.random_estimate,
        }


def run_demo(
    *,
    n_targets: int,
    score: Literal["binary", "probability"],
    model: str,
    stop: StoppingRule,
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Hide targets, estimate each, print a table or JSON, and draw a picture."""
    if model not in model_names():
        raise ValueError(f"model: expected one of {model_names()}, got {model!r}")
    check_picture(output)
    everything = load_digits_benchmark(score)
    order = random_order(len(everything.models), seed)
    targets = [everything.models[i] for i in order[:n_targets]]
    references = everything.without(targets)
    runs = []
    with Progress(console=progress_console(), transient=True) as progress:
        for target in progress.track(targets, description="Evaluating"):
            runs.append(_run_one(everything, references, target, model, stop, seed))
    picture = plot_curves([_curve(run) for run in runs], output)
    if as_json:
        for run in runs:
            print_json(run.record(model))
        print_json({"picture": str(picture)})
    else:
        _print_table(runs)
        note(
            "random: error of the mean of one random sample of as many items; typical: "
            "its root mean square over all such samples."
        )
        note(f"Picture: {picture}")


def _run_one(
    everything: References,
    references: References,
    target: str,
    model: str,
    stop: StoppingRule,
    seed: int,
) -> DemoRun:
    column = everything.scores[:, everything.models.index(target)]
    scores = dict(zip(everything.items, column.tolist(), strict=True))
    result = evaluate(
        references, scores.__getitem__, target=target, model=model, stop=stop, seed=seed
    )
    order = random_order(column.shape[0], seed)
    counts = torch.arange(1, column.shape[0] + 1)
    means = column[order].cumsum(0) / counts
    typical = float(random_sample_rmse(column)[result.n - 1])
    return DemoRun(result, float(column.mean()), means.tolist(), typical)


def _curve(run: DemoRun) -> Curve:
    return Curve(
        title=run.result.target,
        estimates=run.result.estimates,
        widths=run.result.widths,
        truth=run.truth,
        n_items=run.result.N,
        stop_reason=run.result.stop_reason,
        random_means=run.random_means[: run.result.n],
    )


def _print_table(runs: list[DemoRun]) -> None:
    rows = []
    for run in runs:
        result = run.result
        rows.append(
            [
                result.target,
                f"{run.truth:.4f}",
                f"{result.mean:.4f}",
                f"[{result.low:.3f}, {result.high:.3f}]",
                f"{result.n}/{result.N}",
                f"{abs(result.mean - run.truth):.4f}",
                f"{abs(run.random_estimate - run.truth):.4f}",
                f"{run.random_rmse:.4f}",
            ]
        )
    print_table(
        [
            "target",
            "true",
            "estimate",
            "95 % interval",
            "items",
            "error",
            "random",
            "typical",
        ],
        rows,
    )

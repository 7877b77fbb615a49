"""Simulations of folds, one after the other or in several processes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from joblib import Parallel, delayed
from torch import Tensor

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.errors import GpEvalError
from gp_eval.experiments.curves import Curves, Simulator
from gp_eval.planning.folds import Fold

__all__ = ["Done", "Task", "run_tasks"]


@dataclass(frozen=True)
class Task:
    """A model on a fold.

    Attributes:
        model: Registered name.
        fold: Targets and references.
        n_max: Items evaluated.
    """

    model: str
    fold: Fold
    n_max: int


@dataclass(frozen=True)
class Done:
    """What became of a task.

    Attributes:
        task: The task.
        curves: Estimates and variances, ``T x n_max``; ``None`` if it was refused.
        truth: Full-benchmark scores of the targets, shape ``T``.
        n_items: ``N``.
        seconds: How long it took, by the clock.
        refused: Why there are no curves.
    """

    task: Task
    curves: Curves | None
    truth: Tensor
    n_items: int
    seconds: float
    refused: str | None = None


def run_tasks(
    tasks: Sequence[Task],
    table: References,
    simulators: Mapping[str, Simulator],
    *,
    jobs: int,
    seconds: float = math.inf,
) -> Iterator[Done]:
    """Run tasks in ``jobs`` processes, and yield each as it is done, in any order.

    Once ``seconds`` are over, only the first task of each model and regime is begun.
    """
    calls = (
        delayed(_run)(task, table, simulators[task.model])
        for task in _in_time(tasks, time.perf_counter() + seconds)
    )
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(calls)


def _in_time(tasks: Sequence[Task], end: float) -> Iterator[Task]:
    begun: set[tuple[str, str]] = set()
    for task in tasks:
        key = (task.model, task.fold.regime)
        if key not in begun or time.perf_counter() < end:
            begun.add(key)
            yield task


def _run(task: Task, table: References, simulator: Simulator) -> Done:
    scores = task.fold.split(table).target_scores()
    truth, n_items = scores @ table.item_weights, scores.shape[1]
    curves, refused = None, None
    start = time.perf_counter()
    try:
        with _one_thread():
            curves = simulator(
                task.fold.references(table),
                scores,
                random_order(n_items, task.fold.seed),
                n_max=task.n_max,
            )
        if not bool((curves.mean.isfinite() & curves.variance.isfinite()).all()):
            curves, refused = None, "estimates or variances are not finite"
    except (GpEvalError, ValueError) as error:
        refused = str(error)
    return Done(task, curves, truth, n_items, time.perf_counter() - start, refused)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Two busy threads a process on as many cores as processes only spin."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)

"""Running the cells of an experiment, on one core, many, or a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from joblib import Parallel, delayed

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.errors import GpEvalError
from gp_eval.experiments.cells import Cell
from gp_eval.experiments.curves import Simulator
from gp_eval.experiments.simulators import make_simulator
from gp_eval.experiments.store import CellResult, is_finished, write_result
from gp_eval.intervals import check_dof
from gp_eval.models.registry import model_factory, takes_targets

__all__ = ["Outcome", "run_cell", "simulate"]


@dataclass(frozen=True)
class Outcome:
    """What became of a cell.

    Attributes:
        cell: The cell.
        refused: Why there is no result, ``None`` where there is one.
    """

    cell: Cell
    refused: str | None = None


def simulate(
    cells: list[Cell],
    data: Mapping[str, References],
    folder: Path,
    *,
    jobs: int | None = None,
) -> Iterator[Outcome]:
    """Run all cells that are not finished yet, and yield each as it is done.

    A model may refuse data, such as one for 0/1 scores on others. Its cells come back
    with the reason and leave no file; all others go on.

    A killed experiment goes on where it was: finished cells are on disk. Work is spread
    by joblib, so that ``with parallel_config(backend="dask")`` around it uses a Dask
    cluster; results are written where the cell runs, in a folder that all workers see.

    Args:
        cells: What to run.
        data: Complete score tables by name.
        folder: Where results land.
        jobs: Processes; default those of joblib's present configuration, or one.

    Yields:
        The outcome of every cell, finished ones first.

    Raises:
        StateMismatchError: If the folder holds results of other data or settings.
        ValueError: For an unknown model.
    """
    places: dict[Path, Cell] = {}
    for cell in cells:
        if places.setdefault(cell.path, cell).record() != cell.record():
            raise ValueError(
                f"cells: two settings share {str(cell.path)!r}; register one of them "
                "under another name, or use another folder"
            )
    cells = list(places.values())
    fingerprints = {name: scores.fingerprint for name, scores in data.items()}
    simulators = {
        (cell.model, repr(cell.options)): make_simulator(
            cell.model, cell.options, factory=model_factory(cell.model)
        )
        for cell in cells
    }
    todo = []
    for cell in cells:
        if is_finished(cell, fingerprints[cell.data], folder):
            yield Outcome(cell)
        else:
            todo.append(cell)
    tasks = (
        delayed(run_cell)(
            cell,
            data[cell.data],
            simulators[cell.model, repr(cell.options)],
            folder.absolute(),
        )
        for cell in todo
    )
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)


def run_cell(
    cell: Cell, scores: References, simulator: Simulator, folder: Path
) -> Outcome:
    """Run one cell on one thread and write its result, or say why there is none."""
    try:
        write_result(_simulate_cell(cell, scores, simulator), folder)
    except (GpEvalError, ValueError) as error:
        return Outcome(cell, str(error))
    return Outcome(cell)


def _simulate_cell(cell: Cell, scores: References, simulator: Simulator) -> CellResult:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        split = cell.split(scores)
        references = split.references(cell.reference_fraction, seed=cell.seed)
        targets = split.target_scores()
        n_items = targets.shape[1]
        start = time.process_time()
        curves = simulator(
            references,
            targets,
            random_order(n_items, cell.seed),
            n_max=min(cell.n_max or n_items, n_items),
        )
        spent = time.process_time() - start
    finally:
        torch.set_num_threads(threads)
    finite = curves.mean.isfinite() & curves.variance.isfinite()
    if takes_targets(cell.model):  # nothing before the initial items
        finite = finite[:, int(finite[0].long().argmax()) :]
    if not bool(finite.all()):
        raise ValueError(f"{cell.model}: estimates or variances are not finite")
    if curves.dof is not None:
        check_dof(curves.dof)
    return CellResult(
        cell=cell,
        targets=split.targets,
        truth=targets @ references.item_weights,
        curves=curves,
        n_items=n_items,
        cpu_s=spent / len(split.targets),
        fingerprint=scores.fingerprint,
    )

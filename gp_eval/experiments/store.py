"""Results of cells on disk: one Parquet file each, written when it is finished."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gp_eval._files import atomic_write
from gp_eval.data.files import require_pyarrow
from gp_eval.errors import StateMismatchError
from gp_eval.experiments.cells import Cell
from gp_eval.experiments.curves import Curves

__all__ = ["CellResult", "is_finished", "read_result", "write_result"]

_META = b"gp_eval"


@dataclass(frozen=True)
class CellResult:
    """What a finished cell holds.

    Attributes:
        cell: The cell.
        targets: Ids of the ``T`` targets.
        truth: Their full-benchmark scores, shape ``T``.
        curves: Estimates and variances, ``T x n_max``; normal where the file has no
            column ``dof``.
        n_items: ``N``.
        cpu_s: CPU seconds of one run.
        fingerprint: Fingerprint of the scores that the cell was drawn from.
    """

    cell: Cell
    targets: tuple[str, ...]
    truth: torch.Tensor
    curves: Curves
    n_items: int
    cpu_s: float
    fingerprint: str


def write_result(result: CellResult, folder: Path) -> None:
    """Write a result in one atomic step."""
    arrow = require_pyarrow()
    n_max = result.curves.mean.shape[1]
    curves = {k: v for k, v in vars(result.curves).items() if v is not None}
    table = arrow.table(
        {
            "target": arrow.array(np.repeat(result.targets, n_max)).dictionary_encode(),
            "n": np.tile(np.arange(1, n_max + 1, dtype=np.int32), len(result.targets)),
            **{name: curve.cpu().numpy().ravel() for name, curve in curves.items()},
        }
    )
    meta = {
        "cell": result.cell.record(),
        "targets": list(result.targets),
        "truth": result.truth.tolist(),
        "n_items": result.n_items,
        "cpu_s": result.cpu_s,
        "fingerprint": result.fingerprint,
    }
    table = table.replace_schema_metadata({_META: json.dumps(meta).encode()})
    buffer = io.BytesIO()
    arrow.parquet.write_table(table, buffer, compression="zstd")
    atomic_write(folder / result.cell.path, buffer.getvalue())


def read_result(path: Path) -> CellResult:
    """Read a result.

    Raises:
        StateMismatchError: For a file that is not one.
    """
    arrow = require_pyarrow()
    try:
        table = arrow.parquet.read_table(path)
        meta: dict[str, Any] = json.loads(table.schema.metadata[_META])
        shape = (len(meta["targets"]), -1)
        names = ["mean", "variance", *(["dof"] if "dof" in table.column_names else [])]
        curves = Curves(**{name: _column(table, name, shape) for name in names})
        return CellResult(
            cell=Cell(**meta["cell"]),
            targets=tuple(meta["targets"]),
            truth=torch.tensor(meta["truth"], dtype=torch.float64),
            curves=curves,
            n_items=meta["n_items"],
            cpu_s=meta["cpu_s"],
            fingerprint=meta["fingerprint"],
        )
    except (arrow.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise StateMismatchError(
            f"{str(path)!r} is not the result of a cell: {error}"
        ) from error


def _column(table: Any, name: str, shape: tuple[int, int]) -> torch.Tensor:
    return torch.from_numpy(table[name].to_numpy().copy()).reshape(shape)


def is_finished(cell: Cell, fingerprint: str, folder: Path) -> bool:
    """Whether the result of exactly this cell is there.

    Raises:
        StateMismatchError: If the file there comes from other data or settings.
    """
    path = folder / cell.path
    if not path.exists():
        return False
    found = read_result(path)
    if found.cell.record() != cell.record() or found.fingerprint != fingerprint:
        raise StateMismatchError(
            f"{str(path)!r} was made from other data or settings; choose another "
            "output folder, or remove it"
        )
    return True

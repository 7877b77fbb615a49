"""A trained model on disk: parameters, scores, and what data they belong to."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from copy import copy as shallow_copy
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gp_eval._files import atomic_write
from gp_eval.errors import StateMismatchError
from gp_eval.models.protocol import Hyperparameters, check_batch
from gp_eval.models.sequential_model import SequentialModel

__all__ = ["load_model", "save_model"]

_META = "meta"
_FORMAT = 1
_PROBES = 32
_KEYS = {"references", "modules", "prior", "evaluated", "scores", "updates"}


def save_model(
    path: str | Path,
    model: SequentialModel,
    updates: Mapping[int, Hyperparameters],
    *,
    fingerprint: str,
) -> None:
    """Write state dict, evaluated points and updates in one atomic step, as ``.npz``.

    A state dict alone holds no scores, and parameters mean nothing without the
    references that they were learned on; no pickle is involved.

    Args:
        path: The file.
        model: The model.
        updates: Its hyperparameter updates by number of evaluations.
        fingerprint: Fingerprint of its references.
    """
    meta = {
        "format": _FORMAT,
        "references": fingerprint,
        "modules": _modules(model),
        "prior": _prior(model),
        "evaluated": model.evaluated,
        "scores": model._scores[model.evaluated].tolist(),
        "updates": [[n, values] for n, values in updates.items()],
    }
    arrays = {name: value.cpu().numpy() for name, value in model.state_dict().items()}
    arrays[_META] = np.array(json.dumps(meta, allow_nan=False))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    atomic_write(Path(path), buffer.getvalue())


def load_model(
    path: str | Path, model: SequentialModel, *, fingerprint: str
) -> dict[int, Hyperparameters]:
    """Put what :func:`save_model` wrote into a model without scores.

    Args:
        path: The file.
        model: A fresh model, built with the options of the saved one.
        fingerprint: Fingerprint of its references.

    Returns:
        The hyperparameter updates.

    Raises:
        StateMismatchError: If the file is damaged, does not fit, or the model has
            scores already. The model is not changed then.
    """
    if model.n:
        raise StateMismatchError(
            f"model: expected one without scores, got {model.n} evaluations"
        )
    meta, arrays = _read(Path(path))
    if meta["references"] != fingerprint:
        raise StateMismatchError(f"{str(path)!r} was trained on other references")
    present = {name: tuple(v.shape) for name, v in model.state_dict().items()}
    saved = {name: value.shape for name, value in arrays.items()}
    # Kernels of different formulas may have parameters of the same names and shapes.
    modules = _modules(model)
    if present != saved or modules != meta["modules"]:
        other = sorted(
            present.items() ^ saved.items() or modules.items() ^ meta["modules"].items()
        )
        raise StateMismatchError(
            f"{str(path)!r} is of a model with other kernels or targets: {other[:3]}"
        )
    points = _points(path, meta, n_points=model.point_weights.shape[0])
    before = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict({k: torch.from_numpy(v) for k, v in arrays.items()})
    if not np.allclose(_prior(model), meta["prior"], rtol=1e-9, atol=0.0):
        model.load_state_dict(before)
        raise StateMismatchError(
            f"{str(path)!r} is of a model with another prior: kernels of other "
            "settings, such as nu, or other buckets (tolerance)"
        )
    model.take_in(list(points), list(points.values()))
    model.refresh()
    return {int(n): values for n, values in meta["updates"]}


def _modules(model: SequentialModel) -> dict[str, str]:
    """Class of each module by name."""
    return {name: type(module).__name__ for name, module in model.named_modules()}


def _prior(model: SequentialModel) -> list[float]:
    """Number of abilities and the first prior moments under the present parameters.

    They tell apart what neither classes nor shapes do: settings that are no parameter.
    """
    table = shallow_copy(model.table)
    table.refresh()
    moments = [model.ability_counts, table.row(0)]
    return [float(len(model.ability_counts))] + [
        value for moment in moments for value in moment[:_PROBES].tolist()
    ]


def _points(
    path: str | Path, meta: Mapping[str, Any], *, n_points: int
) -> dict[int, float]:
    """The scores by point, checked."""
    try:
        points = torch.tensor(meta["evaluated"])
        scores = torch.tensor(meta["scores"], dtype=torch.float64)
        return check_batch(points, scores, n_items=n_points, seen=())
    except (ValueError, TypeError) as error:
        raise StateMismatchError(f"{str(path)!r}: {error}") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        # From memory, for np.load leaves a damaged file open; and it would read a
        # damaged shape before it gets to the checksum.
        content = io.BytesIO(path.read_bytes())
        with zipfile.ZipFile(content) as archive:
            if damaged := archive.testzip():
                raise ValueError(f"{damaged} is damaged")
        content.seek(0)
        with np.load(content, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays.pop(_META)))
        if meta["format"] != _FORMAT:
            raise ValueError(f"format {meta['format']!r}")
        if missing := _KEYS - set(meta):
            raise ValueError(f"without {sorted(missing)}")
    except Exception as error:  # damage shows in many ways
        raise StateMismatchError(
            f"{str(path)!r} is not a saved model: {error}"
        ) from error
    return meta, arrays

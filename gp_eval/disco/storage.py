"""A plan as a folder: ``plan.json`` and ``arrays.npz``, without pickle.

``plan.json`` holds the options, the chosen item ids, the settings of the predictor, the
SHA-256 of the arrays and, as ``checksum``, that of all its other fields.
``arrays.npz`` holds numpy arrays by name:

- ``features`` (``K x F``), ``targets`` and ``predictions`` (``K``) of the references;
- ``labels`` (``k``) and ``classes`` (``k x C``) of the chosen items, for temperatures;
- ``reducer.*``: ``mean`` and ``components`` of PCA, ``signatures`` of UMAP;
- ``predictor.*``: coefficients of linear predictors; features and targets of the GP and
  of kNN; nodes of trees, see :class:`~gp_eval.disco.trees.TreeEnsemble`.

Nothing is fitted on loading, but for UMAP, which is made again from the same signatures
and seed. The loaded plan must predict for the references what the saved one did.
"""

from __future__ import annotations

import hashlib
import io
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from gp_eval._files import atomic_write
from gp_eval.disco.options import DiscoOptions
from gp_eval.disco.plan import DiscoPlan
from gp_eval.disco.predictors import restore_predictor
from gp_eval.disco.signatures import Principal, Reducer, Umap
from gp_eval.errors import StateMismatchError

__all__ = ["load_plan", "save_plan"]

_PACKAGES = ("gp-eval", "torch", "gpytorch", "scikit-learn", "numpy")
_TOLERANCE = 1e-9  # other versions of BLAS sum in another order

_Arrays = dict[str, np.ndarray]


class _Record(BaseModel):
    """What ``plan.json`` holds."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    format: int = 1
    options: DiscoOptions
    items: tuple[str, ...]
    n_items: int
    models: tuple[str, ...]
    fingerprint: str
    n_classes: int | None
    predictor: dict[str, Any]
    arrays: str
    versions: dict[str, str]
    checksum: str = ""


def save_plan(plan: DiscoPlan, folder: Path) -> None:
    """Write a plan; ``plan.json`` comes last and vouches for the arrays."""
    settings, of_predictor = plan.predictor.state()
    arrays: _Arrays = {
        "features": plan.features.numpy(),
        "targets": plan.targets.numpy(),
        "predictions": plan.predictor.predict(plan.features).mean.numpy(),
        **{f"reducer.{name}": a for name, a in plan.reducer.arrays().items()},
        **{f"predictor.{name}": a for name, a in of_predictor.items()},
    }
    for name in ("labels", "classes"):
        if (values := getattr(plan, name)) is not None:
            arrays[name] = values.numpy()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    record = _Record(
        options=plan.options,
        items=plan.items,
        n_items=plan.n_items,
        models=plan.models,
        fingerprint=plan.fingerprint,
        n_classes=plan.n_classes,
        predictor=settings,
        arrays=hashlib.sha256(buffer.getvalue()).hexdigest(),
        versions={name: version(name) for name in _PACKAGES},
    )
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / "arrays.npz", buffer.getvalue())
    fields = json.loads(record.model_dump_json())
    fields["checksum"] = _checksum(fields)
    atomic_write(folder / "plan.json", json.dumps(fields, indent=2).encode())


def _checksum(fields: dict[str, Any]) -> str:
    """SHA-256 of all fields but the checksum itself, in the order of their names."""
    others = {name: value for name, value in fields.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def load_plan(folder: Path) -> DiscoPlan:
    """Read a plan and check it.

    Raises:
        StateMismatchError: For a folder that is no plan, damaged, or whose
            predictions of the references are not those saved.
    """
    record, arrays = _read(folder)
    predictor = restore_predictor(
        record.options.predictor, record.predictor, _part(arrays, "predictor.")
    )
    reducer = _reducer(record.options, _part(arrays, "reducer."))
    features = torch.from_numpy(arrays["features"])
    if isinstance(reducer, Umap):  # what was made again is what must agree
        features = reducer(reducer.signatures)
    plan = DiscoPlan(
        options=record.options,
        items=record.items,
        n_items=record.n_items,
        models=record.models,
        fingerprint=record.fingerprint,
        n_classes=record.n_classes,
        labels=_tensor(arrays, "labels"),
        classes=_tensor(arrays, "classes"),
        reducer=reducer,
        predictor=predictor,
        features=features,
        targets=torch.from_numpy(arrays["targets"]),
    )
    now = plan.predictor.predict(plan.features).mean.numpy()
    off = float(np.abs(now - arrays["predictions"]).max())
    if not off <= _TOLERANCE * max(1.0, float(np.abs(arrays["predictions"]).max())):
        raise StateMismatchError(
            f"{str(folder)!r}: predictions of the references differ from those saved "
            f"by up to {off:.3g}; it was made with {json.dumps(record.versions)}"
        )
    return plan


def _read(folder: Path) -> tuple[_Record, _Arrays]:
    try:
        text = (folder / "plan.json").read_bytes()
        content = (folder / "arrays.npz").read_bytes()
    except OSError as error:
        name = Path(str(error.filename)).name
        raise StateMismatchError(
            f"{str(folder)!r} is not a plan: it has no readable {name}"
        ) from None
    try:
        record = _Record.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = [".".join(str(part) for part in first["loc"])] * bool(first["loc"])
        raise StateMismatchError(
            f"{str(folder / 'plan.json')!r} is damaged: "
            + ": ".join([*where, first["msg"]])
        ) from error
    if record.format != 1:
        raise StateMismatchError(
            f"{str(folder)!r}: format: expected 1, got {record.format}"
        )
    if record.checksum != _checksum(json.loads(text)):
        # Other items or another order of them would be predicted from, unnoticed.
        raise StateMismatchError(
            f"{str(folder / 'plan.json')!r} is damaged: not what its checksum vouches "
            "for"
        )
    if hashlib.sha256(content).hexdigest() != record.arrays:
        raise StateMismatchError(
            f"{str(folder / 'arrays.npz')!r} is damaged: not what plan.json vouches for"
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return record, {name: file[name] for name in file.files}


def _part(arrays: _Arrays, prefix: str) -> _Arrays:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _tensor(arrays: _Arrays, name: str) -> torch.Tensor | None:
    return torch.from_numpy(arrays[name]) if name in arrays else None


def _reducer(options: DiscoOptions, arrays: _Arrays) -> Reducer:
    if "signatures" not in arrays:
        return Principal.restore(arrays)
    signatures = torch.from_numpy(arrays["signatures"])
    return Umap(signatures, options.umap or 2, seed=options.seed)

"""``gp-eval refs``: look at reference tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gp_eval.cli.output import note, print_json, print_table
from gp_eval.data import References
from gp_eval.data.validation import DuplicateModels

__all__ = ["show_references"]


def show_references(
    path: Path, *, duplicate_models: DuplicateModels, as_json: bool
) -> None:
    """Print sizes, gaps and the models with their mean scores, best first."""
    references = References.read(
        path, missing="keep", duplicate_models=duplicate_models
    )
    table = references.scores.numpy()
    weights = references.item_weights.numpy()[:, None]
    with np.errstate(invalid="ignore"):  # a model without any score has no mean
        means = np.nansum(weights * table, 0) / (weights * ~np.isnan(table)).sum(0)
    models = sorted(
        zip(references.models, means.tolist(), strict=True), key=lambda pair: -pair[1]
    )
    record = {
        "n_items": len(references.items),
        "n_models": len(references.models),
        "unique_rows": len(np.unique(table, axis=0)),
        "missing_cells": references.n_missing,
        "metric": references.meta.get("metric"),
        "models": [{"id": name, "mean": mean} for name, mean in models],
    }
    if as_json:
        print_json(record)
        return
    note(
        f"{record['n_items']} items x {record['n_models']} models, "
        f"{record['unique_rows']} unique rows, {record['missing_cells']} missing cells"
        + (f", metric {record['metric']}" if record["metric"] else "")
    )
    print_table(["model", "mean"], [[name, f"{mean:.4f}"] for name, mean in models])
    note(f"What may spoil the prior: gp-eval refs check {path}")

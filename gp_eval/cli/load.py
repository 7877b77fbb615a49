"""Data sets that are named on the command line."""

from __future__ import annotations

from pathlib import Path

from gp_eval.data import References
from gp_eval.data.validation import DuplicateModels, Missing
from gp_eval.datasets import load_digits_benchmark

__all__ = ["load_scores"]


def load_scores(
    source: str, *, score: str, missing: Missing, duplicate_models: DuplicateModels
) -> tuple[str, References]:
    """Name and scores of a table, or of the embedded benchmark for ``digits``."""
    if source == "digits":
        return f"digits-{score}", load_digits_benchmark(score)  # type: ignore[arg-type]
    table = References.read(source, missing=missing, duplicate_models=duplicate_models)
    return Path(source).stem, table

"""``gp-eval refs check``: what silently ruins a prior."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from gp_eval.cli.output import note, print_json
from gp_eval.data import References
from gp_eval.data.validation import DuplicateModels, some
from gp_eval.diagnosis import Diagnosis, check_references

__all__ = ["check_table"]


def check_table(
    path: Path,
    *,
    level: float,
    keep: Sequence[str],
    drop: Path | None,
    drop_items: bool,
    duplicate_models: DuplicateModels,
    as_json: bool,
) -> None:
    """Print the findings, write the cleaned table, and exit with 1 after an error."""
    references = References.read(
        path, missing="keep", duplicate_models=duplicate_models
    )
    diagnosis = check_references(references, level=level, keep=keep)
    written = None
    if drop is not None:
        written = _write(references, diagnosis, drop, drop_items=drop_items)
    if as_json:
        print_json({**diagnosis.record, "written": written})
    else:
        _print(diagnosis, path)
    if not diagnosis.ok:
        raise typer.Exit(1)


def _write(
    references: References, diagnosis: Diagnosis, output: Path, *, drop_items: bool
) -> dict[str, Any]:
    cleaned = diagnosis.cleaned(references, drop_items=drop_items)
    cleaned.write(output)
    dropped = cleaned.meta["dropped_by_check"]
    note(
        f"Wrote {output}: {len(cleaned.items)} items x {len(cleaned.models)} models. "
        + _dropped("models", dropped["models"])
        + ", "
        + _dropped("items", dropped["items"])
    )
    return {
        "output": str(output),
        "n_items": len(cleaned.items),
        "n_models": len(cleaned.models),
        "dropped_models": dropped["models"],
        "dropped_items": dropped["items"],
    }


def _dropped(noun: str, names: Sequence[str]) -> str:
    return f"dropped {len(names)} {noun}" + (f" ({some(names)})" if names else "")


def _print(diagnosis: Diagnosis, path: Path) -> None:
    for finding in diagnosis.findings:
        print(f"{finding.severity}: {finding.kind}: {finding.text}.")
        print(f"    {finding.advice}")
    counts = diagnosis.record["counts"]
    note(
        f"{diagnosis.n_items} items x {diagnosis.n_models} models: "
        + ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts.items())
        + f" (tests at level {diagnosis.level:g})"
    )
    if diagnosis.drop_models or diagnosis.drop_items:
        note(
            f"{len(diagnosis.drop_models)} models would be dropped, and "
            f"{len(diagnosis.drop_items)} items with --drop-items. "
            f"Next: gp-eval refs check {path} --drop OUT"
        )

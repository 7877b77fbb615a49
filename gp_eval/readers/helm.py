"""HELM: ``per_instance_stats.json`` or ``display_predictions.json`` of a run."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from gp_eval.errors import DataError
from gp_eval.readers.records import Log, Options, Rows
from gp_eval.readers.source import json_document

__all__ = ["read_helm"]

# What HELM measures of a request beside its score.
_BOOKKEEPING = (
    *("num_", "finish_reason_", "inference_", "batch_size", "prompt_truncated"),
    *("training_", "estimated_", "max_prob", "logprob", "request_"),
)


def read_helm(path: Path, options: Options) -> Log:
    """Read the statistics of one run.

    Perturbed copies of an instance are left out and counted; statistics that several
    metric objects wrote for one instance and trial are merged; trials are epochs.

    Raises:
        DataError: For another shape, or a statistic given twice with two values.
    """
    log = Log(path, "helm")
    document = json_document(path)
    if not isinstance(document, list):
        raise DataError(f"{str(path)!r}: expected a list of instances")
    merged: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
    for position, instance in enumerate(document, start=1):
        where = f"{str(path)!r}, instance {position}"
        key = _key(instance, where)
        if instance.get("perturbation") is not None:
            log.notes["perturbed copies left out"] += 1
            continue
        for name, value in _stats(instance.get("stats"), where).items():
            known = merged[key].setdefault(name, value)
            if known != value and (known == known or value == value):
                raise DataError(f"{where}: {name!r} of {key[0]!r} has two values")
    if not merged:
        raise DataError(f"{str(path)!r}: holds no instances")
    rows = Rows()
    for (item, trial), values in merged.items():
        rows.add(item, values, epoch=trial + 1)
    model, task = _names(path)
    log.refused.update(rows.refused)
    log.blocks = rows.blocks(model=model, task=task, source=path)
    return log


def _key(instance: Any, where: str) -> tuple[str, int]:
    if not isinstance(instance, dict) or not isinstance(
        instance.get("instance_id"), str
    ):
        raise DataError(f"{where}: expected an object with an instance_id")
    trial = instance.get("train_trial_index", 0)
    if not isinstance(trial, int):
        raise DataError(f"{where}: train_trial_index is {trial!r:.60}")
    return instance["instance_id"], trial


def _stats(stats: Any, where: str) -> dict[str, Any]:
    """Means by name; from a list of statistics or, as displayed, from a table."""
    if isinstance(stats, dict):
        pairs = [(name, value) for name, value in stats.items()]
    elif isinstance(stats, list):
        pairs = [_stat(entry, where) for entry in stats]
    else:
        raise DataError(f"{where}: has no stats")
    return {
        name: value
        for name, value in pairs
        if name and not name.startswith(_BOOKKEEPING)
    }


def _stat(entry: Any, where: str) -> tuple[str, Any]:
    """Name and mean of one statistic; no name for what does not count."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, dict) or not isinstance(name.get("name"), str):
        raise DataError(f"{where}: a statistic has no name")
    if name.get("perturbation") is not None or not entry.get("count"):
        return "", None
    return name["name"], entry.get("mean", float("nan"))


def _names(path: Path) -> tuple[str, str]:
    """Model and task, from the run specification or the name of the folder."""
    name, model = path.resolve().parent.name, ""
    specification = path.parent / "run_spec.json"
    if specification.is_file():
        document = json_document(specification)
        if isinstance(document, dict):
            name = str(document.get("name", name))
            adapter = document.get("adapter_spec")
            if isinstance(adapter, dict):
                model = str(adapter.get("model") or "")
    scenario, colon, arguments = name.partition(":")
    kept = []
    for argument in arguments.split(","):
        key, _, value = argument.partition("=")
        if key == "model":
            model = model or value.replace("_", "/", 1)
        elif key and key != "model_deployment":
            kept.append(argument)
    return model or path.resolve().parent.name, scenario + (colon if kept else "") + (
        ",".join(kept)
    )

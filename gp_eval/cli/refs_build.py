"""``gp-eval refs build``: reference scores out of logs. Nothing heavy on import."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gp_eval.cli.options import Json, option

if TYPE_CHECKING:
    from gp_eval.readers import Built, Collection, Options, Policies

__all__ = ["SUFFIXES", "parse_scale", "refs_build"]

SUFFIXES = (".npz", ".parquet", ".csv")
"""Formats of tables that can be written."""


class Value(StrEnum):
    """What counts as the score."""

    score = "score"
    gold_prob = "gold-prob"


class Format(StrEnum):
    """Formats of logs."""

    auto = "auto"
    lm_eval = "lm-eval"
    inspect = "inspect"
    lighteval = "lighteval"
    helm = "helm"
    eee = "eee"
    csv = "csv"
    proeval = "proeval"
    jbl = "jbl"
    lb_pickle = "lb-pickle"


class Runs(StrEnum):
    """What to do with several runs of a model."""

    error = "error"
    latest = "latest"
    mean = "mean"


class OnError(StrEnum):
    """What to do with items that failed or were not scored."""

    error = "error"
    skip = "skip"
    zero = "zero"


class Gaps(StrEnum):
    """What to do with missing cells."""

    error = "error"
    keep = "keep"
    drop_items = "drop-items"
    drop_models = "drop-models"


class Hashes(StrEnum):
    """Whether logged digests of items must agree."""

    check = "check"
    ignore = "ignore"


def refs_build(
    logs: Annotated[list[Path], typer.Argument(help="Log files, and folders of them.")],
    output: Annotated[
        Path,
        option("output", "Table to write: .npz, .parquet, .csv.", "--output", "-o"),
    ],
    task: Annotated[
        list[str] | None,
        option("task", "Task, pattern ('mmlu_*') or suite; may be repeated."),
    ] = None,
    metric: Annotated[str | None, option("metric", "Metric, if there are several.")] = (
        None
    ),
    filter: Annotated[
        str | None, option("filter", "Answer filter, if there are several.")
    ] = None,
    value: Annotated[
        Value,
        option("value", "The logged score, or the probability of the right choice."),
    ] = Value.score,
    format: Annotated[Format, option("format", "Format of the logs.")] = Format.auto,
    runs: Annotated[
        Runs, option("runs", "When a model was run more than once with other scores.")
    ] = Runs.error,
    on_error: Annotated[
        OnError, option("on-error", "Items that failed or have no finite score.")
    ] = OnError.error,
    missing: Annotated[Gaps, option("missing", "Items a model lacks.")] = Gaps.error,
    min_coverage: Annotated[
        float,
        option("min-coverage", "Leave out models with less of it.", min=0, max=1),
    ] = 0.0,
    lower_is_better: Annotated[
        bool | None,
        option(
            "lower-is-better",
            "Turn scores over, or keep them where logs say that lower is better.",
            "--lower-is-better/--higher-is-better",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        option("scale", "LO,HI of the scores, mapped to 0 and 1; or 'keep'."),
    ] = None,
    hashes: Annotated[
        Hashes, option("hashes", "Whether digests of items must agree.")
    ] = Hashes.check,
    allow_pickle: Annotated[
        bool, option("allow-pickle", "Read pickles too, if you trust their origin.")
    ] = False,
    json: Json = False,
) -> None:
    """Build a reference table from evaluation logs, whatever harness wrote them."""
    from gp_eval.readers import Options, Policies

    if output.suffix not in SUFFIXES:
        raise typer.BadParameter(f"--output: expected {' or '.join(SUFFIXES)}")
    _build(
        logs,
        output,
        tasks=task or [],
        metric=metric,
        filter=filter,
        format=format.value,
        options=Options(
            value=value.value,
            metric=metric,
            tasks=tuple(task or ()),
            allow_pickle=allow_pickle,
        ),
        policies=Policies(
            runs=runs.value,
            on_error=on_error.value,
            missing=missing.value,
            min_coverage=min_coverage,
            lower_is_better=lower_is_better,
            scale=parse_scale(scale),
            hashes=hashes.value,
        ),
        as_json=json,
    )


def parse_scale(text: str | None) -> Any:
    """``LO,HI``, ``keep`` or nothing."""
    if text is None or text == "keep":
        return text
    try:
        low, high = (float(word) for word in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not float("-inf") < low < high < float("inf"):
        raise typer.BadParameter(f"--scale: expected LO,HI or keep, got {text!r}")
    return low, high


def _build(
    logs: list[Path],
    output: Path,
    *,
    tasks: list[str],
    metric: str | None,
    filter: str | None,
    format: str,
    options: Options,
    policies: Policies,
    as_json: bool,
) -> None:
    from gp_eval.cli.output import note, print_json
    from gp_eval.readers import build_references
    from gp_eval.readers.lm_eval_gold import GOLD

    if output.suffix == ".parquet":
        from gp_eval.readers.tables import require_pyarrow

        require_pyarrow()
    collection = _read(logs, format, options)
    if options.value == "gold-prob":
        metric = GOLD.get(metric or "", "gold_prob")
    built = build_references(
        collection, tasks=tasks, metric=metric, filter=filter, policies=policies
    )
    built.references().write(output)
    report = _report(collection, built)
    if as_json:
        print_json({"output": str(output), **report})
    else:
        for line in _lines(report):
            note(line)
        note(f"Wrote {output}. Next: gp-eval refs show {output}")


def _read(logs: list[Path], format: str, options: Options) -> Collection:
    from rich.progress import Progress

    from gp_eval.cli.output import progress_console
    from gp_eval.readers import read_logs

    with Progress(console=progress_console(), transient=True) as bar:
        reading = bar.add_task("Reading", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(reading, completed=done, total=total)

        return read_logs(logs, format=format, options=options, progress=progress)


def _report(collection: Collection, built: Built) -> dict[str, Any]:
    """All counts, for ``--json``; keys are stable."""
    meta = built.meta
    return {
        "n_items": len(built.items),
        "n_models": len(built.models),
        "tasks": meta["tasks"],
        "metric": meta["metric"],
        "filters": {task: name for task, name in meta["filters"].items() if name},
        "formats": collection.formats,
        "other_files": len(collection.other_files),
        "pickles_left_out": len(collection.pickles),
        "counts": built.counts,
        "notes": dict(collection.notes),
        "shots": _values(meta, "shots"),
        "harness_versions": _values(meta, "harness"),
    }


def _values(meta: dict[str, Any], name: str) -> list[Any]:
    return sorted(
        {own[name] for own in meta["models"].values() if name in own}, key=str
    )


def _lines(report: dict[str, Any]) -> list[str]:
    """The same for people: what was built, then every count that is not zero."""
    formats = ", ".join(f"{n} {name}" for name, n in report["formats"].items())
    lines = [
        f"{report['n_items']} items x {report['n_models']} models, metric "
        f"{report['metric']}"
        + (f", task {', '.join(report['tasks'][:5])}" if report["tasks"] else "")
        + (f" and {len(report['tasks']) - 5} more" if len(report["tasks"]) > 5 else ""),
        f"files: {formats}; {report['other_files']} others, "
        f"{report['pickles_left_out']} pickles left out",
    ]
    for name in ("shots", "harness_versions"):
        if len(report[name]) > 1:
            lines.append(f"references differ in {name}: {report[name]}")
    return lines + _policy_lines(report["counts"]) + _listed(report)


def _policy_lines(counts: dict[str, Any]) -> list[str]:
    """What each policy did, zeros too: nothing was done is a statement as well."""
    return [
        f"failed: {counts['errored']} errored, {counts['unscored']} unscored, "
        f"{counts['infinite']} infinite (--on-error {counts['on_error']})",
        f"repeated: {counts['repeats_averaged']} averaged, "
        f"{counts['superseded_by_a_retry']} superseded by a retry, "
        f"{counts['cells_with_several_runs']} cells of several runs "
        f"(--runs {counts['runs']})",
        f"gaps: {counts['missing_cells']} missing cells, {counts['items_dropped']} "
        f"items and {len(counts['models_dropped'])} models dropped, "
        f"{counts['items_without_score']} items without score "
        f"(--missing {counts['missing']})",
        f"digests: {counts['items_with_digest']} items have one, "
        f"{counts['items_whose_digests_differ']} differ; prompts of "
        f"{counts['items_whose_prompts_differ']} items differ",
    ]


def _listed(report: dict[str, Any]) -> list[str]:
    """Models that are partial or dropped, and what the readers noted."""
    counts = report["counts"]
    partial = [f"{model} ({part})" for model, part in counts["partial_runs"].items()]
    lines = [
        f"{name}: {'; '.join(models[:5])}"
        + (f" and {len(models) - 5} more" if len(models) > 5 else "")
        for name, models in (
            ("partial runs", partial),
            ("models dropped", counts["models_dropped"]),
        )
        if models
    ]
    return lines + [f"{name}: {count}" for name, count in report["notes"].items()]

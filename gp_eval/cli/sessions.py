"""``gp-eval start | ask | tell | status``: a session from the shell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gp_eval.cli.forms import print_items
from gp_eval.cli.output import note, print_json, print_table
from gp_eval.cli.scores import parse_pairs, read_scores
from gp_eval.data import References
from gp_eval.data.validation import DuplicateModels, Missing
from gp_eval.loop import Result
from gp_eval.readers import Told, is_log, read_told
from gp_eval.readers.policies import OnError
from gp_eval.session import Session
from gp_eval.stopping import StoppingRule

__all__ = ["ask_items", "show_status", "start_session", "tell_scores"]

_BUDGET_SPENT = 3


def start_session(
    run: Path,
    refs: Path,
    *,
    target: str,
    model: str,
    stop: StoppingRule,
    seed: int,
    exclude: Sequence[str],
    macro: bool,
    missing: Missing,
    duplicate_models: DuplicateModels,
) -> None:
    """Create the session and say how to go on."""
    references = References.read(
        refs, missing=missing, duplicate_models=duplicate_models
    )
    if exclude:
        references = references.without(exclude)
    if macro:
        references = references.macro()
    with Session.create(
        run, references, target=target, model=model, stop=stop, seed=seed
    ):
        note(
            f"{target}: {len(references.items)} items, {len(references.models)} "
            f"references.\nNext: gp-eval ask {run}"
        )


def ask_items(
    run: Path, n: int, *, form: str, pending: bool, task: str | None, strict: bool
) -> int:
    """Print items in the wanted form; returns the exit code."""
    with Session.open(run) as session:
        items = session.pending if pending else session.ask(n)
        result, waiting = session.estimate(), len(session.pending)
        short = strict and _fell_short(result, session.config.stop)
        print_items(items, form, references=session.references, task=task)
    if not items and not pending:
        note(
            f"stopped: {result.stop_reason}"
            if result.stop_reason
            else f"nothing to ask before {waiting} pending items are told "
            f"(gp-eval ask {run} --pending)"
        )
    return _BUDGET_SPENT if short else 0


def tell_scores(
    run: Path,
    pairs: Sequence[str],
    source: str | None,
    *,
    metric: str | None,
    filter: str | None,
    log_model: str | None,
    on_error: OnError,
) -> None:
    """Record scores given as arguments, in a plain file or in a log."""
    log = Path(source) if source not in (None, "-") else None
    with Session.open(run) as session:
        if log is not None and (log.is_dir() or is_log(log)):
            told = read_told(
                log,
                items=session.references.items,
                meta=session.references.meta,
                metric=metric,
                filter=filter,
                model=log_model,
                on_error=on_error,
            )
            scores = told.scores
            _note_counts(told)
        elif source is not None:
            scores = read_scores(source)
        else:
            scores = parse_pairs(pairs)
        session.tell_all(scores)
        result = session.estimate()
    note(
        f"{len(scores)} told; n = {result.n} of {result.N}, estimate "
        f"{result.mean:.4f} [{result.low:.4f}, {result.high:.4f}]"
        + (f", stopped: {result.stop_reason}" if result.stop_reason else "")
    )


def _note_counts(told: Told) -> None:
    """What was done to the scores of a log, and what looks odd about them."""
    for name, count in told.counts.items():
        if isinstance(count, int) and count and name != "records":
            note(f"{name.replace('_', ' ')}: {count}")
    if told.is_prefix:
        note(
            "warning: these are the first items of the benchmark, not a random sample; "
            "if items are sorted, the estimate will lean"
        )


def show_status(run: Path, *, as_json: bool, strict: bool) -> int:
    """Print where the run stands; returns the exit code."""
    with Session.open(run, read_only=True) as session:
        result, pending = session.estimate(), session.pending
        short = strict and _fell_short(result, session.config.stop)
    record = {
        "target": result.target,
        "estimate": result.mean,
        "low": result.low,
        "high": result.high,
        "width": result.width,
        "n": result.n,
        "N": result.N,
        "pending": len(pending),
        "done": result.stop_reason is not None,
        "stop_reason": result.stop_reason,
    }
    if as_json:
        print_json(record)
    else:
        print_table(
            ["target", "estimate", "95 % interval", "width", "n", "pending", "stopped"],
            [
                [
                    result.target,
                    f"{result.mean:.4f}",
                    f"[{result.low:.4f}, {result.high:.4f}]",
                    f"{result.width:.4f}",
                    f"{result.n} of {result.N}",
                    str(len(pending)),
                    result.stop_reason or "no",
                ]
            ],
        )
        note(
            "Estimated mean over these items for this model; the interval is a "
            "posterior credible interval and covers neither re-runs nor other items."
        )
    return _BUDGET_SPENT if short else 0


def _fell_short(result: Result, stop: StoppingRule) -> bool:
    return result.stop_reason == "max_items" and result.width > stop.width

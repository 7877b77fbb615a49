"""``gp-eval start | ask | tell | status``: a session from the shell."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_eval.alarm import OnAlarm
from gp_eval.cli.costs import read_costs
from gp_eval.cli.forms import print_asked
from gp_eval.cli.group_table import print_groups, sections_by
from gp_eval.cli.model_options import check_values, metadata_weights, read_weights
from gp_eval.cli.output import note, print_json, print_table, training_progress
from gp_eval.cli.planned import planned
from gp_eval.cli.standing import (
    BUDGET_SPENT,
    details,
    fell_short,
    note_off_range,
    note_untrained,
    pending_counts,
    record,
    skipped_counts,
)
from gp_eval.data import References
from gp_eval.data.validation import DuplicateModels, Missing
from gp_eval.models.registry import is_calibrated, takes_targets
from gp_eval.result import Result
from gp_eval.session import MultiTargetSession, Session, open_session
from gp_eval.stopping import StoppingRule

__all__ = [
    "ask_items",
    "create_session",
    "show_status",
    "start_session",
]

AnySession = Session | MultiTargetSession


def start_session(
    run: Path,
    refs: Path,
    *,
    targets: Sequence[str],
    model: str | None,
    options: Mapping[str, Any],
    weights: Path | None,
    metadata: tuple[Path, str] | None,
    stop: StoppingRule,
    costs: Path | None,
    cost_aware: bool | None,
    seed: int,
    exclude: Sequence[str],
    macro: bool,
    on_alarm: OnAlarm,
    missing: Missing,
    duplicate_models: DuplicateModels,
    plan: tuple[Path, Collection[str]] | None = None,
) -> None:
    """Create the session and say how to go on.

    Weights come from ``options``, a file of them, or a file of metadata and the row
    that is the target's. A plan comes with the names of the settings it may give.
    """
    references = References.read(
        refs, missing=missing, duplicate_models=duplicate_models
    )
    if exclude:
        references = references.without(exclude)
    if macro:
        references = references.macro()
    if plan is not None:
        model, stop = planned(*plan, references, model=model, stop=stop)
    options = dict(options)
    if weights is not None:
        options["weights"] = read_weights(weights, references)
    elif metadata is not None:
        options["weights"] = metadata_weights(*metadata, references)
    with create_session(
        run,
        references,
        targets,
        model=model,
        options=options,
        stop=stop,
        seed=seed,
        costs=costs,
        cost_aware=cost_aware,
        on_alarm=on_alarm,
    ):
        note(
            f"{', '.join(targets)}: {len(references.items)} items, "
            f"{len(references.models)} references.\nNext: gp-eval ask {run}"
        )


def create_session(
    run: Path,
    references: References,
    targets: Sequence[str],
    *,
    model: str | None,
    options: Mapping[str, Any] | None = None,
    stop: StoppingRule,
    seed: int,
    costs: Path | None = None,
    cost_aware: bool | None = None,
    on_alarm: OnAlarm = "fallback",
) -> AnySession:
    """A session of one target, unless there are several or the model is of several.

    Sessions of several targets only warn, whatever ``on_alarm`` says.
    """
    if model is None:
        model = "bayesame" if len(targets) == 1 else "bayesame-multi"
    check_values(model, options or {})
    if is_calibrated(model):
        note(f"{model}: references are run as targets first, to learn its intervals")
    if len(targets) > 1 or takes_targets(model):
        if costs is not None or cost_aware:
            raise ValueError(
                "costs: several targets have no budget in common; use one session each"
            )
        return MultiTargetSession.create(
            run,
            references,
            targets=targets,
            model=model,
            model_options=options,
            stop=stop,
            seed=seed,
        )
    return Session.create(
        run,
        references,
        target=targets[0],
        model=model,
        model_options=options,
        stop=stop,
        seed=seed,
        costs=None if costs is None else read_costs(costs),
        cost_aware=cost_aware,
        on_alarm=on_alarm,
    )


def ask_items(
    run: Path, n: int, *, form: str, pending: bool, task: str | None, strict: bool
) -> int:
    """Print items, or pairs of target and item; returns the exit code."""
    with (
        training_progress() as progress,
        open_session(run, progress=progress) as session,
    ):
        asked = session.pending if pending else session.ask(n)
        results, waiting = session.estimates(), len(session.pending)
        short = strict and fell_short(results, session.config.stop)
    print_asked(  # now that no bar is shown, which would take stdout to itself
        asked,
        form,
        pairs=isinstance(session, MultiTargetSession),
        references=session.references,
        task=task,
    )
    if not asked and not pending:
        note(
            f"stopped: {_reasons(results)}"
            if session.done
            else f"nothing to ask before {waiting} pending items are told "
            f"(gp-eval ask {run} --pending)"
        )
    return BUDGET_SPENT if short else 0


def show_status(run: Path, *, group_by: str | None, as_json: bool, strict: bool) -> int:
    """Print where the run stands, target by target; returns the exit code."""
    with (
        training_progress() as progress,
        open_session(run, read_only=True, progress=progress) as session,
    ):
        results = session.estimates()
        waiting, skipped = pending_counts(session), skipped_counts(session)
        note_untrained(session)
        stop, lines = session.config.stop, details(session)
        short = strict and fell_short(results, stop)
        by_group = sections_by(group_by, session, results)
    if as_json:
        for result in results:
            name = result.target
            now = record(result, stop, pending=waiting[name], skipped=skipped[name])
            print_json(now | by_group[name].model_dump() if by_group else now)
    else:
        print_table(
            ["target", "estimate", "95 % interval", "width", "n", "pending", "stopped"],
            [_row(result, waiting[result.target]) for result in results],
        )
        for line in lines:
            note(line)
        if total := sum(skipped.values()):
            note(f"{total} items skipped: they count among the N and stay unobserved")
        note_off_range(results)
        note(
            f"Estimated mean over these items for this model; {_interval(results)} and "
            "covers neither re-runs nor other items."
        )
        print_groups(by_group)
    return BUDGET_SPENT if short else 0


def _interval(results: Sequence[Result]) -> str:
    """What kind of interval it is."""
    if any(r.range is not None and r.range.fallen_back for r in results):
        return "the interval is that of a random sample"
    return "the interval is a posterior credible interval"


def _row(result: Result, pending: int) -> list[str]:
    return [
        result.target,
        f"{result.mean:.4f}",
        f"[{result.low:.4f}, {result.high:.4f}]",
        f"{result.width:.4f}",
        f"{result.n} of {result.N}",
        str(pending),
        result.stop_reason or "no",
    ]


def _reasons(results: Sequence[Result]) -> str:
    if len(results) == 1:
        return str(results[0].stop_reason)
    return ", ".join(f"{result.target}: {result.stop_reason}" for result in results)

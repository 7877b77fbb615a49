"""Flags of ``gp-eval run`` and whether they are those of the run that goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gp_eval.alarm import OnAlarm
from gp_eval.cli.costs import read_costs
from gp_eval.cli.options import decision_rule, stopping_rule
from gp_eval.cli.planned import SETTINGS, planned
from gp_eval.costs import ItemCosts
from gp_eval.data import References
from gp_eval.errors import StateMismatchError
from gp_eval.session import MultiTargetSession, Session
from gp_eval.stopping import StoppingRule

__all__ = ["RunOptions", "check_same", "rule"]

AnySession = Session | MultiTargetSession


@dataclass(frozen=True)
class RunOptions:
    """Flags of ``gp-eval run``; ``None`` is the default, or what the session has.

    Args:
        refs: Table of references.
        targets: Names of targets.
        default_target: The name where none is given.
        model: Model that estimates.
        plan: File of a plan, for what no flag says.
        width: Of the stopping rule.
        stable: Of the stopping rule.
        window: Of the stopping rule.
        max_items: Of the stopping rule.
        costs: File of what items cost.
        max_cost: Of the stopping rule.
        cost_aware: Select by information per cost.
        until: Statement to decide.
        level: Probability that decides it.
        on_alarm: What to do with a target out of range.
        seed: Of the session.
        exclude: Reference models to leave out.
        batch: Items at once.
        on_error: Policy for failures.
        tries: How often an item is tried.
        accept_changes: Go on with other settings of the tool.
        as_json: Lines of JSON on stdout.
        strict: Exit code 3 for a budget that was too small.
    """

    refs: Path | None
    targets: list[str]
    default_target: str | None
    model: str | None
    plan: Path | None
    width: float | None
    stable: float | None
    window: int | None
    max_items: int | None
    costs: Path | None
    max_cost: float | None
    cost_aware: bool | None
    until: str | None
    level: float | None
    on_alarm: OnAlarm | None
    seed: int | None
    exclude: list[str]
    batch: int
    on_error: str
    tries: int | None
    accept_changes: bool
    as_json: bool
    strict: bool


def rule(
    options: RunOptions, references: References
) -> tuple[str | None, StoppingRule]:
    """Model and rule of a new session, with what a plan says where no flag does.

    Raises:
        GpEvalError: For a file that is no plan.
        StateMismatchError: For a plan of other references.
    """
    stop = stopping_rule(**_given(options), until=options.until, level=options.level)
    if options.plan is None:
        return options.model, stop
    return planned(
        options.plan, _left_open(options), references, model=options.model, stop=stop
    )


def _with_plan(options: RunOptions, references: References) -> RunOptions:
    """The flags, and what a plan says where there is none."""
    if options.plan is None:
        return options
    left_open = _left_open(options)
    stop = stopping_rule(**_given(options), until=None, level=None)
    model, stop = planned(
        options.plan, left_open, references, model=options.model, stop=stop
    )
    found = {"model": model, **vars(stop)}
    return replace(options, **{name: found[name] for name in left_open})


def _left_open(options: RunOptions) -> set[str]:
    return {name for name in SETTINGS if getattr(options, name) is None}


def _given(options: RunOptions) -> dict[str, Any]:
    """Parts of the stopping rule that are given."""
    names = ("width", "stable", "window", "max_items", "max_cost")
    values = {name: getattr(options, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def check_same(session: AnySession, options: RunOptions) -> None:
    """Flags of a line that goes on must be those of the line that began."""
    config, options = session.config, _with_plan(options, session.references)
    now = {f"--{k.replace('_', '-')}": v for k, v in _given(options).items()}
    before = {
        f"--{k.replace('_', '-')}": getattr(config.stop, k) for k in _given(options)
    }
    for flag, value, known in (
        ("--model", options.model, config.model),
        ("--seed", options.seed, config.seed),
        ("--on-alarm", options.on_alarm, getattr(config, "on_alarm", options.on_alarm)),
        ("--target", options.targets or None, session.targets),
        *_asked_for(session, options),
    ):
        if value is not None:
            now[flag], before[flag] = value, known
    differing = [
        f"{flag}: was {before[flag]!r}, is {value!r}"
        for flag, value in now.items()
        if value != before[flag]
    ]
    if differing:
        raise StateMismatchError(
            f"{str(session.path)!r} was started with other flags: "
            + "; ".join(differing)
        )


def _asked_for(
    session: AnySession, options: RunOptions
) -> list[tuple[str, object, object]]:
    """Flags of decision and costs, each as it is and as it was; ``None`` if not given.

    Costs are compared by their fingerprint.
    """
    stop = session.config.stop
    until = None
    if options.until is not None:
        decision = decision_rule(options.until, level=None, window=None)
        until = decision and decision.statement
    record = session.config.costs if isinstance(session, Session) else None
    costs = None
    if options.costs is not None:
        table = read_costs(options.costs)
        costs = ItemCosts.of_items(table, session.references.items).fingerprint
    return [
        ("--until", until, stop.until and stop.until.statement),
        ("--level", options.level, stop.until and stop.until.level),
        ("--costs", costs, record and record.fingerprint),
        ("--cost-aware", options.cost_aware, record and record.cost_aware),
    ]

"""``gp-eval run``: a session driven to its stop, or to the next interruption."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from gp_eval.cli.output import note, print_json
from gp_eval.cli.run_options import RunOptions, check_same, rule
from gp_eval.cli.sessions import create_session
from gp_eval.cli.standing import (
    BUDGET_SPENT,
    details,
    fell_short,
    note_untrained,
    off_range,
    pending_counts,
    record,
    skipped_counts,
)
from gp_eval.data import References
from gp_eval.drivers import Driver, OnError, drive
from gp_eval.result import Result
from gp_eval.session import MultiTargetSession, Session, open_session
from gp_eval.session.folder import CONFIG

__all__ = ["RunOptions", "run_driver"]

_INTERRUPTED = 130
AnySession = Session | MultiTargetSession


def run_driver(run: Path, driver: Driver, options: RunOptions) -> None:
    """Open the session, or create it, and drive it.

    Raises:
        typer.Exit: With the exit code, where it is not 0.
    """
    try:
        policy = OnError.parse(options.on_error, options.tries)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with _interruptible(), _opened(run, options) as session:
        reporter = _Reporter(session, options.as_json)
        try:
            drive(
                session,
                driver,
                batch=options.batch,
                on_error=policy,
                accept_changes=options.accept_changes,
                report=reporter,
            )
        except KeyboardInterrupt:
            reporter.sum_up("interrupted")
            note(f"Saved. The same line goes on:\n{_this_line()}")
            raise typer.Exit(_INTERRUPTED) from None
        reporter.sum_up("stop")
        short = options.strict and fell_short(session.estimates(), session.config.stop)
    if short:
        raise typer.Exit(BUDGET_SPENT)


@contextmanager
def _interruptible() -> Iterator[None]:
    """A polite kill, as of a cluster, is an interruption as well."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _this_line() -> str:
    return shlex.join(["gp-eval", *sys.argv[1:]])


# Opening


@contextmanager
def _opened(run: Path, options: RunOptions) -> Iterator[AnySession]:
    references = None if options.refs is None else _references(options)
    if (run / CONFIG).exists():
        with open_session(run, references=references) as session:
            check_same(session, options)
            yield session
        return
    if references is None:
        raise typer.BadParameter(f"--refs: needed to start the session {run}")
    targets = options.targets or [options.default_target or ""]
    if targets == [""]:
        raise typer.BadParameter("--target: the tool's flags do not name the model")
    if options.plan is not None and len(targets) > 1:
        raise typer.BadParameter("--plan: is about one target, several are given")
    model, stop = rule(options, references)
    with create_session(
        run,
        references,
        targets,
        model=model,
        stop=stop,
        seed=options.seed or 0,
        costs=options.costs,
        cost_aware=options.cost_aware,
        on_alarm=options.on_alarm or "fallback",
    ) as created:
        yield created


def _references(options: RunOptions) -> References:
    assert options.refs is not None
    references = References.read(options.refs)
    return references.without(options.exclude) if options.exclude else references


# Reporting


class _Reporter:
    """Lines for people on stderr, events for scripts on stdout."""

    def __init__(self, session: AnySession, as_json: bool) -> None:
        self._session, self._as_json = session, as_json
        self._out_of_range = {r.target for r in session.estimates() if off_range(r)}

    def __call__(self, event: str, content: Mapping[str, Any]) -> None:
        if event == "note":
            note(content["text"])
        elif event == "failed":
            for (_, item), why in content["reasons"].items():
                note(f"failed: {item}: {why}")
        elif event == "tell":
            self._tell(content["scores"])
        if self._as_json and event in ("ask", "failed"):
            print_json({"event": event, **_named(content)})

    def sum_up(self, event: str) -> None:
        """Where the run stands at its end."""
        waiting, skipped = pending_counts(self._session), skipped_counts(self._session)
        for result in self._session.estimates():
            why = f", stopped: {result.stop_reason}" if result.stop_reason else ""
            note(f"{_line(result)}{why}")
            if self._as_json:
                name = result.target
                now = record(
                    result,
                    self._session.config.stop,
                    pending=waiting[name],
                    skipped=skipped[name],
                )
                print_json({"event": event, **now})
        for line in details(self._session):
            note(line)
        note_untrained(self._session)
        if total := sum(skipped.values()):
            note(f"{total} items skipped: they count among the N and stay unobserved")

    def _warn_once(self, result: Result) -> None:
        """Say so when a target leaves what its references span."""
        sentence = off_range(result)
        if sentence is not None and result.target not in self._out_of_range:
            self._out_of_range.add(result.target)
            note(f"{result.target}: {sentence}")

    def _tell(self, scores: Mapping[tuple[str, str], float]) -> None:
        told = {target for target, _ in scores}
        for result in self._session.estimates():
            if result.target in told:
                note(_line(result))
                self._warn_once(result)
        if self._as_json:
            print_json(
                {
                    "event": "tell",
                    "scores": [
                        {"target": target, "item": item, "score": score}
                        for (target, item), score in scores.items()
                    ],
                }
            )


def _named(content: Mapping[str, Any]) -> dict[str, Any]:
    if "pairs" in content:
        return {"items": [{"target": t, "item": i} for t, i in content["pairs"]]}
    reasons = content["reasons"].items()
    return {
        "items": [{"target": t, "item": i, "reason": why} for (t, i), why in reasons]
    }


def _line(result: Result) -> str:
    return (
        f"{result.target}: n = {result.n} of {result.N}, estimate {result.mean:.4f} "
        f"[{result.low:.4f}, {result.high:.4f}]"
    )

"""Inspect: one task and one log by ``SampleSource``, or ``eval`` for each batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gp_eval.drivers.dependencies import require
from gp_eval.drivers.inspect_flags import settings_of
from gp_eval.drivers.inspect_items import InspectItems, was_interrupted
from gp_eval.drivers.protocol import Batch, Outcome
from gp_eval.errors import DataError, DriverError

if TYPE_CHECKING:
    from gp_eval.drivers.rounds import Rounds
    from gp_eval.session import MultiTargetSession, Session

__all__ = ["InspectDriver"]

_QUIET = {"display": "none", "log_header_only": True}
_EACH_SAMPLE_COUNTS = {"fail_on_error": False, "log_buffer": 1, "log_format": "eval"}


class InspectDriver:
    """Runs one model on chosen samples.

    Args:
        flags: Inspect's own, as after ``inspect eval``, without those that choose
            samples.
        options: Arguments of ``inspect_ai.eval`` by name, ``tasks`` among them, in
            place of flags.
        metric: The scorer that counts; default that of the references.
        sample_source: Whether to hand out samples within one run, which Inspect can
            from 0.3.250; default if it can.

    Example:
        >>> InspectDriver(["toy.py@toy", "--model", "openai/my-model"])
        >>> InspectDriver(options={"tasks": toy(), "model": "openai/my-model"})
    """

    name = "inspect"

    def __init__(
        self,
        flags: Sequence[str] = (),
        *,
        options: Mapping[str, Any] | None = None,
        metric: str | None = None,
        sample_source: bool | None = None,
    ) -> None:
        if bool(flags) == bool(options):
            raise DriverError("inspect: expected flags or options")
        self._flags, self._metric = list(flags), metric
        self._options = dict(options or {})
        self._wants_source = sample_source

    @property
    def settings(self) -> Mapping[str, Any]:
        """Flags that may change scores, and the scorer."""
        return settings_of(self._flags, self._options, metric=self._metric)

    def check(self, session: Session | MultiTargetSession) -> list[str]:
        """Load the tasks and compare their samples with the items.

        Raises:
            MissingDependencyError: Without Inspect.
            DriverError: For flags or items that do not fit.
        """
        require("inspect_ai", extra="inspect")
        from gp_eval.drivers.inspect_prepare import SUBSETS, check_options, options_of
        from gp_eval.drivers.inspect_tasks import load

        self._items = InspectItems(session, metric=self._metric)
        options = self._options or options_of(self._flags)
        check_options(options)
        self._arguments = {**options, **_QUIET, **_EACH_SAMPLE_COUNTS}
        for name in SUBSETS:
            self._arguments.pop(name, None)
        for name in ("fail_on_error", "retry_on_error"):
            if options.get(name) is not None:
                self._arguments[name] = options[name]
        self._tasks = load(options.get("tasks"), options.get("task_args") or {})
        self._items.check(self._tasks)
        can = _has_sample_source() and len(self._tasks) == 1
        if self._wants_source and not can:
            raise DriverError("inspect: no SampleSource, or more than one task")
        self._uses_source = can and self._wants_source is not False
        return []

    def run(self, rounds: Rounds) -> None:
        """Evaluate batch after batch."""
        if self._uses_source:
            from gp_eval.drivers.inspect_source import run_with_source

            run_with_source(rounds, self._tasks[0], self._arguments, self._items)
            return
        while (batch := rounds.next()) is not None:
            rounds.take(self._evaluate(batch))

    def recover(self, folder: Path, target: str, items: Sequence[str]) -> Outcome:
        """Scores of the logs in a folder; none of one that cannot be read."""
        try:
            return self._items.read(folder, target, items)
        except DataError:
            return Outcome()

    def _evaluate(self, batch: Batch) -> Outcome:
        from inspect_ai import eval

        outcome = Outcome()
        for target, items in batch.by_target.items():
            wanted = self._items.patterns(items)
            arguments = {**self._arguments, "log_dir": str(batch.folder)}
            logs = eval(**arguments, sample_id=wanted)
            if was_interrupted(logs):
                raise KeyboardInterrupt
            outcome.update(self._items.read(batch.folder, target, items))
            for log in logs:
                if log.error is not None:
                    outcome.failures |= dict.fromkeys(batch.pairs, log.error.message)
        return outcome


def _has_sample_source() -> bool:
    import inspect_ai

    return hasattr(inspect_ai, "SampleSource")

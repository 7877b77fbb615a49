"""Items of a session as samples of Inspect, and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_eval._names import some
from gp_eval.drivers.protocol import Outcome
from gp_eval.errors import DriverError
from gp_eval.readers import as_inspect_ids, read_logs, split_items, told_of
from gp_eval.readers.collect import Collection
from gp_eval.readers.identity import item_name
from gp_eval.readers.records import ERRORED, Log, Options

if TYPE_CHECKING:
    from gp_eval.session import MultiTargetSession, Session

__all__ = ["InspectItems", "was_interrupted"]


def was_interrupted(logs: Sequence[Any]) -> bool:
    """Whether Ctrl-C ended a run: Inspect raises nothing then, and may give no log."""
    return not logs or any(log.status == "cancelled" for log in logs)


class InspectItems:
    """What the items of a session are to Inspect.

    Args:
        session: A session of one target.
        metric: The scorer that counts; default that of the references.

    Raises:
        DriverError: For several targets.
    """

    def __init__(
        self, session: Session | MultiTargetSession, *, metric: str | None
    ) -> None:
        if len(session.targets) > 1:
            raise DriverError(
                f"one model is run, the session has the targets {session.targets}: use "
                "a session for each, run command with {target}, or tell --from"
            )
        references = session.references
        self._all, self._meta = references.items, references.meta
        self._metric = metric
        self._groups = dict(
            zip(references.items, references.groups or references.items, strict=True)
        )
        self._task: str | None = None
        named = self._meta.get("tasks") or []
        self._several = len(named) > 1
        self.only_task = named[0] if len(named) == 1 else ""

    def check(self, tasks: Sequence[Any]) -> None:
        """Raise ``DriverError`` for items that are no samples of the tasks."""
        if len(tasks) == 1 and not self._meta.get("tasks"):
            self._task = tasks[0].name
        samples = {task.name.split("/")[-1]: task.dataset for task in tasks}
        for name, ids in self._split(self._all).items():
            dataset = samples.get(name.split("/")[-1])
            if dataset is None:
                raise DriverError(
                    f"inspect: the references are of task {name!r}, the flags give "
                    f"{some([task.name for task in tasks])}"
                )
            known = {str(sample.id) for sample in dataset}
            absent = [i for i in ids if i not in known]
            if absent:
                raise DriverError(
                    f"inspect: {len(absent)} items, such as {some(absent, 3)}, are not "
                    f"among the {len(known)} samples of {name!r}"
                )

    def patterns(self, items: Sequence[str]) -> list[str]:
        """``sample_id`` of ``eval``, whose ids are patterns."""
        return as_inspect_ids(self._split(items))

    def sample_ids(self, items: Sequence[str]) -> list[str]:
        """Ids of samples of the one task."""
        (ids,) = self._split(items).values()
        return ids

    def read(self, source: Path, target: str, items: Sequence[str]) -> Outcome:
        """Scores of items in a log or a folder of them."""
        if source.is_dir() and not any(source.rglob("*.eval")):
            return Outcome()
        collection = read_logs([source], format="inspect", options=self._options())
        return self.scores(collection.logs, target, items)

    def scores(self, logs: list[Log], target: str, items: Sequence[str]) -> Outcome:
        """Scores of items in logs that were read."""
        failed = {
            (target, item): "the sample ended with an error, see its log"
            for item in self._errored(logs)
        }
        if not any(log.blocks for log in logs):
            return Outcome(failures=self._why(logs, target, items) | failed)
        told = told_of(
            Collection(logs=logs),
            items=self._all,
            meta=self._meta,
            metric=self._metric,
            filter=None,
            model=None,
            on_error="skip",
        )
        # A sample that failed in one of its epochs has failed.
        scores = {(target, item): told.scores[item] for item in told.scores}
        return Outcome(
            {
                p: scores[p]
                for i in items
                if (p := (target, i)) in scores.keys() - failed
            },
            failed,
        )

    def _errored(self, logs: list[Log]) -> set[str]:
        return {
            item_name(block.task, block.items[row], several=self._several)
            for log in logs
            for block in log.blocks
            for row in np.flatnonzero(block.states == ERRORED)
        }

    def _why(
        self, logs: list[Log], target: str, items: Sequence[str]
    ) -> dict[tuple[str, str], str]:
        reasons = [why for log in logs for why in log.refused.values()]
        return {(target, item): reasons[0] for item in items} if reasons else {}

    def _options(self) -> Options:
        return Options(metric=self._metric or self._meta.get("metric"))

    def _split(self, items: Sequence[str]) -> dict[str, list[str]]:
        return split_items(items, meta=self._meta, groups=self._groups, task=self._task)

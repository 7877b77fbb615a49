"""lm-evaluation-harness as a process for each batch: slower, from version 0.4.9 on.

Few-shot examples are drawn in the order of the documents that run, so that prompts may
differ from those of a full run unless the task takes its first examples. That is
counted where the references hold digests of prompts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gp_eval.drivers.dependencies import require
from gp_eval.drivers.lm_eval_flags import (
    choosing_flags,
    settings_of,
    task_names,
    without_tasks,
)
from gp_eval.drivers.lm_eval_items import LmEvalItems
from gp_eval.drivers.protocol import Batch, Outcome
from gp_eval.errors import DataError, DriverError

if TYPE_CHECKING:
    from gp_eval.drivers.rounds import Rounds
    from gp_eval.session import MultiTargetSession, Session

__all__ = ["LmEvalSubprocessDriver"]

_STDERR = 2


class LmEvalSubprocessDriver:
    """Runs ``python -m lm_eval`` with ``--samples``.

    Args:
        flags: lm-eval's own, without those that choose documents.
        metric: Metric that counts; default that of the references.
        filter: Its filter; default that of the references.
    """

    name = "lm-eval"

    def __init__(
        self,
        flags: Sequence[str],
        *,
        metric: str | None = None,
        filter: str | None = None,
    ) -> None:
        self._flags, self._metric, self._filter = list(flags), metric, filter

    @property
    def settings(self) -> Mapping[str, Any]:
        """Flags that may change scores, and the metric."""
        return settings_of(self._flags, metric=self._metric, filter=self._filter)

    def check(self, session: Session | MultiTargetSession) -> list[str]:
        """Compare flags and items.

        Raises:
            MissingDependencyError: Without lm-eval.
            DriverError: For flags or items that do not fit.
        """
        require("lm_eval", extra="lm-eval")
        if _release(version("lm-eval")) < (0, 4, 9):
            raise DriverError(
                f"lm-eval {version('lm-eval')} has no --samples: 0.4.9 or later has"
            )
        given = choosing_flags(self._flags)
        if given:
            raise DriverError(
                f"lm-eval: {given[0]} cannot be given: the items are chosen "
                "by the session"
            )
        self._items = LmEvalItems(
            session,
            tasks=task_names(self._flags),
            metric=self._metric,
            filter=self._filter,
        )
        self._items.split(session.references.items)
        return []

    def run(self, rounds: Rounds) -> None:
        """Start a process for each batch."""
        while (batch := rounds.next()) is not None:
            before = self._items.other_prompts
            rounds.take(self._evaluate(batch))
            if n := self._items.other_prompts - before:
                text = f"warning: {n} prompts are not those of the references"
                rounds.report("note", {"text": text})

    def recover(self, folder: Path, target: str, items: Sequence[str]) -> Outcome:
        """Scores of the samples files in a folder; none if one was cut off."""
        try:
            return self._items.read(folder, target, items)
        except DataError:
            return Outcome()

    def _evaluate(self, batch: Batch) -> Outcome:
        outcome = Outcome()
        for target, items in batch.by_target.items():
            code = self._run(batch.folder, self._items.split(items))
            if code:
                why = f"lm-eval ended with code {code}"
                outcome.failures |= dict.fromkeys(batch.pairs, why)
            else:
                outcome.update(self._items.read(batch.folder, target, items))
        return outcome

    def _run(self, folder: Path, samples: Mapping[str, Sequence[int]]) -> int:
        """Exactly the tasks with items: others would be run in full."""
        flags = [word for word in without_tasks(self._flags) if word != "run"]
        chosen = [
            *("--tasks", ",".join(samples), "--samples", json.dumps(samples)),
            *("--output_path", str(folder), "--log_samples"),
        ]
        words = [sys.executable, "-m", "lm_eval", "run", *flags, *chosen]
        if _release(version("lm-eval")) < (0, 4, 10):  # no commands yet
            words.remove("run")
        return subprocess.run(words, stdout=_STDERR, check=False).returncode


def _release(text: str) -> tuple[int, ...]:
    """``0.4.13.dev1`` as 0, 4, 13."""
    numbers = []
    for part in text.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        numbers.append(int(digits or 0))
    return tuple(numbers)

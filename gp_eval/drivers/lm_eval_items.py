"""Items of a session as documents of lm-eval, and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gp_eval.drivers.protocol import Outcome
from gp_eval.errors import DataError, DriverError
from gp_eval.readers import as_lm_eval_samples, read_told, split_items
from gp_eval.readers.identity import item_name

if TYPE_CHECKING:
    from gp_eval.session import MultiTargetSession, Session

__all__ = ["LmEvalItems", "samples_name"]


def samples_name(task: str) -> str:
    """Name of a samples file, as lm-eval gives it."""
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%f")
    return f"samples_{task}_{date}.jsonl"


class LmEvalItems:
    """What the items of a session are to lm-eval.

    Args:
        session: A session of one target.
        tasks: Tasks that are to be run.
        metric: Metric that counts; default that of the references.
        filter: Its filter; default that of the references.

    Raises:
        DriverError: For several targets, or items that are no documents of a task.
    """

    def __init__(
        self,
        session: Session | MultiTargetSession,
        *,
        tasks: Sequence[str],
        metric: str | None,
        filter: str | None,
    ) -> None:
        if len(session.targets) > 1:
            raise DriverError(
                f"one model is run, the session has the targets {session.targets}: use "
                "a session for each, run command with {target}, or tell --from"
            )
        references = session.references
        self._all, self._meta = references.items, references.meta
        self._metric, self._filter = metric, filter
        self._groups = dict(
            zip(references.items, references.groups or references.items, strict=True)
        )
        named = references.meta.get("tasks") or []
        self._several = len(named) > 1
        self.other_prompts = 0  # seen in logs, compared with the references
        self._task = tasks[0] if len(tasks) == 1 and not named else None
        if metric is None and not references.meta.get("metric"):
            raise DriverError(
                "the references do not say what metric their scores are: give --metric"
            )

    def split(self, items: Sequence[str]) -> dict[str, list[int]]:
        """Document numbers by task, rising.

        Raises:
            DriverError: For items that are no document numbers, or of no known task.
        """
        try:
            split = split_items(
                items, meta=self._meta, groups=self._groups, task=self._task
            )
            return as_lm_eval_samples(split)
        except DataError as error:
            raise DriverError(f"lm-eval: {error}") from error

    def name(self, task: str, doc_id: int) -> str:
        """The item."""
        return item_name(task, str(doc_id), several=self._several)

    def read(self, folder: Path, target: str, items: Sequence[str]) -> Outcome:
        """Scores of items in the samples files of a folder."""
        if not any(folder.rglob("samples_*.jsonl")):
            return Outcome()
        told = read_told(
            folder,
            items=self._all,
            meta=self._meta,
            metric=self._metric,
            filter=self._filter,
        )
        self.other_prompts += told.counts[
            "items_with_other_prompts_than_the_references"
        ]
        return Outcome(
            {(target, item): told.scores[item] for item in items if item in told.scores}
        )

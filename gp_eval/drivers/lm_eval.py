"""lm-evaluation-harness, in this process: the model stays, prompts are exact."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gp_eval._files import atomic_write
from gp_eval._names import some
from gp_eval.drivers.dependencies import require
from gp_eval.drivers.lm_eval_flags import settings_of
from gp_eval.drivers.lm_eval_items import LmEvalItems
from gp_eval.drivers.protocol import Batch, Outcome
from gp_eval.errors import DriverError

if TYPE_CHECKING:
    from gp_eval.drivers.lm_eval_task import BuiltTask
    from gp_eval.drivers.rounds import Rounds
    from gp_eval.session import MultiTargetSession, Session

__all__ = ["LmEvalDriver"]


class LmEvalDriver:
    """Runs one model on chosen documents.

    The requests of all documents are built once and only those of chosen documents are
    sent, so that every prompt is the one of the full run.

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
        """Load model and tasks, build all requests, compare them with the references.

        Raises:
            MissingDependencyError: Without lm-eval.
            DriverError: For flags or items that do not fit.
        """
        require("lm_eval", extra="lm-eval")
        from gp_eval.drivers.lm_eval_prepare import prepare
        from gp_eval.drivers.lm_eval_task import BuiltTask

        with contextlib.redirect_stdout(sys.stderr):
            prepared = prepare(self._flags)
            self._items = LmEvalItems(
                session,
                tasks=list(prepared.tasks),
                metric=self._metric,
                filter=self._filter,
            )
            wanted = self._items.split(session.references.items)
            absent = [name for name in wanted if name not in prepared.tasks]
            if absent:
                raise DriverError(
                    f"lm-eval: the references are of {some(absent)} too, but --tasks "
                    f"gives {some(list(prepared.tasks))}"
                )
            self._tasks = {
                name: BuiltTask(name, task, prepared)
                for name, task in prepared.tasks.items()
                if name in wanted
            }
        return self._compare(wanted, session.references.meta)

    def run(self, rounds: Rounds) -> None:
        """Evaluate batch after batch."""
        while (batch := rounds.next()) is not None:
            with contextlib.redirect_stdout(sys.stderr):
                outcome = self._evaluate(batch)
            rounds.take(outcome)

    def recover(self, folder: Path, target: str, items: Sequence[str]) -> Outcome:
        """Scores of the samples files in a folder."""
        return self._items.read(folder, target, items)

    def _compare(self, wanted: dict[str, list[int]], meta: Any) -> list[str]:
        """Documents must be those of the references, prompts should be."""
        documents, prompts = (
            meta.get(k) or {} for k in ("item_hashes", "prompt_hashes")
        )
        other: list[str] = []
        n_prompts = 0
        for name, doc_ids in wanted.items():
            task = self._tasks[name]
            if doc_ids[-1] >= task.n_docs:
                raise DriverError(
                    f"lm-eval: {name!r} has {task.n_docs} documents, the references "
                    f"have one of number {doc_ids[-1]}"
                )
            for doc_id in doc_ids:
                item = self._items.name(name, doc_id)
                if item in documents:
                    same = documents[item] == f"{task.document_hash(doc_id):016x}"
                    other += [] if same else [item]
                if item in prompts:
                    n_prompts += prompts[item] != f"{task.prompt_hash(doc_id):016x}"
        if other:
            raise DriverError(
                f"lm-eval: {len(other)} documents, such as {some(other, 3)}, are not "
                "those that the references were scored on: another version of the data"
            )
        return [
            f"warning: the prompts of {n_prompts} items are not those of the "
            "references: other shots, seed, instruction or template"
        ] * bool(n_prompts)

    def _evaluate(self, batch: Batch) -> Outcome:
        outcome = Outcome()
        for target, items in batch.by_target.items():
            for name, doc_ids in self._items.split(items).items():
                rows, failures = _rows(self._tasks[name], doc_ids)
                for doc_id, why in failures.items():
                    outcome.failures[target, self._items.name(name, doc_id)] = why
                if rows:
                    _write(batch.folder, name, rows)
            outcome.scores |= self._items.read(batch.folder, target, items).scores
        return outcome


def _rows(
    task: BuiltTask, doc_ids: list[int]
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Rows of all documents; one by one if together they fail."""
    try:
        return task.evaluate(doc_ids), {}
    except Exception as error:  # whatever a model may raise
        if len(doc_ids) == 1:
            return [], {doc_ids[0]: f"{type(error).__name__}: {error}"}
    alone = [_rows(task, [doc_id]) for doc_id in doc_ids]
    rows = [row for found, _ in alone for row in found]
    # The rows of each filter together, in the order of the documents.
    filters = list(dict.fromkeys(row["filter"] for row in rows))
    rows.sort(key=lambda row: filters.index(row["filter"]))
    return rows, {i: why for _, failed in alone for i, why in failed.items()}


def _write(folder: Path, task: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """A samples file as ``--log_samples`` writes it, whole or not at all."""
    from lm_eval.utils import handle_non_serializable

    from gp_eval.drivers.lm_eval_items import samples_name

    lines = (
        json.dumps(row, default=handle_non_serializable, ensure_ascii=False)
        for row in rows
    )
    text = "".join(f"{line}\n" for line in lines)
    atomic_write(folder / samples_name(task), text.encode())

"""The session as a ``SampleSource``: one run of Inspect, one log, no reloading.

A sample can be in a log once, so that samples to be tried again begin another run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gp_eval.drivers.inspect_items import InspectItems, was_interrupted
from gp_eval.drivers.protocol import Batch, Outcome
from gp_eval.readers.inspect_logs import log_of_samples, whole_samples

if TYPE_CHECKING:
    from gp_eval.drivers.rounds import Rounds

__all__ = ["run_with_source"]


def run_with_source(
    rounds: Rounds, task: Any, arguments: Mapping[str, Any], items: InspectItems
) -> None:
    """Let Inspect run until the session has nothing to ask.

    Raises:
        KeyboardInterrupt: If the run was interrupted, which Inspect itself does not
            raise.
        GpEvalError: What the session raised meanwhile.
    """
    from inspect_ai import eval, task_with

    samples = {str(sample.id): sample for sample in task.dataset}
    batch = rounds.next()
    while batch is not None:
        epochs = arguments.get("epochs") or task.epochs or 1
        feed = _Feed(rounds, batch, samples, items, getattr(epochs, "epochs", epochs))
        options = {
            **arguments,
            "tasks": task_with(task, dataset=_source(feed)),
            "task_args": {},
            "log_dir": str(batch.folder),
        }
        logs = eval(**options)
        if feed.error is not None:
            raise feed.error
        if was_interrupted(logs):
            raise KeyboardInterrupt
        broken = [log.error.message for log in logs if log.error is not None]
        if broken:
            feed.take(broken[0])
            feed.batch = rounds.next()
        batch = feed.batch


class _Feed:
    """Between the session and one run of Inspect.

    Attributes:
        batch: What runs now; at the end of the run what another one has to take.
        error: What went wrong on our side, which Inspect would only log.
    """

    def __init__(
        self,
        rounds: Rounds,
        batch: Batch,
        samples: dict[str, Any],
        items: InspectItems,
        epochs: int,
    ) -> None:
        self._epochs = epochs
        self._rounds, self._samples, self._items = rounds, samples, items
        self._folder = batch.folder
        self._done: list[dict[str, Any]] = []
        self.batch: Batch | None = batch
        self.error: BaseException | None = None

    def samples(self) -> list[Any]:
        """Samples of the batch."""
        assert self.batch is not None
        chosen = [item for _, item in self.batch.pairs]
        return [self._samples[i] for i in self._items.sample_ids(chosen)]

    def add(self, sample: Any) -> None:
        """A sample is done."""
        error = sample.error
        scores = (sample.scores or {}).items()
        self._done.append(
            {
                "id": sample.id,
                "epoch": sample.epoch,
                "scores": {name: {"value": score.value} for name, score in scores},
                "error": None if error is None else str(error.message),
            }
        )

    def next(self) -> list[Any] | None:
        """Tell the batch; samples of the next one if this run can take them."""
        try:
            self.take()
            self.batch = self._rounds.next(self._folder)
        except BaseException as error:
            self.batch, self.error = None, error
        if self.batch is None or self.batch.folder != self._folder:
            return None
        return self.samples()

    def take(self, broken: str | None = None) -> None:
        """Tell the scores that are there; ``broken`` is why there are no others."""
        assert self.batch is not None
        outcome, done = Outcome(), self._done
        self._done = []
        if broken is not None:
            done = whole_samples(done, self._epochs)
            outcome.failures |= dict.fromkeys(self.batch.pairs, broken)
        for target, chosen in self.batch.by_target.items():
            path = self.batch.folder / "running"
            log = log_of_samples(done, path, task=self._items.only_task, model=target)
            outcome.update(self._items.scores([log], target, chosen))
            outcome.failures |= {
                (target, str(sample["id"])): sample["error"]
                for sample in done
                if sample["error"]
            }
        self._rounds.take(outcome)


def _source(feed: _Feed) -> Any:
    """The class is made here because its base is an optional import."""
    from inspect_ai import SampleSource

    class SessionSource(SampleSource):
        """Samples as the session asks for them."""

        def initial_samples(self) -> list[Any]:
            """Those of the first batch."""
            return feed.samples()

        async def sample_complete(self, sample: Any) -> None:
            """Once for each epoch."""
            feed.add(sample)

        async def next_samples(self) -> list[Any] | None:
            """Called when all samples handed out are done."""
            return feed.next()

    return SessionSource()

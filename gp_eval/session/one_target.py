"""The run of one target as a session drives it."""

from __future__ import annotations

from collections.abc import Sequence

from gp_eval.loop import EvaluationLoop
from gp_eval.result import Result, StopReason

__all__ = ["OneTarget"]


class OneTarget:
    """The loop of one target, driven as if it were of several."""

    def __init__(self, loop: EvaluationLoop) -> None:
        self._loop = loop
        self.scores = [loop.scores]

    @property
    def done(self) -> bool:
        """Whether it has stopped."""
        return self._loop.done

    @property
    def pending(self) -> dict[tuple[int, int], None]:
        """Pairs asked and not told."""
        return {(0, item): None for item in self._loop.pending}

    @property
    def stop_reasons(self) -> list[StopReason | None]:
        """Why it stopped."""
        return [self._loop.stop_reason]

    @property
    def skipped(self) -> dict[tuple[int, int], None]:
        """Pairs that cannot be evaluated."""
        return {(0, item): None for item in self._loop.skipped}

    def skip(self, target: int, item: int) -> None:
        """Leave an item unobserved."""
        self._loop.skip(item)

    def ask(self, q: int = 1) -> list[tuple[int, int]]:
        """The next pairs."""
        return [(0, item) for item in self._loop.ask(q)]

    def reserve(self, target: int, item: int) -> None:
        """Count an item as asked."""
        self._loop.reserve(item)

    def tell(self, target: int, item: int, score: float) -> None:
        """Take in a score."""
        self._loop.tell(item, score)

    def results(self, targets: Sequence[str], items: Sequence[str]) -> list[Result]:
        """Where it stands."""
        return [self._loop.result(targets[0], tuple(items))]

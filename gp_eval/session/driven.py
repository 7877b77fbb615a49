"""What a session needs of the run in memory that it drives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gp_eval.result import Result, StopReason

__all__ = ["Loop"]


class Loop(Protocol):
    """What a session drives: a run over pairs of a target and an item, by index."""

    scores: list[dict[int, float]]

    @property
    def skipped(self) -> dict[tuple[int, int], None]:
        """Pairs that cannot be evaluated."""

    @property
    def pending(self) -> dict[tuple[int, int], None]:
        """Pairs asked and not told, in the order of asking."""

    @property
    def stop_reasons(self) -> list[StopReason | None]:
        """Why each target stopped."""

    @property
    def done(self) -> bool:
        """Whether every target has stopped."""

    def ask(self, q: int = 1) -> list[tuple[int, int]]:
        """The next pairs."""

    def reserve(self, target: int, item: int) -> None:
        """Count a pair as asked."""

    def tell(self, target: int, item: int, score: float) -> None:
        """Take in a score."""

    def skip(self, target: int, item: int) -> None:
        """Leave a pair unobserved."""

    def results(self, targets: Sequence[str], items: Sequence[str]) -> list[Result]:
        """Where each target stands."""

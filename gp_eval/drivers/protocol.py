"""What a driver is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from gp_eval.drivers.rounds import Rounds
    from gp_eval.session import MultiTargetSession, Session

__all__ = ["Batch", "Driver", "Outcome", "Pair"]

Pair = tuple[str, str]
"""A target and an item."""


@dataclass
class Outcome:
    """What became of a batch; a pair in neither part has no score.

    Args:
        scores: By pair.
        failures: Why there is no score, by pair.
    """

    scores: dict[Pair, float] = field(default_factory=dict)
    failures: dict[Pair, str] = field(default_factory=dict)

    def update(self, other: Outcome) -> None:
        """Take in another one."""
        self.scores |= other.scores
        self.failures |= other.failures


@dataclass(frozen=True)
class Batch:
    """Pairs to evaluate now.

    Args:
        pairs: In the order of asking.
        folder: An empty folder for what the tool writes; scores found there are taken
            up if the run is killed before they are told.
    """

    pairs: list[Pair]
    folder: Path

    @property
    def by_target(self) -> dict[str, list[str]]:
        """Items of each target."""
        items: dict[str, list[str]] = {}
        for target, item in self.pairs:
            items.setdefault(target, []).append(item)
        return items


class Driver(Protocol):
    """A tool that can be made to evaluate chosen items."""

    name: str

    @property
    def settings(self) -> Mapping[str, Any]:
        """What must not change within a session, as JSON."""

    def check(self, session: Session | MultiTargetSession) -> list[str]:
        """Find what is wrong before anything is asked or paid for.

        Returns:
            What looks odd and does not keep the run from going on.

        Raises:
            GpEvalError: For what does.
        """

    def run(self, rounds: Rounds) -> None:
        """Evaluate batch after batch until there is none."""

    def recover(self, folder: Path, target: str, items: Sequence[str]) -> Outcome:
        """Scores in the folder of a batch that was interrupted."""

"""A session of one or several targets, seen as pairs of a target and an item."""

from __future__ import annotations

from collections.abc import Mapping

from gp_eval.drivers.protocol import Pair
from gp_eval.session import MultiTargetSession, Session

__all__ = ["Pairs"]


class Pairs:
    """The same asking and telling for both kinds of session."""

    def __init__(self, session: Session | MultiTargetSession) -> None:
        self.session = session

    @property
    def pending(self) -> list[Pair]:
        """Asked and not told."""
        if isinstance(self.session, MultiTargetSession):
            return self.session.pending
        return [(self._target, item) for item in self.session.pending]

    def ask(self, q: int) -> list[Pair]:
        """The next ones."""
        if isinstance(self.session, MultiTargetSession):
            return self.session.ask(q)
        return [(self._target, item) for item in self.session.ask(q)]

    def tell(self, scores: Mapping[Pair, float]) -> None:
        """All of them, in their order."""
        if isinstance(self.session, MultiTargetSession):
            self.session.tell_all(scores)
        else:
            self.session.tell_all({item: score for (_, item), score in scores.items()})

    def skip(self, reasons: Mapping[Pair, str]) -> None:
        """Leave them unobserved."""
        if isinstance(self.session, MultiTargetSession):
            self.session.skip(reasons)
        else:
            self.session.skip({item: why for (_, item), why in reasons.items()})

    @property
    def _target(self) -> str:
        return self.session.targets[0]

"""What to do with items that cannot be evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gp_eval.session.checks import as_score

__all__ = ["OnError"]


@dataclass(frozen=True)
class OnError:
    """What happens to an item once it has failed as often as it may.

    Args:
        kind: ``"retry"`` stops the run and leaves the item pending, ``"skip"`` leaves
            it unobserved, ``"score"`` gives it ``score``.
        score: In units of the references.
        tries: How often it is tried in all; default 3 with ``"retry"``, else 1.
    """

    kind: Literal["retry", "skip", "score"] = "retry"
    score: float = 0.0
    tries: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("retry", "skip", "score"):
            raise ValueError(
                f"on_error: expected retry, skip or score, got {self.kind!r}"
            )
        if self.tries is not None and self.tries < 1:
            raise ValueError(f"tries: expected 1 or more, got {self.tries!r}")
        as_score("on_error", self.score)

    @property
    def limit(self) -> int:
        """Number of tries."""
        if self.tries is not None:
            return self.tries
        return 3 if self.kind == "retry" else 1

    @classmethod
    def parse(cls, text: str, tries: int | None = None) -> OnError:
        """From ``retry``, ``skip`` or ``score:X``.

        Raises:
            ValueError: For any other text.
        """
        if text == "retry":
            return cls("retry", tries=tries)
        if text == "skip":
            return cls("skip", tries=tries)
        kind, _, number = text.partition(":")
        try:
            if kind == "score":
                return cls("score", float(number), tries)
        except ValueError:
            pass
        raise ValueError(f"on_error: expected retry, skip or score:0, got {text!r}")

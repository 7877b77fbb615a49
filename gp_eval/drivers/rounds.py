"""From the session to the tool and back: which items now, what to do with failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_eval.drivers.attempts import Attempts
from gp_eval.drivers.on_error import OnError
from gp_eval.drivers.pairs import Pairs
from gp_eval.drivers.protocol import Batch, Outcome, Pair
from gp_eval.errors import DriverError
from gp_eval.session import MultiTargetSession, Session

__all__ = ["Recover", "Report", "Rounds"]

Recover = Callable[[Path, str, Sequence[str]], Outcome]
Report = Callable[[str, Mapping[str, Any]], None]
"""Called with ``"ask"``, ``"tell"``, ``"skip"`` or ``"note"`` and what goes with it."""

_FAILURES_IN_A_ROW = 10
_LONGEST_REASON = 300


class Rounds:
    """Batches of a session, each told as a whole once it is complete.

    Scores of a batch are told in the order of asking, whatever order they came in, so
    that a run that was interrupted gives the same numbers as one that was not.

    Args:
        session: Open for writing.
        attempts: Folders for the tool's logs.
        size: Items of a batch.
        on_error: What to do with items that fail.
        recover: Reads the folder of an interrupted batch.
        report: Told what happens.
    """

    def __init__(
        self,
        session: Session | MultiTargetSession,
        attempts: Attempts,
        *,
        size: int,
        on_error: OnError,
        recover: Recover,
        report: Report,
    ) -> None:
        self.session = session
        self.report = report
        self._pairs, self._attempts = Pairs(session), attempts
        self._size, self._on_error, self._recover = size, on_error, recover
        self._open: list[Pair] = []
        self._found: dict[Pair, float] | None = None
        self._outcome = Outcome()
        self._tries: Counter[Pair] = Counter()
        self._in_a_row = 0

    def next(self, folder: Path | None = None) -> Batch | None:
        """Pairs to evaluate now, or to try again; ``None`` at the end of the run.

        Args:
            folder: That of a batch before, for a tool that goes on writing there;
                default a new one, and always for pairs that are tried again.

        Raises:
            DriverError: For failures that stop the run.
        """
        while not self._open:
            if not self._begin():
                return None
        pairs = self._unscored()
        if folder is None or any(self._tries[pair] for pair in pairs):
            folder = self._attempts.new(pairs)
        else:
            self._attempts.extend(folder, pairs)
        return Batch(pairs, folder)

    def take(self, outcome: Outcome) -> None:
        """Take in what became of the last batch.

        Raises:
            DriverError: For failures that stop the run; scores are told before.
        """
        for pair in self._unscored():
            if pair in outcome.scores:
                self._outcome.scores[pair] = outcome.scores[pair]
            else:
                why = outcome.failures.get(pair) or "no score came back"
                self._outcome.failures[pair] = why[:_LONGEST_REASON]
                self._tries[pair] += 1
        if any(self._tries[p] < self._on_error.limit for p in self._unscored()):
            return
        self._settle()

    def _begin(self) -> bool:
        """Open a batch: what is pending, else what the session asks for next."""
        pending = self._pairs.pending
        if self._found is None:
            self._found = self._left_by_the_last_run(pending)
        self._open = pending[: self._size] or self._pairs.ask(self._size)
        if not self._open:
            return False
        found = {p: self._found.pop(p) for p in self._open if p in self._found}
        self._outcome, self._tries = Outcome(found), Counter()
        self.report("ask", {"pairs": list(self._open)})
        if not self._unscored():
            self._settle()
        return True

    def _left_by_the_last_run(self, pending: Sequence[Pair]) -> dict[Pair, float]:
        """Scores that interrupted batches left in their folders."""
        scores: dict[Pair, float] = {}
        for folder, pairs in self._attempts.left(pending):
            for target, items in Batch(pairs, folder).by_target.items():
                found = self._recover(folder, target, items).scores
                for pair in pairs:
                    if pair in found:
                        scores.setdefault(pair, found[pair])
        if scores:
            text = f"{len(scores)} scores taken up that the last run had not told"
            self.report("note", {"text": text})
        return scores

    def _unscored(self) -> list[Pair]:
        return [pair for pair in self._open if pair not in self._outcome.scores]

    def _settle(self) -> None:
        """Tell the batch, failures by the policy."""
        scores, failed = self._outcome.scores, self._unscored()
        stop = self._failures_that_stop(failed)
        if self._on_error.kind == "score" and stop is None:
            scores = scores | dict.fromkeys(failed, self._on_error.score)
        told = {pair: scores[pair] for pair in self._open if pair in scores}
        reasons = {pair: self._outcome.failures[pair] for pair in failed}
        if told:
            self._pairs.tell(told)
        if stop is not None:
            raise DriverError(stop)
        if reasons and self._on_error.kind == "skip":
            self._pairs.skip(reasons)
        self._open = []
        if reasons:
            self.report("failed", {"reasons": reasons})
        self.report("tell", {"scores": told})

    def _failures_that_stop(self, failed: Sequence[Pair]) -> str | None:
        """Why the run cannot go on, if it cannot."""
        for pair in self._open:
            self._in_a_row = self._in_a_row + 1 if pair in failed else 0
        if not failed:
            return None
        (_, item), why = failed[0], self._outcome.failures[failed[0]]
        if self._on_error.kind == "retry":
            return (
                f"{len(failed)} items failed {self._on_error.limit} times, such as "
                f"{item!r}: {why}. They stay pending: the same line tries them again, "
                "--on-error skip leaves them unobserved, --on-error score:0 scores them"
            )
        if self._in_a_row >= _FAILURES_IN_A_ROW:
            return (
                f"{self._in_a_row} items failed in a row, such as {item!r}: {why}. "
                "That looks like the tool, not the items: they stay pending"
            )
        return None

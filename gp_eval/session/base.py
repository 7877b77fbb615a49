"""What sessions of one and of several targets share: ask, tell, resume."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from gp_eval.data.validation import some
from gp_eval.errors import ScoreError, StateMismatchError
from gp_eval.models import SupportsRefit
from gp_eval.models.protocol import SupportsScoreCheck
from gp_eval.result import Result
from gp_eval.session.checks import as_score
from gp_eval.session.config import BaseConfig
from gp_eval.session.driven import Loop
from gp_eval.session.folder import SessionFolder
from gp_eval.session.journal import Ask, Event, Skip, Tell, Update

__all__ = ["BaseSession", "Pair"]

Config = TypeVar("Config", bound=BaseConfig)

Pair = tuple[str, str]
"""A target and an item, by name."""


class BaseSession(Generic[Config]):
    """A run whose every event is on disk before anything else happens.

    Subclasses say how callers name what is evaluated: by item, or by target and item.

    Args:
        folder: The open folder.
        model: The belief that the loop updates.
        loop: Makes the run in memory, before any event. It asks the model for its
            belief, which takes the updates on disk first.
        targets: Names of the targets.
        named: Whether events and messages name the target.
    """

    def __init__(
        self,
        folder: SessionFolder[Config],
        *,
        model: object,
        loop: Callable[[], Loop],
        targets: Sequence[str],
        named: bool,
    ) -> None:
        self._folder, self._model = folder, model
        self.path, self.config, self.references = (
            folder.path,
            folder.config,
            folder.references,
        )
        self.targets = list(targets)
        self._named = named
        self._index = {item: i for i, item in enumerate(self.references.items)}
        self._target_index = {target: t for t, target in enumerate(targets)}
        self._written: set[int] = set()
        self._reasons: dict[tuple[int, int], str] = {}
        events = folder.events()
        self._hand_back_updates(events)
        self._loop = loop()
        self._replay(events)

    def close(self) -> None:
        """Let another process write. Everything is on disk already."""
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def done(self) -> bool:
        """Whether the run has stopped; late scores are still taken."""
        return self._loop.done

    def estimates(self) -> list[Result]:
        """Estimate and 95 % interval of each target, and what they rest on."""
        return self._loop.results(self.targets, self.references.items)

    # What reports read

    @property
    def model(self) -> object:
        """The belief itself, to look at: what it is told, only the session tells."""
        return self._model

    @property
    def last_event(self) -> str | None:
        """Time in UTC of the last event, ISO 8601."""
        return self._folder.last_event

    def scores_of(self, target: str) -> dict[str, float]:
        """Told scores of a target by item, in the order of telling."""
        items, told = self.references.items, self._loop.scores
        by_index = told[self._target_index[target]]
        return {items[item]: score for item, score in by_index.items()}

    # For subclasses, by target and item

    def _pending(self) -> list[Pair]:
        return self._pairs(self._loop.pending)

    def _ask(self, q: int) -> list[Pair]:
        self._folder.check_writable()
        if not isinstance(q, int) or q < 1:
            raise ValueError(f"q: expected a whole number of at least 1, got {q!r}")
        with self._folder.closing_on_failure():
            pairs = self._pairs(self._loop.ask(q))
            events = self._new_updates()
            if pairs:
                events.append(self._ask_event(pairs))
            self._folder.append(events)
        return pairs

    def _tell(self, scores: Mapping[Pair, float]) -> None:
        self._folder.check_writable()
        new = self._check_scores(scores)
        self._check_for_model(new)
        with self._folder.closing_on_failure():
            self._folder.append(
                [self._tell_event(pair, score) for pair, score in new.items()]
            )
            for (target, item), score in new.items():
                self._loop.tell(self._target_index[target], self._index[item], score)
            self._folder.append(self._new_updates())

    def _skip(self, pairs: Mapping[Pair, str]) -> None:
        self._folder.check_writable()
        new: dict[Pair, str] = {}
        for pair, reason in pairs.items():
            t, i = self._known(pair)
            if i in self._loop.scores[t]:
                raise ScoreError(f"item: {self._name(pair)} was told before")
            if (t, i) not in self._loop.skipped:
                new[pair] = reason
        with self._folder.closing_on_failure():
            self._folder.append([self._skip_event(p, why) for p, why in new.items()])
            for pair, reason in new.items():
                self._reasons[self._known(pair)] = reason
                self._loop.skip(*self._known(pair))
            self._folder.append(self._new_updates())

    def _skipped(self) -> dict[Pair, str]:
        return {
            (self.targets[t], self.references.items[i]): self._reasons[t, i]
            for t, i in self._loop.skipped
        }

    # Inside

    def _known(self, pair: Pair) -> tuple[int, int]:
        """Indices of a target and an item of this session."""
        target, item = pair
        if target not in self._target_index:
            raise ScoreError(
                f"target: {target!r} is not among the targets of this session, "
                f"{some(self.targets)}"
            )
        if item not in self._index:
            raise ScoreError(
                f"item: {item!r} is not among the {len(self._index)} items of this "
                f"benchmark, such as {some(self.references.items, 3)}"
            )
        return self._target_index[target], self._index[item]

    def _name(self, pair: Pair) -> str:
        target, item = pair
        return f"{item!r} of target {target!r}" if self._named else repr(item)

    def _pairs(self, indices: Iterable[tuple[int, int]]) -> list[Pair]:
        items = self.references.items
        return [(self.targets[target], items[item]) for target, item in indices]

    def _check_scores(self, scores: Mapping[Pair, float]) -> dict[Pair, float]:
        """The scores that are new, each checked."""
        new: dict[Pair, float] = {}
        for (target, item), raw in scores.items():
            t, i = self._known((target, item))
            name = self._name((target, item))
            score = as_score(name, raw)
            known = self._loop.scores[t].get(i)
            if known is None:
                new[target, item] = score
            elif known != score:
                raise ScoreError(
                    f"item: {name} was told before with score {known!r}, now with "
                    f"{score!r}"
                )
        return new

    def _check_for_model(self, new: Mapping[Pair, float]) -> None:
        """Refuse what the model cannot take in: on disk it could not be replayed."""
        if not isinstance(self._model, SupportsScoreCheck):
            return
        for (_, item), score in new.items():
            try:
                self._model.check_score(score)
            except ValueError as error:
                raise ScoreError(f"score of {item!r}: {error}") from error

    # Events

    def _ask_event(self, pairs: Sequence[Pair]) -> Ask:
        return Ask(
            items=[item for _, item in pairs],
            targets=[target for target, _ in pairs] if self._named else None,
        )

    def _tell_event(self, pair: Pair, score: float) -> Tell:
        target, item = pair
        return Tell(item=item, target=target if self._named else None, score=score)

    def _skip_event(self, pair: Pair, reason: str) -> Skip:
        target, item = pair
        return Skip(item=item, target=target if self._named else None, reason=reason)

    def _new_updates(self) -> list[Event]:
        """Events for the hyperparameter updates that are not on disk yet."""
        if not isinstance(self._model, SupportsRefit):
            return []
        new = {n: h for n, h in self._model.updates.items() if n not in self._written}
        self._written.update(new)
        return [Update(n=n, hyperparameters=h) for n, h in new.items()]

    def _record_updates(self) -> None:
        """Write down what the first belief has learned already."""
        with self._folder.closing_on_failure():
            self._folder.append(self._new_updates())

    def _hand_back_updates(self, events: Sequence[Event]) -> None:
        updates = {e.n: e.hyperparameters for e in events if isinstance(e, Update)}
        if updates and isinstance(self._model, SupportsRefit):
            try:
                self._model.replay_updates(updates)
            except ValueError as error:
                raise StateMismatchError(
                    f"{str(self.path)!r}: the journal does not fit: {error}"
                ) from error
        self._written = set(updates)

    def _replay(self, events: Sequence[Event]) -> None:
        try:
            for event in events:
                self._replay_event(event)
        except KeyError as error:
            raise StateMismatchError(
                f"{str(self.path)!r}: the journal names {error}, which this session "
                "does not have"
            ) from error
        except ValueError as error:
            raise StateMismatchError(
                f"{str(self.path)!r}: the journal does not fit: {error}"
            ) from error

    def _replay_event(self, event: Event) -> None:
        if isinstance(event, Ask):
            targets = (
                [None] * len(event.items) if event.targets is None else event.targets
            )
            for target, item in zip(targets, event.items, strict=True):
                t, i = self._of_event(target, item)
                if i not in self._loop.scores[t]:
                    self._loop.reserve(t, i)
        elif isinstance(event, Tell):
            self._loop.tell(*self._of_event(event.target, event.item), event.score)
        elif isinstance(event, Skip):
            pair = self._of_event(event.target, event.item)
            self._reasons[pair] = event.reason
            self._loop.skip(*pair)

    def _of_event(self, target: str | None, item: str) -> tuple[int, int]:
        """Indices of what an event names."""
        if (target is not None) != self._named:
            told = "no target" if target is None else f"target {target!r}"
            raise ValueError(f"an event names {told}")
        t = 0 if target is None else self._target_index[target]
        return t, self._index[item]

"""A run that survives everything: ask, tell, resume."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout
from gpytorch.kernels import Kernel

from gp_eval.data import References
from gp_eval.data.validation import some
from gp_eval.errors import DataError, ScoreError, SessionLockedError, StateMismatchError
from gp_eval.loop import EvaluationLoop, Result, StopReason
from gp_eval.models import PerformanceModel, SupportsRefit, make_model
from gp_eval.session.checks import as_score, json_options
from gp_eval.session.config import SessionConfig
from gp_eval.session.journal import Ask, Event, Journal, Tell, Update, now
from gp_eval.session.kernel import describe_kernel, restore_kernel
from gp_eval.session.stored import check_same, read_stored, scores_only
from gp_eval.stopping import StoppingRule

__all__ = ["Session"]

_CONFIG, _EVENTS, _REFERENCES, _LOCK = (
    "session.json",
    "events.jsonl",
    "references.npz",
    ".lock",
)


class Session:
    """One target on one benchmark, in a folder that can be resumed at any moment.

    Every score is on disk before :meth:`tell` returns, every asked item before
    :meth:`ask` does. :meth:`open` replays the events, so that a killed run goes on
    with the same next item and the same numbers. One process writes at a time.

    Use :meth:`create` or :meth:`open`, not the constructor.

    Example:
        >>> session = Session.create("run/", references, target="my-model")
        >>> while not session.done:
        ...     for item in session.pending or session.ask(8):
        ...         session.tell(item, score(item))
        >>> session.estimate().mean
    """

    def __init__(
        self,
        path: Path,
        config: SessionConfig,
        references: References,
        *,
        model: PerformanceModel,
        lock: FileLock | None,
        journal: Journal,
        events: Sequence[Event],
    ) -> None:
        self.path, self.config, self.references = path, config, references
        self._lock, self._journal = lock, journal
        self._index = {item: i for i, item in enumerate(references.items)}
        self._model = model
        self._written: set[int] = set()
        self._loop = EvaluationLoop(
            self._model, references, stop=config.stop, seed=config.seed
        )
        self._replay(events)

    # Making and opening

    @classmethod
    def create(
        cls,
        path: str | Path,
        references: References,
        *,
        target: str,
        model: str = "bayesame",
        model_options: Mapping[str, Any] | None = None,
        covar_module: Kernel | None = None,
        stop: StoppingRule | None = None,
        seed: int = 0,
    ) -> Session:
        """Start a session in a new or empty folder and hold it open for writing.

        Args:
            path: The folder.
            references: Complete reference scores; a copy is kept in the folder.
            target: Name of the model to evaluate; it must not be a reference.
            model: A registered model, see :func:`~gp_eval.make_model`.
            model_options: Options of that model; JSON values only.
            covar_module: A GPyTorch kernel over reference score vectors, for models
                that take one. It is copied, and must be passed to :meth:`open` again.
            stop: When to stop; default :class:`~gp_eval.StoppingRule()`.
            seed: Fixes every random choice of the session.

        Raises:
            StateMismatchError: If the folder holds a session already.
            SessionLockedError: If another process is creating it.
            DataError: If the target is among the references.
        """
        path = Path(path).resolve()
        if target in references.models:
            raise DataError(
                f"target: {target!r} is one of the reference models; its scores would "
                "predict themselves. Remove it: references.without([target])"
            )
        _check_unused(path)
        kernel = copy.deepcopy(covar_module)
        if kernel is not None:
            kernel = kernel.double()
        config = SessionConfig(
            target=target,
            model=model,
            model_options=json_options(model_options or {}),
            covar_module=None
            if kernel is None
            else describe_kernel(kernel, references),
            stop=stop or StoppingRule(),
            seed=seed,
            items=list(references.items),
            references=references.fingerprint,
            created=now(),
            versions=SessionConfig.present_versions(),
        )
        # Everything that can be wrong with the arguments shows before a file is made.
        made = _make_model(config, references, kernel)
        path.mkdir(parents=True, exist_ok=True)
        lock = _acquire(path)
        try:
            _check_unused(path)
            journal = Journal(path / _EVENTS)
            journal.create()
            scores_only(references).write(path / _REFERENCES)
            config.write(path / _CONFIG)
            return cls(
                path,
                config,
                references,
                model=made,
                lock=lock,
                journal=journal,
                events=[],
            )
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        references: References | None = None,
        covar_module: Kernel | None = None,
        read_only: bool = False,
    ) -> Session:
        """Resume a session.

        Args:
            path: The folder.
            references: If given, they must be those of the session.
            covar_module: The kernel that :meth:`create` was given, if it was.
            read_only: Only look; works while another process writes.

        Raises:
            StateMismatchError: If the folder is damaged or does not fit the arguments.
            SessionLockedError: If another process has the session open for writing.
        """
        path = Path(path).resolve()
        config = SessionConfig.read(path / _CONFIG)
        lock = None if read_only else _acquire(path)
        try:
            stored = read_stored(path / _REFERENCES, config)
            if references is not None:
                check_same(stored, references)
            kernel = restore_kernel(config.covar_module, covar_module, stored)
            journal = Journal(path / _EVENTS)
            events = journal.read(repair=not read_only)
            return cls(
                path,
                config,
                stored,
                model=_make_model(config, stored, kernel),
                lock=lock,
                journal=journal,
                events=events,
            )
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    def close(self) -> None:
        """Let another process write. Everything is on disk already."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Asking and telling

    @property
    def done(self) -> bool:
        """Whether the run has stopped; late scores are still taken."""
        return self._loop.done

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it stopped, see :class:`~gp_eval.loop.Result`."""
        return self._loop.stop_reason

    @property
    def pending(self) -> list[str]:
        """Items asked and not told, in the order of asking."""
        return [self.references.items[i] for i in self._loop.pending]

    def ask(self, q: int = 1) -> list[str]:
        """The next ``q`` items to evaluate; fewer near the end, none once done.

        Up to the next hyperparameter update, ``ask(q)`` equals ``q`` single asks.
        After a resume, evaluate :attr:`pending` first: they are not handed out again,
        and while they use up the budget there is nothing to ask.

        Raises:
            ValueError: For ``q < 1``.
        """
        self._check_writable()
        if not isinstance(q, int) or q < 1:
            raise ValueError(f"q: expected a whole number of at least 1, got {q!r}")
        with self._closing_on_failure():
            items = [self.references.items[i] for i in self._loop.ask(q)]
            events = self._new_updates()
            if items:
                events.append(Ask(items=items))
            self._journal.append(events)
        return items

    def tell(self, item: str, score: float) -> None:
        """Record the score of one item; see :meth:`tell_all`."""
        self.tell_all({item: score})

    def tell_all(self, scores: Mapping[str, float]) -> None:
        """Record scores, asked for or not, in any order: all of them or none.

        Telling the same score again changes nothing, so a caller may repeat what it
        is not sure to have told, such as after a kill in the middle.

        Raises:
            ScoreError: For an unknown item, a score that is not a finite number, or
                an item told before with another score. Nothing is changed then.
        """
        self._check_writable()
        new = self._check_scores(scores.items())
        with self._closing_on_failure():
            self._journal.append([Tell(item=item, score=new[item]) for item in new])
            for item, score in new.items():
                self._loop.tell(self._index[item], score)
            self._journal.append(self._new_updates())

    def estimate(self) -> Result:
        """Estimate, 95 % interval, and what it rests on."""
        return self._loop.result(self.config.target, self.references.items)

    # Inside

    @contextmanager
    def _closing_on_failure(self) -> Iterator[None]:
        """Close if memory and disk may differ from here on; the disk is right."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _check_writable(self) -> None:
        if self._lock is None:
            raise SessionLockedError("this session is closed, or open read-only")

    def _check_scores(self, scores: Iterable[tuple[str, float]]) -> dict[str, float]:
        """The scores that are new, each checked."""
        new: dict[str, float] = {}
        for item, raw in scores:
            if item not in self._index:
                raise ScoreError(
                    f"item: {item!r} is not among the {len(self._index)} items of this "
                    f"benchmark, such as {some(self.references.items, 3)}"
                )
            score = as_score(item, raw)
            known = self._loop.scores.get(self._index[item])
            if known is None:
                new[item] = score
            elif known != score:
                raise ScoreError(
                    f"item: {item!r} was told before with score {known!r}, now with "
                    f"{score!r}"
                )
        return new

    def _replay(self, events: Sequence[Event]) -> None:
        updates = {e.n: e.hyperparameters for e in events if isinstance(e, Update)}
        if updates and isinstance(self._model, SupportsRefit):
            self._model.replay_updates(updates)
        self._written = set(updates)
        try:
            for event in events:
                if isinstance(event, Ask):
                    for item in event.items:
                        if self._index[item] not in self._loop.scores:
                            self._loop.reserve(self._index[item])
                elif isinstance(event, Tell):
                    self._loop.tell(self._index[event.item], event.score)
        except KeyError as error:
            raise StateMismatchError(
                f"{str(self.path)!r}: the journal names {error}, which this session "
                "does not have"
            ) from error
        except ValueError as error:
            raise StateMismatchError(
                f"{str(self.path)!r}: the journal does not fit: {error}"
            ) from error

    def _new_updates(self) -> list[Event]:
        """Events for the hyperparameter updates that are not on disk yet."""
        if not isinstance(self._model, SupportsRefit):
            return []
        new = {n: h for n, h in self._model.updates.items() if n not in self._written}
        self._written.update(new)
        return [Update(n=n, hyperparameters=h) for n, h in new.items()]


def _make_model(
    config: SessionConfig, references: References, kernel: Kernel | None
) -> PerformanceModel:
    options = dict(config.model_options)
    if kernel is not None:
        options["covar_module"] = kernel
    return make_model(config.model, references, **options)


def _check_unused(path: Path) -> None:
    """Raise if the folder holds a session, or a file that would be overwritten."""
    if (path / _CONFIG).exists():
        raise StateMismatchError(f"{str(path)!r} holds a session already: open it")
    if (path / _REFERENCES).exists() and not (path / _EVENTS).exists():
        raise StateMismatchError(
            f"{str(path / _REFERENCES)!r} is not of a session; use another folder"
        )


def _acquire(path: Path) -> FileLock:
    lock = FileLock(path / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise SessionLockedError(
            f"{str(path)!r} is open for writing in another process"
        ) from None
    return lock

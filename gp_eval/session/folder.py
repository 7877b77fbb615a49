"""The folder of a session: one writer, its settings, references and journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from filelock import FileLock, Timeout

from gp_eval.data import References
from gp_eval.errors import SessionLockedError, StateMismatchError
from gp_eval.session.config import BaseConfig
from gp_eval.session.journal import Event, Journal
from gp_eval.session.stored import check_same, read_stored, scores_only

__all__ = ["CONFIG", "SessionFolder", "check_unused"]

CONFIG = "session.json"
_EVENTS, _REFERENCES, _LOCK = "events.jsonl", "references.npz", ".lock"

Config = TypeVar("Config", bound=BaseConfig)


class SessionFolder(Generic[Config]):
    """A folder that is open, for writing if its lock is held.

    Use :meth:`create` or :meth:`open`, not the constructor.

    Attributes:
        path: The folder, absolute.
        config: The settings.
        references: The references, checked against the settings.
        last_event: Time of the last event read or written.
    """

    def __init__(
        self,
        path: Path,
        config: Config,
        references: References,
        *,
        lock: FileLock | None,
    ) -> None:
        self.path, self.config, self.references = path, config, references
        self.last_event: str | None = None
        self._lock = lock
        self._journal = Journal(path / _EVENTS)

    @classmethod
    def create(
        cls, path: Path, config: Config, references: References
    ) -> SessionFolder[Config]:
        """Make the folder of a new session, open for writing.

        Raises:
            StateMismatchError: If it holds a session already.
            SessionLockedError: If another process is creating it.
        """
        path.mkdir(parents=True, exist_ok=True)
        folder = cls(path, config, references, lock=_acquire(path))
        with folder.closing_on_failure():
            check_unused(path)
            folder._journal.create()
            scores_only(references).write(path / _REFERENCES)
            config.write(path / CONFIG)
        return folder

    @classmethod
    def open(
        cls,
        path: Path,
        kind: type[Config],
        *,
        references: References | None,
        read_only: bool,
    ) -> SessionFolder[Config]:
        """Open the folder of a session.

        Args:
            path: The folder.
            kind: What the settings must be.
            references: If given, they must be those of the session.
            read_only: Leave the lock and all files alone.

        Raises:
            StateMismatchError: If it is damaged or does not fit the arguments.
            SessionLockedError: If another process has it open for writing.
        """
        config = kind.read(path / CONFIG)
        lock = None if read_only else _acquire(path)
        try:
            stored = read_stored(path / _REFERENCES, config)
            if references is not None:
                check_same(stored, references)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        return cls(path, config, stored, lock=lock)

    def events(self) -> list[Event]:
        """All events; an unfinished last line is cut off if open for writing.

        Raises:
            StateMismatchError: If the journal is missing or damaged.
        """
        events = self._journal.read(repair=self._lock is not None)
        self._note_last(events)
        return events

    def append(self, events: list[Event]) -> None:
        """Write events so that they survive a kill from here on."""
        self._journal.append(events)
        self._note_last(events)

    def _note_last(self, events: list[Event]) -> None:
        if events:
            self.last_event = events[-1].time

    def check_writable(self) -> None:
        """Raise ``SessionLockedError`` unless the lock is held."""
        if self._lock is None:
            raise SessionLockedError("this session is closed, or open read-only")

    def close(self) -> None:
        """Let another process write."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextmanager
    def closing_on_failure(self) -> Iterator[None]:
        """Close if memory and disk may differ from here on; the disk is right."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def check_unused(path: Path) -> None:
    """Raise if the folder holds a session, or a file that would be overwritten."""
    if (path / CONFIG).exists():
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

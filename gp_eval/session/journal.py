"""The journal of a session, ``events.jsonl``: append, flush, fsync."""

from __future__ import annotations

import json
import os
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from gp_eval._files import sync_folder
from gp_eval.errors import StateMismatchError

__all__ = ["Ask", "Event", "Journal", "Skip", "Tell", "Update", "now"]


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    time: str = Field(default_factory=now)


class Ask(_Event):
    """Items that were handed out, with several targets each for one of them."""

    event: Literal["ask"] = "ask"
    items: list[str]
    targets: list[str] | None = None

    @model_validator(mode="after")
    def _check_targets(self) -> Ask:
        if self.targets is not None and len(self.targets) != len(self.items):
            raise ValueError("expected as many targets as items")
        return self


class Tell(_Event):
    """The score of one item, with several targets the score of one of them."""

    event: Literal["tell"] = "tell"
    item: str
    target: str | None = None
    score: float


class Skip(_Event):
    """An item that cannot be evaluated and stays unobserved, and why."""

    event: Literal["skip"] = "skip"
    item: str
    target: str | None = None
    reason: str = ""


class Update(_Event):
    """Hyperparameters fitted after ``n`` evaluations; spares a replay the fitting."""

    event: Literal["update"] = "update"
    n: int
    hyperparameters: dict[str, list[float]]


Event = Annotated[Ask | Tell | Skip | Update, Field(discriminator="event")]
_ADAPTER: TypeAdapter[Ask | Tell | Skip | Update] = TypeAdapter(Event)


class Journal:
    """Events of a session, one JSON object a line with a checksum.

    A line cut off at the end of the file is what a kill during a write leaves: it was
    never acknowledged, and is dropped. Any other damage is an error, so that no score
    is lost or changed unnoticed; checksums go on from line to line, so that a missing
    or repeated line shows as well.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._checksum = 0  # of the last line; each line seals all before it

    def create(self) -> None:
        """Make the empty file.

        Raises:
            StateMismatchError: If there are events already.
        """
        if self.path.exists() and self.path.stat().st_size:
            raise StateMismatchError(
                f"{str(self.path)!r} holds events of a session whose session.json is "
                "gone; restore that file or use another folder"
            )
        self.path.touch()
        sync_folder(self.path.parent)

    def append(self, events: list[Event]) -> None:
        """Write events so that they survive a kill or a power cut from here on."""
        if not events:
            return
        lines, checksum = [], self._checksum
        for event in events:
            line, checksum = _encode(event, checksum)
            lines.append(line)
        content = memoryview(b"".join(lines))
        # Not "ab", which would make a new file if somebody removed this one.
        with self.path.open("r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            try:
                while content:
                    content = content[file.write(content) :]
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(end)  # nothing half written to append to
                raise
        self._checksum = checksum

    def read(self, *, repair: bool) -> list[Event]:
        """All events.

        Args:
            repair: Cut off an unfinished last line, so that appending is safe; only
                for the one that holds the lock.

        Raises:
            StateMismatchError: For damage anywhere else, naming the line.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            raise StateMismatchError(
                f"{str(self.path)!r} is missing: the scores told are not there"
            ) from None
        complete = content.rfind(b"\n") + 1
        if repair and complete < len(content):
            with self.path.open("r+b") as file:
                file.truncate(complete)
                os.fsync(file.fileno())
        self._checksum = 0
        lines = content[:complete].split(b"\n")[:-1]
        return [self._decode(line, number + 1) for number, line in enumerate(lines)]

    def _decode(self, line: bytes, number: int) -> Event:
        try:
            payload = line[:-_SEAL] + b"}"
            self._checksum = zlib.crc32(payload, self._checksum)
            if line[-_SEAL:] != _seal(self._checksum):
                raise ValueError("its checksum does not match")
            # json, for the exact value of every float that json wrote.
            return _ADAPTER.validate_python(json.loads(payload))
        except (ValueError, ValidationError) as error:
            raise StateMismatchError(
                f"{str(self.path)!r}, line {number}: the line is damaged ({error}). "
                "Restore the file from a copy; events are never dropped silently"
            ) from error


def _seal(checksum: int) -> bytes:
    """The end of a line."""
    return b',"crc":"%08x"}' % checksum


_SEAL = len(_seal(0))


def _encode(event: Event, checksum: int) -> tuple[bytes, int]:
    """The line of an event, and its checksum, given the one of the line before."""
    # One target is not named: its lines are as they were before there were several.
    record = event.model_dump(exclude_none=True)
    text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    payload = text.encode()
    checksum = zlib.crc32(payload, checksum)
    return payload[:-1] + _seal(checksum) + b"\n", checksum

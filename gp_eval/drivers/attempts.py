"""``RUN/logs``: a numbered folder for what the tool writes about each batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from gp_eval._files import atomic_write
from gp_eval.drivers.protocol import Pair

__all__ = ["Attempts"]

_ASKED = "asked.json"


class Attempts:
    """Folders of batches, numbered in the order of their making.

    Args:
        folder: Where they are.
        settings: Digest of the driver's settings; batches of others are not taken up.
    """

    def __init__(self, folder: Path, settings: str) -> None:
        self._folder, self._settings = folder, settings

    def new(self, pairs: Sequence[Pair]) -> Path:
        """An empty folder for a batch."""
        number = max((int(p.name) for p in self._numbered()), default=0) + 1
        folder = self._folder / f"{number:05d}"
        folder.mkdir(parents=True)
        self.extend(folder, pairs)
        return folder

    def extend(self, folder: Path, pairs: Sequence[Pair]) -> None:
        """Note that the folder is of these pairs too."""
        _, known = self._asked(folder)
        record = {"settings": self._settings, "pairs": [*known, *pairs]}
        atomic_write(folder / _ASKED, json.dumps(record).encode())

    def left(self, pending: Sequence[Pair]) -> Iterator[tuple[Path, list[Pair]]]:
        """Folders that may hold scores of pending pairs, the newest first.

        Batches are told one after the other, so that none before the first without a
        pending pair has one.
        """
        waiting = set(pending)
        for folder in sorted(self._numbered(), key=lambda p: -int(p.name)):
            settings, asked = self._asked(folder)
            if asked and not waiting.intersection(asked):
                return
            if settings == self._settings:
                yield folder, [pair for pair in asked if pair in waiting]

    def _numbered(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return [p for p in self._folder.iterdir() if p.is_dir() and p.name.isdecimal()]

    def _asked(self, folder: Path) -> tuple[str | None, list[Pair]]:
        """Settings and pairs; none if the run was killed before they were there."""
        try:
            record = json.loads((folder / _ASKED).read_bytes())
        except FileNotFoundError:
            return None, []
        return record["settings"], [(target, item) for target, item in record["pairs"]]

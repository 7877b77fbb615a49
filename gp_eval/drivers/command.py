"""Any command that reads a file of items and writes a file of scores."""

from __future__ import annotations

import contextlib
import csv
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gp_eval.drivers.protocol import Outcome
from gp_eval.errors import DataError, DriverError, ScoreError
from gp_eval.readers import is_log, read_told
from gp_eval.session.checks import as_score

if TYPE_CHECKING:
    from gp_eval.drivers.rounds import Rounds
    from gp_eval.session import MultiTargetSession, Session

__all__ = ["CommandDriver", "read_lines"]

_STDERR = 2
_PLACES = ("{items}", "{scores}")
_WORDS = ("", "none", "null", "nan", "error", "failed")


class CommandDriver:
    """Runs a command for each batch.

    In its words ``{items}`` becomes a file with an item id a line, ``{scores}`` the
    file that it has to write, ``{target}`` the name of the target. The scores are lines
    ``ITEM=SCORE``, CSV with columns ``item`` and ``score``, JSON lines with these keys,
    or a log that ``tell --from`` reads. An item without a number has failed.

    Args:
        words: The command, run without a shell.
    """

    name = "command"

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        missing = [p for p in _PLACES if not any(p in word for word in self._words)]
        if missing:
            raise DriverError(
                f"command: expected {' and '.join(missing)} among its words, such as "
                f"./score.sh {{items}} {{scores}}; got {self._words}"
            )

    @property
    def settings(self) -> Mapping[str, Any]:
        """The command."""
        return {"command": self._words}

    def check(self, session: Session | MultiTargetSession) -> list[str]:
        """Raise ``DriverError`` for ids or targets that the command cannot be given."""
        self._items = session.references.items
        self._meta = session.references.meta
        broken = [item for item in self._items if "\n" in item or "\r" in item]
        if broken:
            raise DriverError(f"items: a line each cannot hold {broken[0]!r}")
        if len(session.targets) > 1 and not any("{target}" in w for w in self._words):
            raise DriverError(
                f"command: the session has the targets {session.targets}, so expected "
                "{target} among its words"
            )
        return []

    def run(self, rounds: Rounds) -> None:
        """Run the command until there is nothing to evaluate."""
        while (batch := rounds.next()) is not None:
            outcome = Outcome()
            for number, (target, items) in enumerate(batch.by_target.items()):
                # Of several targets each has a folder: a name may hold anything.
                folder = batch.folder / str(number)
                folder.mkdir()
                outcome.update(self._evaluate(folder, target, items))
            rounds.take(outcome)

    def recover(self, folder: Path, target: str, items: Sequence[str]) -> Outcome:
        """Complete lines of a command that was interrupted."""
        found = Outcome()
        for part in sorted(folder.iterdir()):
            if part.is_dir() and _target_of(part) == target:
                # What cannot be used is evaluated again: it must not stop every resume.
                with contextlib.suppress(DataError, ScoreError):
                    found.update(self._read(part, target, items, unfinished=True))
        return found

    def _evaluate(self, folder: Path, target: str, items: Sequence[str]) -> Outcome:
        (folder / "target").write_text(target, encoding="utf-8")
        text = "".join(f"{item}\n" for item in items)
        (folder / "items").write_text(text, encoding="utf-8", newline="")
        values = {
            "{items}": str(folder / "items"),
            "{scores}": str(folder / "scores"),
            "{target}": target,
        }
        code = _run([_filled(word, values) for word in self._words])
        outcome = self._read(folder, target, items, unfinished=False)
        if code:
            for item in items:
                if (target, item) not in outcome.scores:
                    why = f"the command ended with code {code}"
                    outcome.failures.setdefault((target, item), why)
        return outcome

    def _read(
        self, folder: Path, target: str, items: Sequence[str], *, unfinished: bool
    ) -> Outcome:
        path = folder / "scores"
        if not path.exists():
            return Outcome()
        if path.is_dir() or is_log(path):
            told = read_told(path, items=self._items, meta=self._meta).scores
            raw: Mapping[str, Any] = told
        else:
            raw = read_lines(path, unfinished=unfinished)
        known = set(self._items)
        strange = [item for item in raw if item not in known]
        if strange:
            raise ScoreError(
                f"{str(path)!r}: {strange[0]!r} is not among the items of this session"
            )
        outcome = Outcome()
        for item in items:
            if item in raw:
                with contextlib.suppress(*[ScoreError] * unfinished):
                    _sort_in(outcome, (target, item), raw[item])
        return outcome


def _target_of(folder: Path) -> str | None:
    try:
        return (folder / "target").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _filled(word: str, values: Mapping[str, str]) -> str:
    for place, value in values.items():
        word = word.replace(place, value)
    return word


def _run(words: Sequence[str]) -> int:
    """Run it; what it prints is no data of ours."""
    try:
        return subprocess.run(words, stdout=_STDERR, check=False).returncode
    except OSError as error:
        raise DriverError(f"command: cannot run {words[0]!r}: {error}") from error


def _sort_in(outcome: Outcome, pair: tuple[str, str], value: Any) -> None:
    """A number is a score, a word for none a failure, anything else a mistake."""
    if value is None or str(value).strip().lower() in _WORDS:
        outcome.failures[pair] = f"the command gave {value!r} for a score"
        return
    try:
        number: Any = float(value)
    except (TypeError, ValueError):
        number = value
    outcome.scores[pair] = as_score(repr(pair[1]), number)


def read_lines(path: Path, *, unfinished: bool) -> dict[str, Any]:
    """Scores as they were written, by item; the last one counts.

    Args:
        path: Lines ``ITEM=SCORE``, CSV with a header, or JSON lines.
        unfinished: Leave out a last line without end, and lines that cannot be read.

    Raises:
        ScoreError: For lines of no such form.
    """
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        if unfinished:
            return {}
        raise ScoreError(f"{str(path)!r}: {error}") from error
    lines = text.split("\n")
    last = lines.pop()
    if last and not unfinished:
        lines.append(last)
    lines = [line for line in lines if line.strip()]
    try:
        return dict(_parsed(lines))
    except (ValueError, KeyError, TypeError, DataError) as error:
        if unfinished:
            return {}
        raise ScoreError(
            f"{str(path)!r}: expected lines ITEM=SCORE, CSV with the columns item and "
            f'score, or lines {{"item": ..., "score": ...}}: {error!r}'
        ) from error


def _parsed(lines: Sequence[str]) -> Iterable[tuple[str, Any]]:
    if not lines:
        return
    if lines[0].lstrip().startswith("{"):
        for line in lines:
            record = json.loads(line)
            yield str(record["item"]), record["score"]
        return
    rows = csv.DictReader(lines)
    if {"item", "score"} <= set(rows.fieldnames or ()):
        yield from ((row["item"], row["score"]) for row in rows)
        return
    for line in lines:
        item, sign, score = line.rstrip("\r").rpartition("=")
        if not sign or not item:
            raise ValueError(f"not ITEM=SCORE: {line!r}")
        yield item, score

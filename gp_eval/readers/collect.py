"""From files and folders to logs, one after the other."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gp_eval._names import some
from gp_eval.errors import DataError
from gp_eval.readers import limits
from gp_eval.readers.detect import FORMATS, detect, expect_format
from gp_eval.readers.records import SCORED, Log, Options

__all__ = ["Collection", "find_files", "read_logs"]

_READERS = {
    "lm-eval": ("lm_eval", "read_lm_eval"),
    "inspect": ("inspect_logs", "read_inspect"),
    "lighteval": ("lighteval", "read_lighteval"),
    "helm": ("helm", "read_helm"),
    "eee": ("every_eval_ever", "read_every_eval_ever"),
    "csv": ("score_tables", "read_table"),
    "proeval": ("score_tables", "read_proeval"),
    "jbl": ("pickles", "read_joblib"),
    "lb-pickle": ("pickles", "read_leaderboard_pickle"),
}
_PICKLED = ("jbl", "lb-pickle")
_WITH_LOGLIKS = ("lm-eval", "lighteval", "csv")


@dataclass
class Collection:
    """What was read.

    Args:
        logs: One for each file of a known format.
        other_files: Files below given folders that are no logs.
        pickles: Pickle files below given folders, left out without ``allow_pickle``.
    """

    logs: list[Log] = field(default_factory=list)
    other_files: list[Path] = field(default_factory=list)
    pickles: list[Path] = field(default_factory=list)

    @property
    def notes(self) -> Counter[str]:
        """Counts of all logs together, zeros left out."""
        total: Counter[str] = Counter()
        for log in self.logs:
            total.update(log.notes)
        return +total

    @property
    def formats(self) -> dict[str, int]:
        """Files by format."""
        return dict(sorted(Counter(log.format for log in self.logs).items()))


def find_files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Files with whether they were named themselves; folders in sorted order.

    Links to folders are not followed, so no walk leaves the folder or goes in circles.

    Raises:
        DataError: For a path that is not there, or too many files.
    """
    seen: set[Path] = set()
    for path in paths:
        if path.is_file():
            found: Iterator[Path] = iter([path])
        elif path.is_dir():
            found = (
                Path(folder) / name
                for folder, folders, names in os.walk(path)
                if folders.sort() is None
                for name in sorted(names)
                if not name.startswith(".")
            )
        else:
            raise DataError(f"no such file or folder: {str(path)!r}")
        for file in found:
            if file.resolve() not in seen and file.is_file():
                seen.add(file.resolve())
                if len(seen) > limits.MAX_FILES:
                    raise DataError(f"more than {limits.MAX_FILES} files: refused")
                yield file, path.is_file()


def read_logs(
    paths: Sequence[Path],
    *,
    format: str = "auto",
    options: Options | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Collection:
    """Read files and everything below folders.

    Args:
        paths: Files and folders. A file named itself must be a log; in folders other
            files are counted and passed over.
        format: One of ``FORMATS``, or ``"auto"``.
        options: What to read of them.
        progress: Called after each file with the bytes read and their total.

    Raises:
        DataError: For a log that is damaged or refused; nothing is returned then.
    """
    if format not in ("auto", *FORMATS):
        raise DataError(f"format: expected auto or one of {FORMATS}, got {format!r}")
    options = options or Options()
    files = list(find_files(paths))
    displayed = {f.parent for f, _ in files if f.name == "per_instance_stats.json"}
    total, done = sum(file.stat().st_size for file, _ in files), 0
    result = Collection()
    for file, is_named in files:
        twin = file.name == "display_predictions.json" and file.parent in displayed
        if twin and not is_named:
            result.other_files.append(file)
        else:
            _read_one(file, is_named, format, options, result)
        done += file.stat().st_size
        if progress is not None:
            progress(done, total)
    if not result.logs:
        raise DataError(
            f"no log among {len(files)} files"
            + (f", such as {some([f.name for f, _ in files], 3)}" if files else "")
            + (
                "; pickles are read with --allow-pickle only"
                if result.pickles
                else f"; known formats: {', '.join(FORMATS)}"
            )
        )
    return result


def _read_one(
    file: Path, is_named: bool, format: str, options: Options, result: Collection
) -> None:
    if is_named:
        found: str | None = expect_format(file, format)
    else:
        found = detect(file)
        if format != "auto" and found != format:
            found = None
    if found is None:
        result.other_files.append(file)
    elif found in _PICKLED and not options.allow_pickle and not is_named:
        result.pickles.append(file)
    else:
        result.logs.append(_read(file, found, options))


def _read(file: Path, format: str, options: Options) -> Log:
    wants_gold = options.value == "gold-prob"
    if wants_gold and format not in _WITH_LOGLIKS:
        raise DataError(
            f"{str(file)!r}: {format} logs hold no log-likelihoods of the choices, so "
            "there is no probability of the right one"
        )
    module, name = _READERS[format]
    reader: Any = getattr(importlib.import_module(f"gp_eval.readers.{module}"), name)
    log: Log = reader(file, options)
    if wants_gold:
        for block in [b for b in log.blocks if (b.states != SCORED).all()]:
            log.blocks.remove(block)
            log.refused[block.metric] = (
                "no row has log-likelihoods of several choices and tells the right one"
            )
    return log

"""``RUN/driver.json``: what a session was driven with, so that it stays the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gp_eval._files import atomic_write
from gp_eval.errors import StateMismatchError

__all__ = ["check_settings", "digest", "flags_of", "write_settings"]

_FILE = "driver.json"


def flags_of(
    arguments: Sequence[str], *, harmless: Sequence[str] = ()
) -> dict[str, Any]:
    """Words by the flag before them; those before any flag come under ``""``.

    Args:
        arguments: A tool's command line.
        harmless: Flags, as written, that may change between runs.
    """
    found: dict[str, list[str]] = {}
    flag = ""
    for word in arguments:
        if word.startswith("--") or (word.startswith("-") and word[1:2].isalpha()):
            flag, sign, value = word.partition("=")
            found.setdefault(flag, []).extend([value] if sign else [])
        else:
            found.setdefault(flag, []).append(word)
    return {flag: words for flag, words in found.items() if flag not in harmless}


def digest(driver: str, settings: Mapping[str, Any]) -> str:
    """The same for the same settings."""
    text = json.dumps([driver, settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def check_settings(run: Path, driver: str, settings: Mapping[str, Any]) -> None:
    """Compare with what the session was driven with before.

    Raises:
        StateMismatchError: For a difference, with both sides.
    """
    try:
        known = json.loads((run / _FILE).read_bytes())
    except FileNotFoundError:
        return
    except ValueError as error:
        raise StateMismatchError(f"{str(run / _FILE)!r} is damaged: {error}") from error
    before = {"driver": known["driver"], **known["settings"]}
    now = {"driver": driver, **settings}
    differing = [
        f"{name or 'arguments'}: was {before.get(name)!r}, is {now.get(name)!r}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if differing:
        raise StateMismatchError(
            f"{str(run)!r} was driven with other settings: {'; '.join(differing)}. "
            "Scores of different models must not be mixed; --accept-changes goes on "
            "if these are the same"
        )


def write_settings(run: Path, driver: str, settings: Mapping[str, Any]) -> None:
    """Keep them for the next time."""
    record = {"driver": driver, "settings": dict(settings)}
    atomic_write(run / _FILE, json.dumps(record, indent=2).encode())

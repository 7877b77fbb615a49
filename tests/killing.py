"""What the tests of killed sessions share: mortal processes, cut journals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sessions import contents, journal

__all__ = ["MORTAL", "boundaries", "copy_with_journal", "start", "told_by"]

MORTAL = '''
"""Dies at the file sync of the given number."""

import os
import signal
import sys
import time
from pathlib import Path

folder, n_items = Path(sys.argv[1]), int(sys.argv[2])
death, number = sys.argv[3], int(sys.argv[4])
fsync, count = os.fsync, 0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def mortal_fsync(descriptor: int) -> None:
    global count
    count += 1
    if count == number and death == "before":
        die()
    if count == number and death == "torn":
        journal = folder / "events.jsonl"
        os.truncate(journal, journal.stat().st_size - 9)
        die()
    fsync(descriptor)
    if count == number and death == "after":
        die()


os.fsync = mortal_fsync
'''
"""Beginning of a script whose arguments are folder, number of items, death, number."""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that finds the modules this one does."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def told_by(process: subprocess.Popen[str]) -> list[str]:
    """What the process told, as printed after each tell had returned."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    process.stdout.close()
    process.wait(timeout=120)
    return [line.removeprefix("told ") for line in lines if line.startswith("told ")]


def copy_with_journal(folder: Path, to: Path, content: bytes) -> Path:
    """A copy of a session with another journal."""
    to.mkdir(exist_ok=True)
    for name, old in contents(folder).items():
        (to / name).write_bytes(old)
    journal(to).write_bytes(content)
    return to


def boundaries(content: bytes) -> list[int]:
    """Length of every prefix that ends with a whole line, the empty one first."""
    return [0] + [k + 1 for k, byte in enumerate(content) if byte == ord("\n")]

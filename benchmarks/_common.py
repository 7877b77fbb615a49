"""What every benchmark prints beside its figures."""

from __future__ import annotations

import json
import os
import platform
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from gp_eval.data import References

SHARED = Path(
    os.environ.get("GP_EVAL_SHARED", Path(__file__).parents[1] / ".." / "shared")
)


def environment() -> dict[str, Any]:
    """Machine, threads and versions."""
    names = ("gp-eval", "torch", "gpytorch", "botorch", "numpy", "scipy")
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "device": "cpu",
        "versions": {name: version(name) for name in names},
    }


def emit(**figures: Any) -> None:
    """One JSON object on stdout."""
    print(json.dumps({**figures, **environment()}), flush=True)


def shared_references(name: str) -> References:
    """A real score matrix from the shared folder."""
    path = SHARED / "data" / f"{name}.npz"
    if not path.is_file():
        raise SystemExit(f"no {path}: set GP_EVAL_SHARED to the shared folder")
    return References.read(path, missing="drop-models", duplicate_models="number")


def peak_mb() -> float:
    """Peak resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Stopwatch:
    """CPU seconds by name, added up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.process_time()
        try:
            yield
        finally:
            spent = time.process_time() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent


def one_thread() -> None:
    """Benchmarks are of one thread: two busy ones on few cores only spin."""
    if os.environ.get("OMP_NUM_THREADS") != "1":
        raise SystemExit("run with OMP_NUM_THREADS=1")
    torch.set_num_threads(1)

"""What the tests of sessions share: small problems, a driver, looks at the folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel

from gp_eval import References, Result, Session, StoppingRule
from gp_eval.session.journal import Ask, Journal, Tell, Update

Event = Ask | Tell | Update

NEVER = StoppingRule(width=1e-9, stable=1e-9, window=5)
"""Stops at the end only."""


def _difficulty(i: int) -> float:
    return 4.0 * (i * 0.618033988749895 % 1.0) - 2.0


def unique_references(
    n_items: int = 24, n_models: int = 6, *, weighted: bool = False
) -> References:
    """Every item a bucket of its own: items are selected by information gain."""
    generator = np.random.default_rng(7)
    ability = np.linspace(-1.5, 2.0, n_models)
    logits = ability - np.array([[_difficulty(i)] for i in range(n_items)])
    noise = generator.normal(scale=0.05, size=logits.shape)
    weights = generator.random(n_items) + 0.1 if weighted else None
    return References(
        1.0 / (1.0 + np.exp(-logits)) + noise,
        [f"q{i}" for i in range(n_items)],
        [f"m{k}" for k in range(n_models)],
        item_weights=weights,
    )


def grouped_references(n_items: int = 24) -> References:
    """Four buckets: items are selected at random."""
    scores = [[i % 2, (i // 2) % 2, 1.0] for i in range(n_items)]
    items = [f"q{i}" for i in range(n_items)]
    return References(scores, items, ["m0", "m1", "m2"])


def score_of(item: str) -> float:
    """The score of the target on an item, the same in every process."""
    i = int(item[1:])
    d = _difficulty(i)
    clean = 1.0 / (1.0 + math.exp(d - 0.4))
    return round(clean + 0.15 * math.sin(3.0 * d) + 0.05 * math.sin(7.0 * i), 3)


def create(
    path: Path,
    references: References | None = None,
    *,
    refit_every: int | None = 7,
    stop: StoppingRule = NEVER,
    **options: Any,
) -> Session:
    """A session with frequent hyperparameter updates."""
    return Session.create(
        path,
        references or unique_references(),
        target="target",
        model_options={"refit_every": refit_every},
        stop=stop,
        **options,
    )


def evaluate(session: Session, n: int, *, q: int = 1) -> list[str]:
    """Ask for ``n`` items, ``q`` at a time, and tell their scores; their ids."""
    items: list[str] = []
    while len(items) < n:
        asked = session.ask(min(q, n - len(items)))
        assert asked, "nothing left to ask"
        for item in asked:
            session.tell(item, score_of(item))
        items += asked
    return items


def finish(session: Session, *, q: int = 1) -> Result:
    """Evaluate what is pending, then go on until done."""
    for item in session.pending:
        session.tell(item, score_of(item))
    while not session.done:
        for item in session.ask(q):
            session.tell(item, score_of(item))
    return session.estimate()


def resume(path: Path, *, covar_module: Kernel | None = None) -> Result:
    """Open, look, close."""
    with Session.open(path, covar_module=covar_module) as session:
        return session.estimate()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, byte by byte."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def journal(folder: Path) -> Path:
    return folder / "events.jsonl"


def events_of(folder: Path) -> list[Event]:
    return Journal(journal(folder)).read(repair=False)


def keep_events(folder: Path, keep: Callable[[Event], bool]) -> None:
    """Write the journal anew, with some of its events only."""
    kept = [event for event in events_of(folder) if keep(event)]
    journal(folder).write_bytes(b"")
    Journal(journal(folder)).append(kept)

"""What the tests of reports share: small sessions with groups, names that attack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from sessions import NEVER, score_of, unique_references

from gp_eval import References, Session

HOSTILE = (
    "<script>alert(1)</script>\"'&]]><img src=x onerror=alert(2)>"
    "|`*_[x](http://evil.example){{7*7}}\u202e$x^{$\n"
)
"""What a name may try on a page, in Markdown and in a picture."""


def with_groups(
    references: References, names: tuple[str, ...] = ("law", "physics", "art")
) -> References:
    """The same references with items dealt to groups in turn."""
    return References(
        references.scores,
        references.items,
        references.models,
        item_weights=references.item_weights if references.is_weighted else None,
        groups=[names[i % len(names)] for i in range(len(references.items))],
        meta={"metric": "acc", "task": "arc"},
    )


def session(
    path: Path,
    *,
    n: int = 9,
    references: References | None = None,
    model: str = "bayesame",
    **options: Any,
) -> Session:
    """A session of one target with ``n`` scores; kernels stay as they begin."""
    usual = {"target": "my/model", "stop": NEVER}
    if model.startswith("bayesame"):
        usual["model_options"] = {"refit_every": None}
    made = Session.create(
        path,
        references or with_groups(unique_references()),
        model=model,
        **usual | options,
    )
    for _ in range(n):
        item = made.ask()[0]
        made.tell(item, score_of(item))
    return made


def hostile_references(n_items: int = 24) -> References:
    """Every name of the table tries to get out of its place."""
    plain = unique_references(n_items)
    return References(
        plain.scores,
        [f"{HOSTILE}i{i}" for i in range(n_items)],
        [f"{HOSTILE}m{k}" for k in range(len(plain.models))],
        groups=[f"{HOSTILE}g{i % 3}" for i in range(n_items)],
        meta={HOSTILE: HOSTILE},
    )


def tell_all(made: Session, n: int) -> None:
    """Evaluate items whose names say nothing."""
    index = {item: i for i, item in enumerate(made.references.items)}
    means = made.references.scores.mean(1).tolist()
    for item in made.ask(n):
        made.tell(item, round(means[index[item]] + 0.05 * (index[item] % 3), 3))


def all_scores(references: References) -> torch.Tensor:
    """The scores of the target on all items, shape ``N``."""
    return torch.tensor([score_of(i) for i in references.items], dtype=torch.float64)

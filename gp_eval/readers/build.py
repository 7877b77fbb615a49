"""From logs to a table of reference scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gp_eval._names import some
from gp_eval.errors import DataError
from gp_eval.readers.choose import Choice, choose
from gp_eval.readers.collect import Collection
from gp_eval.readers.digests import check_hashes, common_prompts
from gp_eval.readers.identity import item_name, natural_key
from gp_eval.readers.policies import Policies
from gp_eval.readers.records import Block
from gp_eval.readers.scores import LongTable, long_table, settle

if TYPE_CHECKING:
    from gp_eval.data import References

__all__ = ["Built", "build_references", "check_subset"]


@dataclass
class Built:
    """A table of reference scores and how it came about.

    Args:
        scores: ``N x K`` float64, NaN where missing.
        items: ``N`` ids, in natural order.
        models: ``K`` names, sorted.
        groups: ``N`` groups (the task, where there are several), or None.
        item_weights: ``N`` weights, or None.
        meta: Provenance, for ``References.meta``.
        counts: What every policy did.
    """

    scores: np.ndarray
    items: list[str]
    models: list[str]
    groups: list[str] | None
    item_weights: list[float] | None
    meta: dict[str, Any]
    counts: dict[str, Any]

    def references(self) -> References:
        """As :class:`~gp_eval.References`; missing cells are kept."""
        from gp_eval.data import References

        return References(
            self.scores,
            self.items,
            self.models,
            item_weights=self.item_weights,
            groups=self.groups,
            meta=self.meta,
            missing="keep",
        )


def build_references(
    collection: Collection,
    *,
    tasks: Sequence[str] = (),
    metric: str | None = None,
    filter: str | None = None,
    policies: Policies | None = None,
) -> Built:
    """Align scores by the ids of the items, whatever the order of rows and files.

    Raises:
        DataError: For a choice that is left, or what a policy does not allow.
    """
    policies = policies or Policies()
    choice = choose(collection.logs, tasks=tasks, metric=metric, filter=filter)
    _check_direction(choice, policies)
    table = long_table(choice)
    _check_subsets(choice, table)
    counts: dict[str, Any] = {"records": len(table.frame)}
    hashes = check_hashes(table, policies.hashes, counts)
    prompts = common_prompts(table)
    settled = settle(table, policies, counts)
    if settled.empty:
        raise DataError("on_error: nothing is left after skipping failed items")
    scores = np.full((len(table.items), len(table.models)), np.nan)
    scores[settled["item"], settled["model"]] = settled["score"]
    counts["partial_runs"] = _partial_runs(choice, table, scores)
    order = sorted(
        range(len(table.items)), key=lambda i: _order(choice, table.items[i])
    )
    scores = scores[order]
    items = [table.items[i] for i in order]
    scores, kept, models = _settle_gaps(scores, items, table.models, policies, counts)
    return Built(
        scores=scores,
        items=kept,
        models=models,
        groups=_of_items(choice, kept, "groups"),
        item_weights=_of_items(choice, kept, "weights"),
        meta={
            **_meta(choice, collection, policies, models),
            "items_left_out": sorted(set(items) - set(kept), key=natural_key),
            "item_hashes": {i: f"{hashes[i]:016x}" for i in kept if i in hashes},
            "prompt_hashes": {i: f"{prompts[i]:016x}" for i in kept if i in prompts},
        },
        counts=counts,
    )


def _order(choice: Choice, item: str) -> tuple[Any, ...]:
    if len(choice.tasks) == 1:
        return natural_key(item)
    task, _, rest = item.rpartition("/")
    return task, natural_key(rest)


def _check_direction(choice: Choice, policies: Policies) -> None:
    lower = [b.task for b in choice.blocks if b.higher_is_better is False]
    if lower and policies.lower_is_better is None:
        raise DataError(
            f"{choice.metric!r}: the logs say that lower is better: give "
            "--lower-is-better to turn scores over or --higher-is-better to keep them"
        )


def _check_subsets(choice: Choice, table: LongTable) -> None:
    """A partial lm-eval file out of order may bear wrong ids (its issue 4084)."""
    full: dict[str, set[str]] = {}
    for block in choice.blocks:
        full.setdefault(block.task, set()).update(block.items)
    for block in choice.blocks:
        check_subset(block, len(full[block.task]))


def check_subset(block: Block, n: int) -> None:
    """Refuse a block out of order that holds fewer than the ``n`` items."""
    if not block.ascending and len(set(block.items)) < n:
        raise DataError(
            f"{block.source!r}: holds some of the items, and not in rising order: "
            "lm-eval writes wrong ids for a --samples list that is not sorted (its "
            "issue 4084)"
        )


def _partial_runs(
    choice: Choice, table: LongTable, scores: np.ndarray
) -> dict[str, str]:
    """Models without all items, with how many they have."""
    sizes = {b.task: b.full_size for b in choice.blocks if b.full_size is not None}
    known = sum(sizes.values()) if set(sizes) == set(choice.tasks) else 0
    n = max(known, len(table.items))
    have = (~np.isnan(scores)).sum(0)
    return {
        model: f"{count} of {n}"
        for model, count in zip(table.models, have.tolist(), strict=True)
        if count < n
    }


def _settle_gaps(
    scores: np.ndarray,
    items: list[str],
    models: list[str],
    policies: Policies,
    counts: dict[str, Any],
) -> tuple[np.ndarray, list[str], list[str]]:
    """Missing cells by the policies; items that no model has go first."""
    here = ~np.isnan(scores)
    scored = here.any(1)
    keep_models = here[scored].mean(0) >= policies.min_coverage
    keep_models &= here.any(0)
    counts["models_dropped"] = [
        m for m, k in zip(models, keep_models, strict=True) if not k
    ]
    here = here[:, keep_models]
    keep_items = here.any(1)
    counts["items_without_score"] = int((~keep_items).sum())
    here = here[keep_items]
    gaps = int((~here).sum())
    counts["missing_cells"], counts["missing"] = gaps, policies.missing
    if gaps and policies.missing == "error":
        raise DataError(_gap_message(here, models, keep_models))
    rows, columns = np.flatnonzero(keep_items), np.flatnonzero(keep_models)
    if policies.missing == "drop-items":
        rows = rows[here.all(1)]
    elif policies.missing == "drop-models":
        columns = columns[here.all(0)]
    counts["items_dropped"] = int(keep_items.sum()) - len(rows)
    kept = set(columns.tolist())
    counts["models_dropped"] = [m for k, m in enumerate(models) if k not in kept]
    if not len(rows) or not len(columns):
        raise DataError(
            f"missing={policies.missing!r}, min_coverage={policies.min_coverage}: no "
            "item or no model is left"
        )
    counts["items"], counts["models"] = len(rows), len(columns)
    return (
        scores[np.ix_(rows, columns)],
        [items[i] for i in rows],
        [models[k] for k in columns],
    )


def _gap_message(here: np.ndarray, models: list[str], kept: np.ndarray) -> str:
    names = [m for m, k in zip(models, kept, strict=True) if k]
    short = [
        f"{name}: {count} of {len(here)}"
        for name, count in zip(names, here.sum(0).tolist(), strict=True)
        if count < len(here)
    ]
    return (
        f"{int((~here).sum())} missing cells; models without all items: {some(short)}. "
        "Choose --missing drop-items (the items all have), drop-models or keep; "
        "--min-coverage 0.98 leaves out models with fewer"
    )


def _of_items(choice: Choice, items: list[str], attribute: str) -> list[Any] | None:
    """Groups or weights of items; the task is the group where there are several."""
    several = len(choice.tasks) > 1
    values: dict[str, Any] = {}
    for block in choice.blocks:
        given = getattr(block, attribute)
        if attribute == "groups" and several:
            given = [block.task] * len(block.items)
        if given is None:
            continue
        for item, value in zip(block.items, given, strict=True):
            name = item_name(block.task, item, several=several)
            if values.setdefault(name, value) != value:
                raise DataError(
                    f"{attribute}: {name!r} has both {values[name]!r} and {value!r}"
                )
    if not values:
        return None
    lacking = [item for item in items if item not in values]
    if lacking:
        raise DataError(f"{attribute}: given for some items, not for {some(lacking)}")
    return [values[item] for item in items]


def _meta(
    choice: Choice,
    collection: Collection,
    policies: Policies,
    models: list[str],
) -> dict[str, Any]:
    settings: dict[str, dict[str, Any]] = {}
    for block in choice.blocks:
        if block.model in models:
            own = settings.setdefault(block.model, {})
            for name, value in block.settings.items():
                own.setdefault(name, value)
    return {
        "source": "logs",
        "formats": collection.formats,
        "tasks": [task for task in choice.tasks if task],
        "task": (choice.tasks[0] or None) if len(choice.tasks) == 1 else None,
        "metric": choice.metric,
        "filters": choice.filters,
        "lower_is_better": policies.lower_is_better,
        "scale": list(policies.scale)
        if isinstance(policies.scale, tuple)
        else policies.scale,
        "models": settings,
    }

"""Findings about items and about the table as a whole, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from gp_eval._names import some
from gp_eval.diagnosis.case import Case
from gp_eval.diagnosis.findings import Finding
from gp_eval.diagnosis.items import discrimination, unanimous
from gp_eval.diagnosis.table import agreement_p_value, reliability

__all__ = ["RELIABLE", "table_findings"]

RELIABLE = 0.7
"""Reliability of item means that is asked for: the usual floor (Nunnally)."""
_NO_ORDER = 0.05
"""Mean correlation of two models below which there is no order to speak of."""


def table_findings(case: Case) -> Iterator[Finding]:
    """No common order, too few references, gaps, and items to look at."""
    yield from _no_agreement(case)
    yield from _few(case)
    yield from _gaps(case)
    yield from _miskeyed(case)
    yield from _unanimous(case)


def _no_agreement(case: Case) -> Iterator[Finding]:
    """No order, and not for want of data: Feldt's upper bound of the reliability."""
    from scipy.stats import f

    table = case.sound
    n_items, n_models = table.scores.shape
    p = agreement_p_value(table)
    alpha = reliability(table)
    if not p > case.level or math.isnan(alpha):
        return
    degrees = (n_items - 1, (n_items - 1) * (n_models - 1))
    bound = 1.0 - (1.0 - alpha) * float(f.ppf(case.level, *degrees))
    single = max(bound, 0.0) / (n_models - (n_models - 1) * max(bound, 0.0))
    if single < _NO_ORDER:
        yield Finding(
            kind="no-agreement",
            severity="error",
            text=(
                f"The references do not agree on which items are hard: the reliability "
                f"of the item means is {alpha:.2f}, no more than chance (p = {p:.2g})"
            ),
            advice=(
                "Align the items by id. If they are aligned, these references tell "
                "nothing about this benchmark: use random sampling (rs-mean)."
            ),
            evidence={"reliability": alpha, "p_value": p, "correlation_below": single},
        )


def _few(case: Case) -> Iterator[Finding]:
    count, alpha = len(case.agreeing), case.reliability
    if count > 2 and alpha is not None and alpha >= RELIABLE:
        return
    needed = None
    if alpha is not None and 0.0 < alpha < RELIABLE and count > 1:
        odds = RELIABLE / (1.0 - RELIABLE)
        needed = math.ceil(count * odds * (1.0 - alpha) / alpha)
    unknown = alpha is None or count <= 2
    yield Finding(
        kind="few-references",
        severity="warning",
        text=f"{count} different references in order: "
        + (
            "too few to check one against the others"
            if unknown
            else f"which items are hard is uncertain, reliability {alpha:.2f}"
        ),
        advice=(
            f"Add references: about {needed} of this kind give {RELIABLE}."
            if needed and needed > count
            else "Add references."
        ),
        evidence={"references": count, "reliability": alpha, "needed": needed},
    )


def _gaps(case: Case) -> Iterator[Finding]:
    gaps = ~case.table.present
    if not gaps.any():
        return
    by_model = {case.models[k]: int(gaps[:, k].sum()) for k in range(len(case.models))}
    partial = {name: count for name, count in by_model.items() if count}
    complete = int((~gaps.any(1)).sum())
    yield Finding(
        kind="missing-cells",
        severity="warning",
        text=(
            f"{int(gaps.sum())} missing cells ({gaps.mean():.1%}), in "
            f"{len(partial)} of {len(case.models)} models"
        ),
        advice=(
            f"Choose with --missing: drop-items leaves {complete} of "
            f"{len(case.items)} items, drop-models leaves "
            f"{len(case.models) - len(partial)} of {len(case.models)} models, mean "
            "fills in."
        ),
        models=tuple(partial),
        evidence={
            "cells": int(gaps.sum()),
            "share": float(gaps.mean()),
            "complete_items": complete,
            "complete_models": len(case.models) - len(partial),
            "by_model": partial,
        },
    )


def _miskeyed(case: Case) -> Iterator[Finding]:
    found = discrimination(case.sound, level=case.level)
    r = found.correlations.r
    suspects = sorted(np.flatnonzero(found.miskeyed).tolist(), key=lambda i: r[i])
    names = tuple(case.items[i] for i in suspects)
    if suspects:
        yield Finding(
            kind="miskeyed-items",
            severity="warning",
            text=(
                f"{_items(len(names))} ({some(names)}) that stronger models get wrong "
                "and weaker ones right: correlation with the rest "
                f"{r[suspects[0]]:.2f} to {r[suspects[-1]]:.2f}, median of all items "
                f"{np.nanmedian(r):.2f}"
            ),
            advice=(
                "Look at their answer key and scorer. Leaving them out changes what "
                "the benchmark score means, and is done on request only."
            ),
            items=names,
            drop_items=names,
            evidence={"correlation": {case.items[i]: float(r[i]) for i in suspects}},
        )
    others = [i for i in np.flatnonzero(found.reversed) if not found.miskeyed[i]]
    others.sort(key=lambda i: r[i])
    names = tuple(case.items[i] for i in others)
    if others:
        yield Finding(
            kind="reversed-items",
            severity="note",
            text=(
                f"{_items(len(names))} ({some(names)}) that stronger models get wrong "
                "more often, but not far from what other items here show (median "
                f"correlation with the rest {np.nanmedian(r):.2f})"
            ),
            advice="Nothing, unless their answer keys turn out to be wrong.",
            items=names,
            evidence={"correlation": {case.items[i]: float(r[i]) for i in others}},
        )


def _unanimous(case: Case) -> Iterator[Finding]:
    if not case.agreeing:
        return
    flags, value = unanimous(case.sound)
    places = np.flatnonzero(flags)
    if not len(places):
        return
    high, low = (int((value[places] == end).sum()) for end in (1.0, 0.0))
    yield Finding(
        kind="unanimous-items",
        severity="note",
        text=(
            f"{_items(len(places))} on which all references in order scored the same "
            f"({high} the best score, {low} the worst)"
        ),
        advice=(
            "Nothing: they are harmless, and tell nothing apart. They count in the "
            "benchmark score like all others."
        ),
        items=tuple(case.items[i] for i in places),
        evidence={"count": len(places), "at_best": high, "at_worst": low},
    )


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count} items"

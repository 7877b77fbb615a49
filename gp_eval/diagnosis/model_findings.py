"""Findings about models, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gp_eval._names import some
from gp_eval.diagnosis import duplicates
from gp_eval.diagnosis.blocks import relation
from gp_eval.diagnosis.case import Case
from gp_eval.diagnosis.findings import Finding, Severity

__all__ = ["model_findings"]


def model_findings(case: Case) -> Iterator[Finding]:
    """Models to leave out, and models to know about."""
    yield from _empty(case)
    yield from _constant(case)
    yield from _other_blocks(case)
    yield from _anticorrelated(case)
    yield from _unrelated(case)
    yield from _distant(case)
    copies = duplicates.finding(case)
    if copies is not None:
        yield copies


def _empty(case: Case) -> Iterator[Finding]:
    present = case.table.present.any(0)
    empty = [int(k) for k in np.flatnonzero(~present)]
    if empty:
        yield Finding(
            kind="empty-models",
            severity="error",
            text=_models(case, empty, "has no score", "have no score"),
            advice="Leave them out, or find out why nothing was read.",
            models=case.names(empty),
            drop_models=case.to_drop(empty),
        )


def _constant(case: Case) -> Iterator[Finding]:
    """Constant scores: an error unless so weak or so strong a model is plausible."""
    faults: dict[Severity, list[int]] = {"error": [], "warning": []}
    values = {}
    for k in case.constant:
        scores = case.table.scores[case.table.present[:, k], k]
        if len(scores):
            values[case.models[k]] = case.score(float(scores[0]))
            plausible = _plausible(case, float(scores[0]), len(scores))
            faults["warning" if plausible else "error"].append(k)
    for severity, models in faults.items():
        if models:
            names = case.names(models)
            yield Finding(
                kind="constant-models",
                severity=severity,
                text=_models(case, models, "has", "have")
                + " one and the same score on all items"
                + (
                    ", as a very weak or very strong model might"
                    if severity == "warning"
                    else ""
                ),
                advice=(
                    "Leave them out: they tell nothing about items. A failed run, or "
                    "answers that were not understood, look like this."
                ),
                models=names,
                drop_models=case.to_drop(models),
                evidence={"score": {name: values[name] for name in names}},
            )


def _plausible(case: Case, value: float, n: int) -> bool:
    """Whether one more such model might get the same score ``n`` times.

    For the best or worst score of the table, the means of the sound models are taken
    for normal on the logit scale; with ``m`` at the end of their prediction interval
    the probability is ``m^n``. It is ``2^-n`` for any other score, and where there are
    no two models to predict from.
    """
    from scipy.special import expit, logit
    from scipy.stats import t

    count, share = len(case.agreeing), 0.5
    if count > 1 and value in (0.0, 1.0):
        logits = logit(np.clip(case.table.levels[case.agreeing], 1e-6, 1.0 - 1e-6))
        reach = t.isf(case.level / len(case.models), count - 1)
        reach *= logits.std(ddof=1) * np.sqrt(1.0 + 1.0 / count)
        centre = float(logits.mean())
        share = float(expit((centre if value else -centre) + reach))
    return share**n > case.level


def _other_blocks(case: Case) -> Iterator[Finding]:
    if len(case.blocks) < 2:
        return
    kept = [k for k in case.blocks[0] if k in set(case.agreeing)] or case.blocks[0]
    for block in case.blocks[1:]:
        sides = relation(case.table, block, kept, level=case.level, tests=1)
        weak = bool(case.weak[block].all())
        verb = "contradict" if sides.opposed else "have no relation to"
        yield Finding(
            kind="block",
            severity="warning" if weak and not sides.opposed else "error",
            text=(
                _models(case, block, "agrees", "agree")
                + f" with each other on which items are hard and {verb} the "
                f"{len(case.blocks[0])} models of the block kept (correlation of "
                f"their means {sides.correlation:.2f}, expected {sides.expected:.2f})"
                + ("; both blocks are equally large" if case.tied else "")
            ),
            advice=(
                "Their items are in another order, their scores are flipped, or they "
                "all give one answer, or answer by one rule. Align the items by id. "
                "The larger block is kept; name a model that you trust if it is the "
                "other one that is right."
            ),
            models=case.names(block),
            drop_models=case.to_drop(block),
            evidence={
                "size": len(block),
                "kept_size": len(case.blocks[0]),
                "correlation": sides.correlation,
                "expected": sides.expected,
                "opposed": sides.opposed,
                "tied": case.tied,
                "low_scores": weak,
            },
        )


def _anticorrelated(case: Case) -> Iterator[Finding]:
    models = case.flagged(case.agreement.anticorrelated)
    if not models:
        return
    pair = len(case.judged) == 2
    repair = (
        "Leave them out, or repair them. Flipped scores (lower is better, 1 for wrong) "
        "and one and the same answer to every item look like this"
    )
    mirrored = [
        k for k in models if -(case.correlation(k) or 0) > (case.expected(k) or 9) / 2
    ]
    yield Finding(
        kind="anticorrelated-models",
        severity="error",
        text=_models(case, models, "is", "are")
        + " right where the others are wrong"
        + _correlations(case, models),
        advice=(
            "The two references contradict each other: find out which one is right."
            if pair
            else repair
            + (
                f"; turned over, {some(case.names(mirrored))} would agree with them."
                if mirrored
                else "."
            )
        ),
        models=case.names(models),
        drop_models=() if pair else case.to_drop(models),
        evidence={**_evidence(case, models), "mirrored": list(case.names(mirrored))},
    )


def _unrelated(case: Case) -> Iterator[Finding]:
    models = case.flagged(case.agreement.unrelated)
    random = [k for k in models if case.weak[k]]
    wrong = [k for k in models if not case.weak[k]]
    if wrong:
        yield Finding(
            kind="unrelated-models",
            severity="error",
            text=_models(case, wrong, "has", "have")
            + " scores without relation to the others', too high for random answers"
            + _correlations(case, wrong),
            advice=(
                "Align the items by id: they may be in another order, or of another "
                "version of the benchmark. Leave these models out otherwise: they were "
                "run or scored in another way, or are of another kind."
            ),
            models=case.names(wrong),
            drop_models=case.to_drop(wrong),
            evidence=_evidence(case, wrong),
        )
    if random:
        yield Finding(
            kind="random-models",
            severity="warning",
            text=_models(case, random, "has", "have")
            + " scores without relation to the others', and among the lowest"
            + _correlations(case, random),
            advice=(
                "Leave them out: they answer at random, or their items are in another "
                "order. Either way they tell nothing about items."
            ),
            models=case.names(random),
            drop_models=case.to_drop(random),
            evidence=_evidence(case, random),
        )


def _distant(case: Case) -> Iterator[Finding]:
    models = case.flagged(case.agreement.distant)
    if models:
        yield Finding(
            kind="distant-models",
            severity="note",
            text=_models(case, models, "agrees", "agree")
            + " with the others less than half as much as is typical"
            + _correlations(case, models),
            advice=(
                "Nothing if they are weak or of another kind. A few items in another "
                "order, other prompts or another scorer look like this as well."
            ),
            models=case.names(models),
            evidence=_evidence(case, models),
        )


def _models(case: Case, models: Sequence[int], one: str, more: str) -> str:
    """Number and names, then the verb in singular or plural."""
    single = len(models) == 1
    noun = "1 model" if single else f"{len(models)} models"
    return f"{noun} ({some(case.names(models))}) {one if single else more}"


def _correlations(case: Case, models: Sequence[int]) -> str:
    known = [r for k in models if (r := case.correlation(k)) is not None]
    typical = [e for k in models if (e := case.expected(k)) is not None]
    low, high = min(known), max(known)
    shown = f"{low:.2f}" if len(known) == 1 else f"{low:.2f} to {high:.2f}"
    return f": item-rest correlation {shown}" + (
        f", typical would be {np.median(typical):.2f}" if typical else ""
    )


def _evidence(case: Case, models: Sequence[int]) -> dict[str, dict[str, float | None]]:
    return {
        "correlation": {case.models[k]: case.correlation(k) for k in models},
        "expected": {case.models[k]: case.expected(k) for k in models},
    }

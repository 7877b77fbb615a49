"""Reference tables with faults that were put there."""

from __future__ import annotations

from collections import Counter

import numpy as np
from populations import answers

import gp_eval as ge
from gp_eval.data import References


def references(scores: np.ndarray, **options: object) -> References:
    items = [f"q{i}" for i in range(len(scores))]
    models = [f"m{k}" for k in range(scores.shape[1])]
    return References(scores, items, models, missing="keep", **options)


def sound(n_items: int = 300, n_models: int = 40, seed: int = 0) -> np.ndarray:
    return answers(n_items, n_models, seed=seed, discrimination=1.5)


def findings(scores: np.ndarray, **options: object) -> dict[str, ge.Diagnosis]:
    found = ge.check_references(references(scores), **options).findings
    kinds = Counter(finding.kind for finding in found)
    assert max(kinds.values(), default=1) == 1
    return {finding.kind: finding for finding in found}


def shuffled(scores: np.ndarray, *models: int) -> np.ndarray:
    changed = scores.copy()
    for k in models:
        changed[:, k] = np.random.default_rng(k).permutation(scores[:, k])
    return changed


def middling(scores: np.ndarray) -> int:
    return int(np.argsort(scores.mean(0))[scores.shape[1] // 2])


def planted() -> np.ndarray:
    scores = sound(400)
    changed = shuffled(scores, middling(scores))
    changed[:, 3] = 1.0 - changed[:, 3]
    changed[:, 11] = changed[:, 12]
    changed[:, 20] = 0.0
    changed[:30, 30] = np.nan
    return changed

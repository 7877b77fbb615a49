"""Probability of the right choice from a row of lm-eval."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from typing import Any

from gp_eval.readers.gold import gold_probability, is_consistent

__all__ = ["GOLD", "gold_of_row", "gold_of_write_out"]

GOLD = {"acc_norm": "gold_prob_norm", "acc_bytes": "gold_prob_bytes"}
"""Name of the probability when log-likelihoods are divided as these metrics do."""


def gold_of_row(row: Mapping[str, Any], metric: str | None) -> float | None:
    """The value, or None where the row does not tell it.

    One request alone (``loglikelihood`` tasks) gives the probability of the answer
    itself; several give the share of the right choice in their softmax.

    Raises:
        ValueError: If the choice found does not agree with the logged ``acc``.
    """
    logliks = _logliks(row.get("filtered_resps"))
    if not logliks:
        return None
    if len(logliks) == 1:
        return math.exp(logliks[0]) if logliks[0] <= 0.0 else None
    if "acc_mutual_info" in row:  # as many unconditional requests follow the choices
        logliks = logliks[: len(logliks) // 2]
    gold = _gold(row.get("target"), row.get("arguments"), len(logliks))
    if gold is None:
        return None
    correct = row.get("acc", row.get(metric or ""))
    if correct is not None and correct not in (0, 1):
        return None  # truthfulqa_mc2 and its like: the target is not the right choice
    if row.get("acc") is not None and not is_consistent(logliks, gold, row["acc"]):
        raise ValueError(f"target {row.get('target')!r} and acc {row['acc']} disagree")
    lengths = None
    if metric in GOLD:
        choices = _choices(row.get("arguments"), len(logliks))
        if choices is None:
            return None
        encode = str.encode if metric == "acc_bytes" else str
        lengths = [len(encode(choice)) for choice in choices]
    return gold_probability(logliks, gold, lengths=lengths)


def gold_of_write_out(row: Mapping[str, Any]) -> float | None:
    """The same for a row of ``--write_out`` (0.3): ``logit_i`` and ``truth``."""
    logliks: list[float] = []
    while isinstance(value := row.get(f"logit_{len(logliks)}"), int | float):
        logliks.append(float(value))
    truth = row.get("truth")
    if len(logliks) < 2 or not isinstance(truth, int) or isinstance(truth, bool):
        return None
    if not 0 <= truth < len(logliks):
        return None
    correct = str(row.get("acc")).lower()
    if correct in ("true", "false") and not is_consistent(
        logliks, [truth], float(correct == "true")
    ):
        raise ValueError(f"truth {truth} and acc {row.get('acc')} disagree")
    return gold_probability(logliks, [truth])


def _logliks(responses: Any) -> list[float]:
    """Log-likelihoods of all requests; empty for generated text."""
    if not isinstance(responses, list) or not responses:
        return []
    if not isinstance(responses[0], list):  # a fork drops the list around a lone pair
        responses = [responses]
    logliks = []
    for response in responses:
        if not isinstance(response, list) or len(response) != 2:
            return []
        value, is_greedy = response
        if is_greedy not in ("False", "True", False, True):
            return []
        try:
            logliks.append(float(value))
        except (TypeError, ValueError):
            return []
    return logliks


def _choices(arguments: Any, n: int) -> list[str] | None:
    """Texts of the choices, without the space before them."""
    if isinstance(arguments, dict):
        parts = [arguments.get(f"gen_args_{i}") for i in range(n)]
        texts = [
            part.get("arg_1") if isinstance(part, dict) else None for part in parts
        ]
    elif isinstance(arguments, list):
        texts = [
            part[1] if isinstance(part, list) and len(part) > 1 else None
            for part in arguments[:n]
        ]
    else:
        return None
    stripped = [text.strip() for text in texts if isinstance(text, str)]
    return stripped if len(stripped) == n else None


def _gold(target: Any, arguments: Any, n: int) -> list[int] | None:
    """Positions of the right choices, from positions or from texts."""
    if isinstance(target, str) and target.lstrip().startswith("["):
        try:
            target = ast.literal_eval(target.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    targets = target if isinstance(target, list) else [target]
    found: list[int] = []
    for one in targets:
        place = _place(one, arguments, n)
        if place is None:
            return None
        found.append(place)
    return found or None


def _place(target: Any, arguments: Any, n: int) -> int | None:
    text = str(target).strip()
    if text.isascii() and text.isdecimal() and len(text) < 7 and int(text) < n:
        return int(text)
    choices = _choices(arguments, n)
    if choices is None or choices.count(text) != 1:
        return None
    return choices.index(text)

"""How numbers and names of a report are printed, in all formats alike."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any

from gp_eval.report.content import Report, TargetReport

__all__ = ["Digits", "facts", "percent", "plain", "rank"]


_BIDI = {chr(c) for c in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""Characters that would reorder what follows them."""


class Digits:
    """Prints scores with two digits of the interval's width or more.

    Args:
        width: Full width of the interval.
    """

    def __init__(self, width: float) -> None:
        size = math.floor(math.log10(width)) if width > 0.0 else -2
        self.decimals = min(max(2 - size, 2), 12)

    def __call__(self, value: float | None) -> str:
        """The score; a dash where there is none."""
        return "-" if value is None else f"{value:.{self.decimals}f}"

    def interval(self, low: float, high: float) -> str:
        """Both ends."""
        return f"{self(low)} to {self(high)}"


def percent(probability: float) -> str:
    """A whole number that never rounds to certainty."""
    rounded = round(100.0 * probability)
    if rounded == 100 and probability < 1.0:
        return ">99 %"
    if rounded == 0 and probability > 0.0:
        return "<1 %"
    return f"{rounded} %"


def plain(text: object) -> str:
    """A text on one line, with what would hide or reorder it made visible."""
    line = " ".join(str(text).splitlines()).replace("\t", " ")
    shown = (
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(c) in ("Cc", "Cs") or c in _BIDI
        else c
        for c in line
    )
    return "".join(shown)


def rank(target: TargetReport, n_references: int) -> str:
    """Place among the references, with the range that the interval allows."""
    best, worst = target.rank_best, target.rank_worst
    between = "" if best == worst else f" ({best} to {worst} over the interval)"
    return f"{target.rank} of {n_references + 1}{between}"


def facts(report: Report) -> list[tuple[str, str]]:
    """Settings and provenance, a name and a value each."""
    made = report.provenance
    stop = made.stop
    parts = []
    if stop.until is not None:
        parts.append(f"{stop.until} decided with probability above {stop.level:g}")
    if stop.width is not None:
        parts.append(
            f"width at most {stop.width:g}, last {stop.window} estimates within "
            f"{stop.stable:g}"
        )
    rule = " or ".join(parts)
    if stop.max_items is not None:
        rule += f", at most {stop.max_items} items"
    if stop.max_cost is not None:
        rule += f", at most {stop.max_cost:g} spent"
    rows = [
        ("model", made.model),
        ("options", _options(made.model_options)),
        ("kernel", made.kernel or ""),
        ("stopping rule", rule),
        ("seed", str(made.seed)),
        ("items", f"{made.n_items}, {'weighted' if made.weighted else 'plain mean'}"),
        ("evaluations", str(made.n_evaluated)),
        ("references", f"{made.n_references} models"),
        ("fingerprint of the references", made.fingerprint),
        *((f"references: {name}", _value(value)) for name, value in made.meta.items()),
        ("created", made.created),
        ("last event", made.last_event or ""),
        ("versions at the start", _versions(made.versions)),
        ("report made", made.reported),
        ("versions of the report", _versions(made.reported_with)),
    ]
    if made.reported_with == made.versions:
        rows.pop()
    return [(name, value) for name, value in rows if value]


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in options.items())


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _value(value: Any) -> str:
    """Strings as they are, everything else as JSON, long values cut."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 300 else text[:297] + "..."

"""What a check found, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gp_eval._names import some
from gp_eval.errors import DataError

if TYPE_CHECKING:
    from gp_eval.data import References

__all__ = ["SEVERITIES", "Diagnosis", "Finding", "Severity", "Standing"]

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes:
        kind: What it is, a stable key such as ``"unrelated-models"``.
        severity: ``"error"`` spoils the prior, ``"warning"`` may, ``"note"`` does not.
        text: What was found, in a sentence.
        advice: What to do.
        models: Ids of the models concerned.
        items: Ids of the items concerned.
        drop_models: The models among them that a cleaned table leaves out.
        drop_items: The items that it leaves out on request.
        evidence: The numbers behind it; JSON values with stable keys.
    """

    kind: str
    severity: Severity
    text: str
    advice: str
    models: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    drop_models: tuple[str, ...] = ()
    drop_items: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "kind": self.kind,
            "severity": self.severity,
            "text": self.text,
            "advice": self.advice,
            "models": list(self.models),
            "items": list(self.items),
            "drop_models": list(self.drop_models),
            "drop_items": list(self.drop_items),
            "evidence": dict(self.evidence),
        }


@dataclass(frozen=True)
class Standing:
    """How one model agrees with the references that are kept.

    Attributes:
        model: Its id.
        mean: Mean score, adjusted for the items it lacks.
        correlation: Item-rest correlation; None where it has none.
        expected: The correlation that a typical reference would have with these
            scores; None where that is not known.
        block: Number of its block, 0 for the one kept; None outside of all.
    """

    model: str
    mean: float
    correlation: float | None
    expected: float | None
    block: int | None


@dataclass(frozen=True)
class Diagnosis:
    """All that :func:`~gp_eval.diagnosis.check_references` found.

    Attributes:
        n_items: ``N``.
        n_models: ``K``.
        level: Level of the tests: the probability of a false alarm.
        reliability: Of the item means over the references that are kept; None where
            there is none.
        findings: The worst first.
        models: A standing for each model, in the order of the table.
    """

    n_items: int
    n_models: int
    level: float
    reliability: float | None
    findings: tuple[Finding, ...]
    models: tuple[Standing, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is an error."""
        return not self.of("error")

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(f for f in self.findings if f.severity == severity)

    @property
    def drop_models(self) -> tuple[str, ...]:
        """Models that a cleaned table leaves out, in the order of the table."""
        drop = {name for finding in self.findings for name in finding.drop_models}
        return tuple(s.model for s in self.models if s.model in drop)

    @property
    def drop_items(self) -> tuple[str, ...]:
        """Items that a cleaned table leaves out on request."""
        return tuple(name for finding in self.findings for name in finding.drop_items)

    @property
    def record(self) -> dict[str, Any]:
        """All of it as JSON values, for ``--json``; keys are stable."""
        return {
            "ok": self.ok,
            "n_items": self.n_items,
            "n_models": self.n_models,
            "level": self.level,
            "reliability": self.reliability,
            "counts": {name: len(self.of(name)) for name in SEVERITIES},
            "findings": [finding.record for finding in self.findings],
            "models": [
                {
                    "id": s.model,
                    "mean": s.mean,
                    "correlation": s.correlation,
                    "expected": s.expected,
                    "block": s.block,
                }
                for s in self.models
            ],
            "drop_models": list(self.drop_models),
            "drop_items": list(self.drop_items),
        }

    def cleaned(
        self, references: References, *, drop_items: bool = False
    ) -> References:
        """The table without what the findings say to leave out.

        Args:
            references: The table that was checked.
            drop_items: Whether suspicious items go as well, and items that no
                remaining model has; this changes what the benchmark score means.

        Raises:
            DataError: For models that are not there, or if no model or no item would
                be left, or items without any score.
        """
        kept = [m for m in references.models if m not in set(self.drop_models)]
        if not kept:
            raise DataError("models: nothing is left, every model is to be dropped")
        gone = set(self.drop_items) if drop_items else set()
        columns = [references.models.index(name) for name in kept]
        empty = references.scores[:, columns].isnan().all(1).tolist()
        bare = [i for i, e in zip(references.items, empty, strict=True) if e]
        if bare and not drop_items:
            raise DataError(
                f"items: only dropped models have a score on {some(bare)}; "
                "drop_items leaves these items out as well"
            )
        items = [i for i in references.items if i not in gone.union(bare)]
        if not items:
            raise DataError("items: nothing is left, every item is to be dropped")
        cleaned = references.subset(models=kept, items=items, missing="keep")
        left = set(references.items).difference(items)
        cleaned.meta["dropped_by_check"] = {
            "models": [m for m in references.models if m not in set(kept)],
            "items": [i for i in references.items if i in left],
        }
        return cleaned

"""The whole check: from a reference table to named findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gp_eval.diagnosis.case import Case, examine
from gp_eval.diagnosis.findings import SEVERITIES, Diagnosis, Standing
from gp_eval.diagnosis.model_findings import model_findings
from gp_eval.diagnosis.table_findings import table_findings

if TYPE_CHECKING:
    from gp_eval.data import References

__all__ = ["check_references"]


def check_references(
    references: References, *, level: float = 0.01, keep: Sequence[str] = ()
) -> Diagnosis:
    """Find what silently ruins a prior, name it, and say what to do.

    Looked for are models in another item order, with flipped or constant scores or
    random answers, blocks of models that agree only among themselves, copies of
    models, items that look mis-keyed, items that tell nothing, too few references and
    missing cells. Every verdict is a test on the order of the scores; the general level
    of a model plays no role, nor do the weights of items, the order of the table, or
    the units of the scores.

    Args:
        references: The table; it may have missing cells (read it with
            ``missing="keep"``).
        level: Probability of a false alarm for each kind of finding, if models answer
            independently given the difficulty of the items.
        keep: Models that are known to be right. They are never dropped, and of
            several blocks theirs is kept.

    Returns:
        The findings, the worst first. ``diagnosis.cleaned(references)`` is the table
        without what they say to leave out.

    Raises:
        DataError: For models in ``keep`` that are not there.
        ValueError: For a level outside (0, 0.5).

    Example:
        >>> diagnosis = check_references(references)
        >>> [finding.kind for finding in diagnosis.of("error")]
        []
    """
    if not 0.0 < level < 0.5:
        raise ValueError(f"level: expected 0 < level < 0.5, got {level}")
    if keep:
        from gp_eval.data.validation import positions  # with torch, which we do without

        positions("keep", references.models, keep)
    case = examine(
        references.scores.numpy(),
        models=references.models,
        items=references.items,
        level=level,
        keep=frozenset(keep),
    )
    findings = [*model_findings(case), *table_findings(case)]
    rank = {severity: i for i, severity in enumerate(SEVERITIES)}
    return Diagnosis(
        n_items=len(case.items),
        n_models=len(case.models),
        level=level,
        reliability=case.reliability,
        findings=tuple(sorted(findings, key=lambda f: rank[f.severity])),
        models=_standings(case),
    )


def _standings(case: Case) -> tuple[Standing, ...]:
    block_of = {k: b for b, block in enumerate(case.blocks) for k in block}
    return tuple(
        Standing(
            model=name,
            mean=case.score(float(case.table.levels[k])),
            correlation=case.correlation(k),
            expected=case.expected(k),
            block=block_of.get(k),
        )
        for k, name in enumerate(case.models)
    )

"""Scores of groups as a report and ``gp-eval status`` print them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gp_eval.data import Groups
from gp_eval.groups import (
    GroupEstimate,
    GroupEstimates,
    StopsOn,
    group_estimates,
    no_item_belief,
)
from gp_eval.loop import Result
from gp_eval.models.protocol import Performance, SupportsItemBelief
from gp_eval.report.group_content import GroupScore, GroupSection, MeanScore
from gp_eval.report.sentences import number_of
from gp_eval.session import MultiTargetSession, Session

__all__ = ["group_sections"]

_GROUPS = (
    "Posterior mean of each group's mean score: the scores of its evaluated items "
    "and the model's prediction of the others. Each 95 % interval holds for its group "
    "alone."
)
_STOPS_ON: dict[StopsOn, str] = {
    "micro": "The run stops on the micro mean, in which {}.",
    "macro": "The run stops on the macro mean, in which every group counts the same.",
    "estimate": "The run stops on the macro mean over the groups of the references, "
    "which are other groups than these.",
}
_NO_SUM = (
    "These numbers do not add up to the estimate, which is not the posterior mean here "
    "(of BayesAME on items that repeat it is the control variate of Eq. (4))."
)
_APART = (
    "Both differ by more than half the width of its interval: the model does not fit "
    "this target, at least not yet, and scores of groups cannot be relied on."
)


def group_sections(
    session: Session | MultiTargetSession,
    results: Sequence[Result],
    groups: Groups | None = None,
) -> list[GroupSection]:
    """Scores of groups of each target.

    Args:
        session: The session, which is only looked at.
        results: Its estimates.
        groups: Default: those of the references, if they have any and the model can
            tell; otherwise a note says what is lacking.

    Raises:
        DataError: For given groups that are of another benchmark.
        ValueError: For given groups with a model that has no belief about items.
    """
    if groups is None:
        of_item = session.references.groups
        if of_item is None or not any(of_item):
            note = "The references name no groups of items."
            return [GroupSection(groups_note=note) for _ in results]
        if not isinstance(session.model, SupportsItemBelief):
            note = f"Not available for this model: {no_item_belief()}."
            return [GroupSection(groups_note=note) for _ in results]
    made = group_estimates(session, groups)
    weighted = session.references.is_weighted
    return [
        _section(of_target, result, weighted=weighted)
        for of_target, result in zip(made, results, strict=True)
    ]


def _section(made: GroupEstimates, result: Result, *, weighted: bool) -> GroupSection:
    rest = [] if made.ungrouped is None else [made.ungrouped]
    of_groups = [row.references_mean for row in made.rows]
    of_items = [row.share * row.references_mean for row in (*made.rows, *rest)]
    return GroupSection(
        group_by=made.groups.source,
        groups=[_score(row) for row in made.rows],
        ungrouped=_score(made.ungrouped) if made.ungrouped else None,
        macro=_mean(made.macro, math.fsum(of_groups) / len(of_groups)),
        micro=_mean(made.micro, math.fsum(of_items)),
        stops_on=made.stops_on,
        groups_note=_note(made, result, weighted=weighted),
    )


def _score(row: GroupEstimate) -> GroupScore:
    mean = _mean(row.belief, row.references_mean)
    return GroupScore(
        group=row.name or None,
        n=row.n,
        N=row.N,
        share=row.share,
        estimate=mean.estimate,
        low=mean.low,
        high=mean.high,
        references_mean=mean.references_mean,
    )


def _mean(belief: Performance, references_mean: float) -> MeanScore:
    low, high = belief.interval()
    return MeanScore(
        estimate=float(belief.mean),
        low=float(low),
        high=float(high),
        references_mean=references_mean,
    )


def _note(made: GroupEstimates, result: Result, *, weighted: bool) -> str:
    """What the numbers are, which of them counts, and what to mind."""
    parts = [_GROUPS]
    if unseen := sum(row.n == 0 for row in made.rows):
        parts.append(
            f"{unseen} of {number_of(len(made.rows), 'group')} without an evaluated "
            "item: predicted from the others."
        )
    if made.ungrouped is not None:
        parts.append(
            f"{number_of(made.ungrouped.N, 'item')} in no group: in the micro mean, "
            "not in the macro mean."
        )
    if made.groups.n_others:
        parts.append(
            f"{number_of(made.groups.n_others, 'item')} of the file not of this "
            "benchmark: not used."
        )
    counts = (
        "items count by their weights" if weighted else "every item counts the same"
    )
    parts.append(_STOPS_ON[made.stops_on].format(counts))
    mean = float(made.benchmark.mean)
    if not math.isclose(mean, result.mean, rel_tol=1e-6, abs_tol=1e-9):
        parts.append(_NO_SUM)
    if abs(mean - result.mean) > result.width / 2.0 + 1e-9:
        parts.append(_APART)
    return " ".join(parts)

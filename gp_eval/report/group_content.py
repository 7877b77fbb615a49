"""What a report says about groups of items; ``gp-eval status`` prints the same."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from gp_eval.groups import StopsOn

__all__ = [
    "Content",
    "GroupRow",
    "GroupScore",
    "GroupSection",
    "MeanScore",
    "group_rows",
]


class Content(BaseModel):
    """Part of a report: complete, finite and not to be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class GroupScore(Content):
    """Score of one group of items.

    Attributes:
        group: Name of the group; ``None`` for the items in no group.
        n: Evaluated items of the group.
        N: Items of the group.
        share: What the group counts in the micro mean, a number in (0, 1].
        estimate: Posterior mean of the group's (weighted) mean score.
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
        references_mean: Mean score of the reference models on the group.
    """

    group: str | None
    n: int
    N: int
    share: float
    estimate: float
    low: float
    high: float
    references_mean: float


class MeanScore(Content):
    """A mean over groups or over items.

    Attributes:
        estimate: Its posterior mean.
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
        references_mean: The same mean of the reference models.
    """

    estimate: float
    low: float
    high: float
    references_mean: float


class GroupSection(Content):
    """Scores of groups of one target; see :class:`~gp_eval.groups.GroupEstimates`.

    Attributes:
        groups: Scores by group, in the order of the items.
        groups_note: What these numbers are, and which of them the run stops on; or why
            there are none.
        group_by: Where groups come from: ``"groups"`` (the references) or
            ``"FILE:COLUMN"``; ``None`` where there are no scores of groups.
        ungrouped: The items in no group, if there are any.
        macro: Mean over groups, each counting the same.
        micro: Mean over items, those in no group included.
        stops_on: Which number the stopping rule looks at: ``"micro"``, ``"macro"`` or
            ``"estimate"``, which then is the macro mean over other groups.
    """

    groups: list[GroupScore] = []
    groups_note: str
    group_by: str | None = None
    ungrouped: GroupScore | None = None
    macro: MeanScore | None = None
    micro: MeanScore | None = None
    stops_on: StopsOn | None = None


@dataclass(frozen=True)
class GroupRow:
    """A row of the printed table.

    Attributes:
        label: Name of the group, or what the row is.
        is_group: Which of both.
        counts: Evaluated of all items, such as ``"3 of 50"``.
        score: Estimate, interval and mean of the references.
    """

    label: str
    is_group: bool
    counts: str
    score: GroupScore | MeanScore


def group_rows(section: GroupSection) -> list[GroupRow]:
    """The groups, what is in none, and both means; nothing if there are no groups."""
    if section.macro is None or section.micro is None:
        return []
    rest = [] if section.ungrouped is None else [section.ungrouped]
    rows = [
        GroupRow(g.group or "in no group", g.group is not None, _counts([g]), g)
        for g in (*section.groups, *rest)
    ]
    macro, micro = _counts(section.groups), _counts([*section.groups, *rest])
    return [
        *rows,
        GroupRow("macro mean, of groups", False, macro, section.macro),
        GroupRow("micro mean, of items", False, micro, section.micro),
    ]


def _counts(groups: list[GroupScore]) -> str:
    return f"{sum(g.n for g in groups)} of {sum(g.N for g in groups)}"

"""Scores of groups of items, and both ways to average them, from one belief."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from gp_eval.data import Groups, References
from gp_eval.data.group_sums import GroupSums
from gp_eval.data.groups import is_macro
from gp_eval.models.protocol import Performance, SupportsItemBelief
from gp_eval.models.registry import models_of_items
from gp_eval.session import MultiTargetSession, Session

__all__ = [
    "GroupEstimate",
    "GroupEstimates",
    "StopsOn",
    "estimate_groups",
    "group_estimates",
    "no_item_belief",
]

StopsOn = Literal["micro", "macro", "estimate"]


@dataclass(frozen=True)
class GroupEstimate:
    """One group of items.

    Attributes:
        name: Its name; ``""`` for the items in no group.
        n: Evaluated items.
        N: Items.
        share: What its mean score counts in the micro mean, a number in (0, 1].
        belief: Mean score of the group, scalars in score units; its variance is exactly
            0 once every item of weight is evaluated.
        references_mean: Mean score of the references on it.
    """

    name: str
    n: int
    N: int
    share: float
    belief: Performance
    references_mean: float


@dataclass(frozen=True)
class GroupEstimates:
    r"""Scores of ``G`` groups of items of one target, and their averages.

    All are weighted sums of the scores :math:`s_i` of all items, and so known from one
    joint posterior: evaluated items by their score, the others by the belief about
    them. With item weights :math:`v_i` of sum 1 the score of a group is :math:`m_g =
    \sum_{i \in g} v_i s_i / v_g` with :math:`v_g = \sum_{i \in g} v_i`.

    The weights are those of the references, with one exception: where they are those
    of ``references.macro()``, which say how groups are averaged, all items count the
    same here. Groups without weight are left out. Items in no group count in the micro
    mean only.

    Attributes:
        target: Name of the target.
        groups: Which item is in which group.
        rows: The groups, in the order of their first items.
        ungrouped: The items in no group, if there are any (of weight).
        belief: Means, variances and, where the model knows it, the covariance ``G x G``
            of the groups' scores.
        macro: :math:`\frac{1}{G} \sum_g m_g`, the mean over groups.
        micro: :math:`\sum_i v_i s_i = \sum_g v_g m_g`, the mean over items, those in no
            group included.
        benchmark: Posterior of what the session estimates, :math:`\sum_i w_i s_i` with
            the weights of the references.
        stops_on: Which of these numbers the stopping rule looks at: ``"micro"``;
            ``"macro"`` where item weights are those of ``references.macro()`` and
            groups are those of the references; ``"estimate"`` for other groups then.
    """

    target: str
    groups: Groups
    rows: tuple[GroupEstimate, ...]
    ungrouped: GroupEstimate | None
    belief: Performance
    macro: Performance
    micro: Performance
    benchmark: Performance
    stops_on: StopsOn

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(row.name for row in self.rows)


def group_estimates(
    session: Session | MultiTargetSession, groups: Groups | None = None
) -> list[GroupEstimates]:
    """Scores of groups as a session stands, one entry a target.

    Args:
        session: The session, which is only looked at.
        groups: Default: those of its references.

    Raises:
        DataError: If there are no groups, or they are of another benchmark.
        ValueError: For a model without a joint belief about items.

    Example:
        >>> (by_subject,) = group_estimates(session)
        >>> for row in by_subject.rows:
        ...     print(row.name, row.n, row.N, float(row.belief.mean))
        >>> compare(
        ...     by_subject.names, by_subject.belief.mean, by_subject.belief.covariance
        ... )
    """
    return estimate_groups(
        session.model,
        session.references,
        groups,
        targets=session.targets,
        evaluated=[session.scores_of(target) for target in session.targets],
    )


def estimate_groups(
    model: object,
    references: References,
    groups: Groups | None = None,
    *,
    targets: Sequence[str],
    evaluated: Sequence[Collection[str]],
) -> list[GroupEstimates]:
    """The same for a model outside a session.

    Args:
        model: A model with :class:`~gp_eval.models.SupportsItemBelief`.
        references: Those it was made from.
        groups: Default: those of the references.
        targets: Names of the ``T`` targets of the model.
        evaluated: Ids of the evaluated items of each target.

    Raises:
        DataError: If there are no groups, or they are of another benchmark.
        ValueError: For a model without a joint belief about items.
    """
    if not isinstance(model, SupportsItemBelief):
        raise ValueError(f"model: {no_item_belief()}")
    sums = GroupSums.of(references, groups or Groups.stored(references))
    made = model.weighted_sums(sums.weights)
    size = len(sums.divisors)
    if not made.mean.numel() == size * len(targets) == size * len(evaluated):
        raise ValueError(
            "targets, evaluated: expected one for each of the "
            f"{made.mean.numel() // size} targets of the model, got {len(targets)} and "
            f"{len(evaluated)}"
        )
    return [
        _of_target(target, sums, belief, references, evaluated=set(items))
        for target, belief, items in zip(
            targets, _means(made, sums, len(targets)), evaluated, strict=True
        )
    ]


def _means(made: Performance, sums: GroupSums, n_targets: int) -> list[Performance]:
    """Sums as means, a belief about all of them for each target."""
    shape, divisors = (n_targets, len(sums.divisors)), sums.divisors
    mean = made.mean.cpu().reshape(shape) / divisors
    variance = made.variance.cpu().reshape(shape) / divisors.square()
    if made.covariance is None:
        return [Performance(m, v) for m, v in zip(mean, variance, strict=True)]
    joint = made.covariance.cpu().reshape(*shape, *shape)
    joint = joint / torch.outer(divisors, divisors).unsqueeze(1)
    return [Performance(mean[t], variance[t], joint[t, :, t]) for t in range(n_targets)]


def no_item_belief() -> str:
    """What is wrong with a model that cannot tell items apart, and what to use."""
    return (
        "it has no joint belief about items, from which scores of groups follow; "
        f"models that have one: {', '.join(models_of_items())}"
    )


def _of_target(
    target: str,
    sums: GroupSums,
    belief: Performance,
    references: References,
    *,
    evaluated: Collection[str],
) -> GroupEstimates:
    rows = _rows(sums, belief, references, evaluated)
    n_groups, joint = len(sums.names), belief.covariance
    means = belief.mean[:n_groups]
    macro, micro, benchmark = (_one(belief, len(rows) + k) for k in range(3))
    return GroupEstimates(
        target=target,
        groups=sums.groups,
        rows=tuple(rows[:n_groups]),
        ungrouped=rows[-1] if n_groups < len(rows) else None,
        belief=Performance(
            means,
            belief.variance[:n_groups],
            None if joint is None else joint[:n_groups, :n_groups],
        ),
        macro=Performance(means.mean(), macro.variance),
        micro=micro,
        benchmark=benchmark,
        stops_on=_stops_on(references, sums),
    )


def _rows(
    sums: GroupSums,
    belief: Performance,
    references: References,
    evaluated: Collection[str],
) -> list[GroupEstimate]:
    """The groups, and the items in none if they have weight."""
    size, told = sums.groups.sizes, dict.fromkeys(sums.groups.sizes, 0)
    for item, group in zip(references.items, sums.groups.of_item, strict=True):
        told[group] += item in evaluated
    of_references = sums.weights @ references.scores.nanmean(-1) / sums.divisors
    return [
        GroupEstimate(
            name=name,
            n=told[name],
            N=size[name],
            share=float(sums.shares[g]),
            belief=_one(belief, g),
            references_mean=float(of_references[g]),
        )
        for g, name in enumerate([*sums.names, ""][: len(sums.shares)])
    ]


def _one(belief: Performance, place: int) -> Performance:
    return Performance(belief.mean[place], belief.variance[place])


def _stops_on(references: References, sums: GroupSums) -> StopsOn:
    if not is_macro(references):
        return "micro"
    return "macro" if sums.stops_on_macro else "estimate"

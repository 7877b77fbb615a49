"""Scores of groups and both of their averages as weighted sums over items."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gp_eval.data.groups import Groups, is_macro
from gp_eval.data.references import References
from gp_eval.errors import DataError

__all__ = ["GroupSums"]


@dataclass(frozen=True)
class GroupSums:
    r"""Sums over groups, over the rest, and over all items, and what makes them means.

    Use :meth:`of`, not the constructor. Items of equal weight count 1, so that a sum of
    known 0/1 scores is a whole number and its mean right to the last bit.

    Attributes:
        groups: Which item is in which group.
        names: The ``G`` groups that have weight, in the order of their first items.
        shares: Weight of each of them, and of the items in no group as an additional
            entry if they have any: sum 1.
        weights: Rows of ``N``: one for each share, then the mean over groups, the sum
            over items, and the benchmark score of the references.
        divisors: By what to divide each sum.
    """

    groups: Groups
    names: tuple[str, ...]
    shares: Tensor
    weights: Tensor
    divisors: Tensor

    @classmethod
    def of(cls, references: References, groups: Groups) -> GroupSums:
        """Sums over the items of these references.

        Item weights that are those of ``references.macro()`` say how groups are
        averaged: every item counts the same here then.

        Raises:
            DataError: If the groups are of other items, or all without weight.
        """
        n_items = len(references.items)
        if len(groups.of_item) != n_items:
            raise DataError(
                f"groups: expected one for each of the {n_items} items, got "
                f"{len(groups.of_item)}"
            )
        benchmark = references.item_weights
        alike = not references.is_weighted or is_macro(references)
        micro = torch.ones_like(benchmark) if alike else benchmark
        names = [*groups.names, ""]
        place = {name: g for g, name in enumerate(names)}
        table = micro.new_zeros(len(names), n_items)
        table[[place[name] for name in groups.of_item], torch.arange(n_items)] = micro
        sizes = table.sum(-1)
        kept = [g for g in range(len(names)) if float(sizes[g]) > 0.0]
        named = tuple(names[g] for g in kept if names[g])
        if not named:
            raise DataError(f"{groups.source}: all items in groups have weight 0")
        table, sizes = table[kept], sizes[kept]
        macro = (table / sizes.unsqueeze(-1))[: len(named)].mean(0)
        whole = micro.sum()
        one = torch.ones_like(whole)
        return cls(
            groups,
            named,
            shares=sizes / whole,
            weights=torch.vstack([table, macro, micro, benchmark]),
            divisors=torch.cat([sizes, torch.stack([one, whole, one])]),
        )

    @property
    def stops_on_macro(self) -> bool:
        """Whether the benchmark score is the mean over these groups."""
        macro, _, benchmark = self.weights[-3:]
        return torch.allclose(macro, benchmark, rtol=1e-12, atol=0.0)

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
    r"""Weights of the means over groups, over the rest, and over all items.

    Use :meth:`of`, not the constructor.

    Attributes:
        groups: Which item is in which group.
        names: The ``G`` groups that have weight, in the order of their first items.
        shares: Weight of each of them, and of the items in no group as an additional
            entry if they have any: sum 1.
        means: Weights of their mean scores, a row for each share, by ``N``.
        macro: Weights of the mean over groups, shape ``N``.
        micro: Weights of the mean over items, shape ``N``.
        benchmark: Weights of the references, shape ``N``.
    """

    groups: Groups
    names: tuple[str, ...]
    shares: Tensor
    means: Tensor
    macro: Tensor
    micro: Tensor
    benchmark: Tensor

    @classmethod
    def of(cls, references: References, groups: Groups) -> GroupSums:
        """Weights for the items of these references.

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
        benchmark = micro = references.item_weights
        if is_macro(references):
            micro = torch.full_like(benchmark, 1.0 / n_items)
        names = [*groups.names, ""]
        place = {name: g for g, name in enumerate(names)}
        table = micro.new_zeros(len(names), n_items)
        table[[place[name] for name in groups.of_item], torch.arange(n_items)] = micro
        shares = table.sum(-1)
        kept = [g for g in range(len(names)) if float(shares[g]) > 0.0]
        named = tuple(names[g] for g in kept if names[g])
        if not named:
            raise DataError(f"{groups.source}: all items in groups have weight 0")
        means = table[kept] / shares[kept].unsqueeze(-1)
        macro = means[: len(named)].mean(0)
        return cls(groups, named, shares[kept], means, macro, micro, benchmark)

    @property
    def stops_on_macro(self) -> bool:
        """Whether the benchmark score is the mean over these groups."""
        return torch.allclose(self.macro, self.benchmark, rtol=1e-12, atol=0.0)

    @property
    def weights(self) -> Tensor:
        """All rows: ``means``, then ``macro``, ``micro`` and ``benchmark``."""
        return torch.vstack([self.means, self.macro, self.micro, self.benchmark])

"""How much models disagree about an item: PDS and generalized Jensen-Shannon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gp_eval.disco.probabilities import normalise_, soften
from gp_eval.errors import DataError

__all__ = [
    "Disagreement",
    "DisagreementScore",
    "disagreement_of_probabilities",
    "disagreement_of_scores",
]

DisagreementScore = Literal["jsd", "pds", "pds-per-class"]

_BLOCK = 2**17  # probabilities at a time: 1 MB, which stays in the cache


@dataclass(frozen=True)
class Disagreement:
    r"""Both scores of every item, from one pass over ``M`` models.

    Attributes:
        jsd: Generalized Jensen-Shannon divergence :math:`H(\bar f) - \frac{1}{M}
            \sum_m H(f_m)` in nats, shape ``N``; between 0 and :math:`\log M`. It is the
            mutual information of prediction and model (Proposition 1 of the DISCO
            paper).
        pds: Predictive diversity score :math:`\sum_c \max_m f_{mc}`, shape ``N``;
            between 1 and ``min(C, M)``.
        n_classes: Classes of each item, shape ``N``.
        degenerate: Whether every probability is 0 or 1 and no item has more than two
            classes.
    """

    jsd: Tensor
    pds: Tensor
    n_classes: Tensor
    degenerate: bool

    def of(self, score: DisagreementScore) -> Tensor:
        """One of the scores by name, shape ``N``.

        ``"pds-per-class"`` is Eq. (1) of the DISCO paper, which divides by ``C``; the
        published code and the paper's own bounds do not. It matters where ``C`` varies.

        Raises:
            ValueError: For an unknown name, or PDS of scores 0 and 1.
        """
        if score not in get_args(DisagreementScore):
            raise ValueError(
                f"score: expected one of {list(get_args(DisagreementScore))}, "
                f"got {score!r}"
            )
        if score == "jsd":
            return self.jsd
        if self.degenerate:
            tied = int((self.pds > 1.5).sum())
            raise ValueError(
                f"score: {score!r} takes only the values 1 and 2 on scores that are "
                f"all 0 or 1: {tied} of {len(self.pds)} items tie at 2, and their "
                "order would be that of the file; use 'jsd'"
            )
        return self.pds if score == "pds" else self.pds / self.n_classes


def disagreement_of_probabilities(
    probabilities: Tensor | np.ndarray,
    *,
    mask: Tensor | np.ndarray | None = None,
    models: Tensor | None = None,
    temperatures: Tensor | None = None,
) -> Disagreement:
    """PDS and JSD of class probabilities, streamed in blocks of items.

    Beyond the input, which may be memory-mapped and of any precision, a few blocks of
    1 MB and the scores are held. Computed in float64. Probabilities are divided by
    their sum, so that those stored in half precision obey the bounds, too.

    Args:
        probabilities: ``K x N x C``; log-likelihoods must go through
            :func:`~gp_eval.disco.probabilities_from_log_likelihoods` before.
        mask: ``N x C``, true where an item has the class; what stands elsewhere is not
            read. Default: classes that no model gives any probability are padding.
        models: Indices of the ``M`` guiding models. Default: all ``K``.
        temperatures: Temperature of each of the ``K`` models, see
            :func:`~gp_eval.disco.soften`. Default: probabilities as they are.

    Raises:
        DataError: For values that are no probabilities, with the items' indices.
        ValueError: For fewer than two guiding models, who cannot disagree.
    """
    if probabilities.ndim != 3:
        raise DataError(
            f"probabilities: expected shape K x N x C, got {tuple(probabilities.shape)}"
        )
    size, n_items, n_classes = probabilities.shape
    rows = _guides(models, size)
    if mask is not None:
        mask = torch.as_tensor(mask, dtype=torch.bool)
        if tuple(mask.shape) != (n_items, n_classes):
            raise DataError(
                f"mask: expected shape {(n_items, n_classes)}, got {tuple(mask.shape)}"
            )

    def read(block: Tensor, start: int) -> Tensor:
        stop = start + block.shape[1]
        part = probabilities[:, start:stop]
        if isinstance(part, np.ndarray):  # a read-only memory map must be copied
            part = torch.from_numpy(np.array(part))
        block.copy_(part if models is None else part[rows])
        classes = None if mask is None else mask[start:stop]
        if classes is not None:
            block.masked_fill_(~classes, 0.0)
        normalise_(block, first=start)
        if temperatures is None:
            return block
        return soften(block, temperatures[rows], mask=classes)

    found = _scan(read, (len(rows), n_items, n_classes))
    return found if mask is None else replace(found, n_classes=mask.sum(-1))


def disagreement_of_scores(
    scores: Tensor | np.ndarray, *, models: Tensor | None = None
) -> Disagreement:
    """PDS and JSD of scores alone, on the two classes ``[1 - s, s]``.

    For scores 0 and 1, JSD is the entropy of the pass rate, and PDS is refused.

    Args:
        scores: ``N x K`` in [0, 1].
        models: Indices of the ``M`` guiding models. Default: all ``K``.

    Raises:
        DataError: For scores outside of [0, 1] or missing.
        ValueError: For fewer than two guiding models, who cannot disagree.
    """
    rows = _guides(models, scores.shape[1])
    table = torch.as_tensor(scores, dtype=torch.float64)[:, rows]
    wrong = torch.nonzero(~((table >= 0.0) & (table <= 1.0)).all(1)).flatten()
    if len(wrong):
        raise DataError(
            "scores: disagreement needs scores in [0, 1], not so on items "
            f"{wrong[:5].tolist()} ({len(wrong)} of {len(table)})"
        )

    def read(block: Tensor, start: int) -> Tensor:
        part = table[start : start + block.shape[1]].T
        torch.sub(1.0, part, out=block[..., 0])
        block[..., 1] = part
        return block

    found = _scan(read, (len(rows), len(table), 2))
    return replace(found, n_classes=torch.full_like(found.n_classes, 2))


def _guides(models: Tensor | None, size: int) -> Tensor:
    rows = torch.arange(size) if models is None else torch.as_tensor(models).long()
    if len(rows) < 2:
        raise ValueError(
            f"models: expected at least 2, got {len(rows)}: one cannot disagree"
        )
    return rows


def _scan(
    read: Callable[[Tensor, int], Tensor], shape: tuple[int, int, int]
) -> Disagreement:
    """Both scores, block by block, in one memory for all blocks.

    Args:
        read: Fills a block ``M x b x C`` with the probabilities of the items from an
            index on; what it returns is used.
        shape: ``M``, ``N`` and ``C``.
    """
    size, n_items, n_classes = shape
    step = max(1, min(n_items, _BLOCK // (size * n_classes)))
    memory = torch.empty(2, size * step * n_classes, dtype=torch.float64)
    jsd, pds = torch.empty(2, n_items, dtype=torch.float64)
    counts, hard = torch.empty(n_items, dtype=torch.long), True
    for start in range(0, n_items, step):
        items = slice(start, min(start + step, n_items))
        width = items.stop - start
        block, entropy = memory[:, : size * width * n_classes].view(
            2, size, width, n_classes
        )
        block = read(block, start)
        highest = block.amax(0)
        pds[items] = highest.sum(-1)
        counts[items] = (highest > 0.0).sum(-1)
        torch.special.entr(block, out=entropy)
        mixture = torch.special.entr(block.mean(0))
        jsd[items] = (mixture - entropy.mean(0)).sum(-1)
        hard = hard and bool(((block == 0.0) | (block == 1.0)).all())
    return Disagreement(
        jsd=jsd.clamp_min_(0.0),  # equal models give 0 but for rounding
        pds=pds,
        n_classes=counts,
        degenerate=hard and int(counts.max()) <= 2,
    )

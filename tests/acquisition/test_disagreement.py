from __future__ import annotations

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.models.deterministic import GenericDeterministicModel
from botorch.optim.optimize import optimize_acqf_discrete

from gp_eval.acquisition import DisagreementSelection, select_items
from gp_eval.disco import disagreement_order

MODEL = GenericDeterministicModel(lambda X: X)
SCORES = torch.tensor([0.3, 0.9, 0.9, 0.1, 0.5, 0.4], dtype=torch.float64)
GROUPS = ["a", "b", "b", "a", "b", "a"]


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_items_come_in_the_order_of_disagreement(groups: list[str] | None) -> None:
    acquisition = DisagreementSelection(MODEL, scores=SCORES, groups=groups)
    expected = disagreement_order(SCORES, groups=groups).tolist()
    available = torch.ones(6, dtype=torch.bool)
    same_as, rank = torch.zeros(6, dtype=torch.long), torch.arange(6)
    chosen = select_items(acquisition, available, q=6, same_as=same_as, rank=rank)
    assert chosen == expected
    available[expected[:2]] = False
    rest = select_items(
        acquisition, available, q=2, pending=expected[:2], same_as=same_as, rank=rank
    )
    assert rest == expected[2:4]


def test_botorch_maximises_it() -> None:
    acquisition = DisagreementSelection(MODEL, scores=SCORES)
    choices = torch.arange(6, dtype=torch.float64).unsqueeze(-1)
    found = optimize_acqf_discrete(acquisition, q=3, choices=choices, unique=True)[0]
    assert found.squeeze(-1).tolist() == [1.0, 2.0, 4.0]


def test_input_constructor_is_registered() -> None:
    construct = get_acqf_input_constructor(DisagreementSelection)
    made = DisagreementSelection(**construct(model=MODEL, scores=SCORES))
    assert made.order.tolist() == [1, 2, 4, 5, 0, 3]

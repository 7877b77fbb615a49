from __future__ import annotations

import pytest
import torch
from oracles import Problem

from gp_eval.acquisition import BatchSelection
from gp_eval.models import (
    BayesAME,
    Performance,
    make_model,
    model_names,
    register_model,
    registry,
)


class Constant:
    def __init__(self, references, *, value: float = 0.5) -> None:
        self.value = torch.tensor(value)

    def condition(self, items, scores) -> None:
        pass

    def performance(self) -> Performance:
        return Performance(self.value, torch.tensor(0.01))

    def acquisition(self) -> None:
        return None


def test_a_third_party_registers_in_one_line(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))
    register_model("constant", Constant)
    assert "constant" in model_names()
    made = make_model("constant", problem.references, value=0.7)
    assert float(made.performance().mean) == pytest.approx(0.7)
    with pytest.raises(ValueError, match="'constant' is registered already"):
        register_model("constant", Constant)


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("lookahead", [False, True])
def test_names_of_batches_are_the_options_of_bayesame(
    problem: Problem, size: int, lookahead: bool
) -> None:
    name = f"bayesame-batch{size}" + ("-lookahead" if lookahead else "")
    made = make_model(name, problem.references, margin=problem.n_items)
    assert isinstance(made, BayesAME)
    assert made.batch_selection == BatchSelection(size, lookahead)


def test_interval_of_a_performance() -> None:
    belief = Performance(torch.tensor(0.5).double(), torch.tensor(0.0004).double())
    low, high = belief.interval()
    assert float(belief.width()) == pytest.approx(2 * 1.959963984540054 * 0.02)
    assert float(high - low) == pytest.approx(float(belief.width()))
    assert float(low + high) / 2 == pytest.approx(0.5)
    assert float(belief.width(0.5)) < float(belief.width())

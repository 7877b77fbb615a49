from __future__ import annotations

import pytest
import torch
from item_response import KINDS, answers, spread

from gp_eval.kernels import PopulationKernel, PopulationStatistics
from gp_eval.linalg import population_table as module
from gp_eval.linalg.kernel_table import DenseKernelTable, make_kernel_table
from gp_eval.linalg.population_table import PopulationTable

CLOSE = {"rtol": 1e-10, "atol": 1e-13}
SIZE = 17


@pytest.fixture(params=[True, False], ids=["stored", "on demand"])
def stored(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(module, "_STORED", SIZE if request.param else SIZE - 1)
    return request.param


def kernel(x: torch.Tensor) -> PopulationKernel:
    ones = torch.ones(x.shape[0], dtype=torch.float64)
    made = PopulationKernel(PopulationStatistics.from_scores(x, ones))
    change(made, 0.3)
    return made


def change(made: PopulationKernel, by: float) -> None:
    with torch.no_grad():
        made.log_variances += by * torch.tensor([1.0, -1.0, 2.0, 0.5])
        made.effects += by
        made.effects_std += by


def rows(kind: str) -> torch.Tensor:
    return answers(spread(6), SIZE, kind=kind, seed=4)


def check(table: PopulationTable, dense: DenseKernelTable) -> None:
    """All views, of all shapes."""
    some, others = torch.tensor([4, 0, 4]), torch.tensor([16, 2])
    vectors = answers(spread(3), SIZE, kind="unbounded")
    for view in (
        lambda t: torch.stack([t.row(b) for b in range(SIZE)]),
        lambda t: t.block(some, others),
        lambda t: t.block(some, some),
        lambda t: t.block(some, slice(2, 9)),
        lambda t: t.block(some, slice(None)),
        lambda t: t.diagonal(),
        lambda t: t.matvec(vectors[:, 0]),
        lambda t: t.matvec(vectors),
    ):
        torch.testing.assert_close(view(table), view(dense), **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_all_views_are_those_of_the_kernel(kind: str, stored: bool) -> None:
    x = rows(kind)
    table = make_kernel_table(kernel(x), x)
    assert isinstance(table, PopulationTable)
    assert (table._stored is not None) is stored
    check(table, DenseKernelTable(kernel(x), x))


@pytest.mark.parametrize("kind", KINDS)
def test_new_hyperparameters_count_after_refresh_and_not_before(
    kind: str, stored: bool
) -> None:
    x = rows(kind)
    made = kernel(x)
    table, before = PopulationTable(made, x), DenseKernelTable(kernel(x), x)
    change(made, -0.7)
    check(table, before)
    table.refresh()
    check(table, DenseKernelTable(made, x))


def test_components_are_the_same_stored_and_on_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = rows("continuous")
    whole = PopulationTable(kernel(x), x)
    monkeypatch.setattr(module, "_STORED", 0)
    bare = PopulationTable(kernel(x), x)
    some, others = torch.tensor([4, 0, 4]), torch.tensor([16, 2])
    for columns in (others, slice(None), slice(3, 5)):
        for left, right in zip(
            whole.components(some, columns), bare.components(some, columns), strict=True
        ):
            torch.testing.assert_close(left, right, **CLOSE)


def test_components_and_variances_make_up_the_block(stored: bool) -> None:
    x = rows("binary")
    made = kernel(x)
    table = PopulationTable(made, x)
    some = torch.tensor([3, 11, 5])
    *working, curve = table.components(some, some)
    *variances, g = made.log_variances.exp().tolist()
    d, slope = table.scale[some], table.sensitivity[some]
    want = sum(v * part for v, part in zip(variances, working, strict=True))
    want = d.outer(d) * want
    want = want + slope.outer(slope) * (g * curve + table.effects(some, some))
    torch.testing.assert_close(table.block(some, some), want, **CLOSE)


def test_products_in_many_blocks_are_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STORED", 0)
    x = answers(spread(4), 1100, kind="continuous")
    made = kernel(x)
    table, vector = PopulationTable(made, x), x[:, 0]
    want = DenseKernelTable(made, x).matvec(vector)
    torch.testing.assert_close(table.matvec(vector), want, **CLOSE)


@pytest.mark.parametrize("level", [2.0**10, 2.0**20])
def test_a_common_level_of_scores_costs_no_digits(level: float, stored: bool) -> None:
    """An expansion of distances that is not centred would lose half of them."""
    x = (rows("unbounded") * 2**20).round() / 2**20
    here = PopulationTable(kernel(x), x)
    there = PopulationTable(kernel(x + level), x + level)
    some = torch.arange(SIZE)
    # What is left is the rounding of means of scores of this size.
    torch.testing.assert_close(
        there.block(some, slice(None)), here.block(some, slice(None)), rtol=1e-8, atol=0
    )


def test_what_is_taken_from_a_table_is_not_the_table(stored: bool) -> None:
    """Callers add noise to the diagonal of a block in place."""
    x = rows("binary")
    table = PopulationTable(kernel(x), x)
    some = torch.arange(SIZE)
    want = table.block(some, some).clone()
    for columns in (some, slice(None)):
        table.block(some, columns).diagonal().add_(1.0)
    torch.testing.assert_close(table.block(some, some), want, rtol=0, atol=0)

"""Sessions with costs and decisions: on disk, resumed, killed at any moment."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from killing import boundaries, copy_with_journal
from sessions import (
    create,
    finish,
    grouped_references,
    journal,
    resume,
    score_of,
    unique_references,
)

from gp_eval import MultiTargetSession, Result, Session, StoppingRule, open_session
from gp_eval.decision import Decision
from gp_eval.errors import DataError, StateMismatchError

N_ITEMS = 40
ITEMS = [f"q{i}" for i in range(N_ITEMS)]
COSTS = {f"q{i}": round(0.1 + 0.37 * (i * 7 % 11), 2) * (i % 9 > 0) for i in range(40)}
BUDGET = StoppingRule(width=1e-9, stable=1e-9, window=5, max_cost=30.0)
UNTIL = StoppingRule(until=Decision.parse("score>=0.52", window=6))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def settings(run: Path) -> dict:
    return json.loads((run / "session.json").read_text())


def spent(items: list[str]) -> Decimal:
    return sum((Decimal(repr(COSTS[item])) for item in items), Decimal(0))


@pytest.fixture(
    scope="module",
    params=[(BUDGET, 1), (BUDGET, 4), (UNTIL, 1), (UNTIL, 4)],
    ids=["budget, singly", "budget, by fours", "until, singly", "until, by fours"],
)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, Path, Result]:
    """Batch size, folder and result of a run that nothing interrupted."""
    stop, q = request.param
    folder = tmp_path_factory.mktemp("whole") / "run"
    with create(folder, unique_references(N_ITEMS), stop=stop, costs=COSTS) as session:
        return q, folder, finish(session, q=q)


def test_the_runs_end_as_their_rules_say(whole: tuple[int, Path, Result]) -> None:
    q, folder, result = whole
    has_budget = settings(folder)["stop"]["max_cost"] is not None
    assert result.stop_reason == ("budget" if has_budget else "decided")
    assert q <= result.n < N_ITEMS
    assert result.cost == float(spent(result.items))
    if result.stop_reason == "budget":
        assert spent(result.items) <= 30
    else:
        assert result.verdict is not None
        assert result.probability is not None


def test_a_run_cut_after_any_event_goes_on_to_the_same_end(
    tmp_path: Path, whole: tuple[int, Path, Result]
) -> None:
    q, folder, expected = whole
    content = journal(folder).read_bytes()
    for length in boundaries(content)[::3]:
        run = copy_with_journal(folder, tmp_path / str(length), content[:length])
        with Session.open(run) as session:
            assert finish(session, q=q) == expected, f"cut after {length} bytes"
        assert resume(run) == expected


def test_a_resumed_run_counts_pending_items_as_paid(run: Path) -> None:
    stop = StoppingRule(width=1e-9, max_cost=3.0)
    with create(run, unique_references(N_ITEMS), stop=stop, costs=COSTS) as session:
        asked = session.ask(N_ITEMS)
        assert spent(asked) <= 3
    with Session.open(run) as session:
        assert session.ask() == []
        assert session.estimate().cost == 0.0
        assert not session.done
        for item in session.pending:
            session.tell(item, score_of(item))
        assert session.stop_reason == "budget"
    assert resume(run).cost == float(spent(asked))


def test_an_item_that_was_tried_and_skipped_stays_paid_after_a_resume(
    run: Path,
) -> None:
    with create(run, unique_references(N_ITEMS), stop=BUDGET, costs=COSTS) as session:
        paid = [item for item in session.ask(9) if COSTS[item] > 0.0][:1]
        session.skip(dict.fromkeys(paid, "timeout"))
        untouched = next(
            i for i in ITEMS if COSTS[i] > 0.0 and i not in {*session.pending, *paid}
        )
        session.skip({untouched: "not there"})
        assert session.estimate().cost == COSTS[paid[0]]
        before = session.estimate()
    assert resume(run) == before


def test_settings_hold_costs_and_their_fingerprint(run: Path) -> None:
    with create(run, unique_references(N_ITEMS), stop=BUDGET, costs=COSTS) as session:
        assert session.costs is not None
        kept = settings(run)["costs"]
        assert kept["values"] == [COSTS[item] for item in ITEMS]
        assert kept["fingerprint"] == session.costs.fingerprint
        assert kept["cost_aware"] is True
    assert settings(run)["stop"]["max_cost"] == 30.0
    with create(run.with_name("2"), grouped_references(N_ITEMS), costs=COSTS):
        assert settings(run.with_name("2"))["costs"]["cost_aware"] is False
    with create(run.with_name("3"), unique_references(N_ITEMS)) as session:
        assert session.costs is None
        assert session.estimate().cost is None


def test_a_decision_comes_back_from_the_settings(run: Path) -> None:
    until = Decision.parse("score<0.3", level=0.99, window=7)
    stop = StoppingRule(until=until, max_items=20)
    create(run, stop=stop).close()
    with Session.open(run) as session:
        assert session.config.stop == stop
    assert settings(run)["stop"]["until"] == {
        "relation": "<", "threshold": 0.3, "level": 0.99, "window": 7,
    }  # fmt: skip


def test_settings_of_before_there_were_costs_are_read(run: Path) -> None:
    create(run).close()
    old = settings(run)
    del old["costs"], old["stop"]["max_cost"], old["stop"]["until"]
    (run / "session.json").write_text(json.dumps(old))
    assert finish(Session.open(run)).stop_reason == "complete"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda costs: costs["values"].__setitem__(3, 0.0), "fingerprint of its costs"),
        (lambda costs: costs["values"].pop(), "expected one per item"),
        (lambda costs: costs["values"].__setitem__(3, -1.0), "finite costs >= 0"),
        (lambda costs: costs.pop("fingerprint"), "costs.fingerprint"),
    ],
)
def test_costs_that_were_changed_are_noticed(run: Path, change, message: str) -> None:
    create(run, unique_references(N_ITEMS), stop=BUDGET, costs=COSTS).close()
    kept = settings(run)
    change(kept["costs"])
    (run / "session.json").write_text(json.dumps(kept))
    with pytest.raises(StateMismatchError, match=message):
        open_session(run)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"costs": {"q0": 1.0}}, DataError, "nothing for 23 of the 24 items"),
        ({"costs": dict.fromkeys(ITEMS, -1.0)}, DataError, "finite costs >= 0"),
        ({"stop": BUDGET}, ValueError, "max_cost: needs the costs"),
        ({"cost_aware": True}, ValueError, "cost_aware: needs the costs"),
        (
            {"stop": StoppingRule(until=Decision.parse("score>=70"))},
            ValueError,
            "expected a threshold in these units",
        ),
    ],
)
def test_what_cannot_work_leaves_no_folder(
    run: Path, options: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        create(run, **options)
    assert not run.exists()


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        (BUDGET, "max_cost: several targets have no budget in common"),
        (StoppingRule(until=Decision.parse("score>=70")), "in these units"),
    ],
)
def test_what_several_targets_cannot_do_leaves_no_folder(
    run: Path, stop: StoppingRule, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        MultiTargetSession.create(
            run, unique_references(), targets=["a", "b"], stop=stop
        )
    assert not run.exists()

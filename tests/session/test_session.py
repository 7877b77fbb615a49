"""Sessions: ask and tell, refuse without a change, resume to the last bit."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from sessions import (
    NEVER,
    Tell,
    Update,
    contents,
    create,
    evaluate,
    events_of,
    finish,
    grouped_references,
    journal,
    keep_events,
    resume,
    score_of,
    unique_references,
)

import gp_eval.models.bayesame
from gp_eval import EvaluationLoop, ReferenceMean, References, Session, StoppingRule
from gp_eval.errors import (
    DataError,
    GpEvalError,
    ScoreError,
    SessionLockedError,
    StateMismatchError,
)
from gp_eval.models import make_model

NAN, INF = math.nan, math.inf
FILES = ["events.jsonl", "references.npz", "session.json"]


def budget(max_items: int) -> StoppingRule:
    return StoppingRule(width=1e-9, stable=1e-9, window=5, max_items=max_items)


def untouched(session: Session) -> list[str]:
    """Items neither asked nor told."""
    touched = {*session.pending, *session.estimate().items}
    return [item for item in session.references.items if item not in touched]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a session that is made by the test."""
    return tmp_path / "run"


@pytest.fixture
def started(run: Path) -> Path:
    """A closed session past two updates, with three items pending."""
    with create(run) as session:
        evaluate(session, 16)
        session.ask(3)
    return run


# Asking and telling


def test_a_new_session_knows_its_prior_and_nothing_else(run: Path) -> None:
    references = unique_references()
    with create(run) as session:
        estimate = session.estimate()
        assert (estimate.n, estimate.N) == (0, 24)
        assert estimate.target == "target"
        assert estimate.mean == pytest.approx(float(references.performance.mean()))
        assert estimate.low < estimate.mean < estimate.high
        assert not session.done
        assert session.stop_reason is None
        assert session.pending == []
    assert sorted(contents(run)) == [".lock", *FILES]


@pytest.mark.parametrize("references", [unique_references(), grouped_references()])
def test_a_session_computes_what_the_loop_in_memory_does(
    run: Path, references: References
) -> None:
    model = make_model("bayesame", references, refit_every=7)
    loop = EvaluationLoop(model, references, stop=NEVER, seed=3, on_alarm="fallback")
    while not loop.done:
        for item in loop.ask():
            loop.tell(item, score_of(references.items[item]))
    expected = loop.result("target", references.items)
    with create(run, references, seed=3) as session:
        assert finish(session) == expected


def test_asked_items_are_pending_in_the_order_of_asking_until_told(run: Path) -> None:
    with create(run) as session:
        asked = session.ask(3) + session.ask()
        assert len(set(asked)) == 4
        assert session.pending == asked
        session.tell(asked[1], 0.5)
        assert session.pending == [asked[0], asked[2], asked[3]]
        assert session.estimate().n == 1


@pytest.mark.parametrize("references", [unique_references(), grouped_references()])
def test_no_item_is_ever_asked_twice(run: Path, references: References) -> None:
    with create(run, references) as session:
        asked = session.ask(5)
    for q in (1, 4, 7, 100):
        with Session.open(run) as session:
            session.tell(session.pending[-1], 0.5)
            asked += session.ask(q)
    assert len(asked) == 24
    assert sorted(asked) == sorted(references.items)
    with Session.open(run) as session:
        assert session.ask(5) == []
        assert not session.done
        assert finish(session).stop_reason == "complete"


def test_a_request_beyond_the_last_item_gets_what_is_left(run: Path) -> None:
    with create(run) as session:
        first = session.ask(20)
        rest = session.ask(20)
    assert (len(first), len(rest)) == (20, 4)
    assert set(first).isdisjoint(rest)


@pytest.mark.parametrize("q", [0, -1, 2.5])
def test_asking_for_less_than_one_is_refused(run: Path, q: int) -> None:
    with create(run) as session:
        before = contents(run)
        with pytest.raises(
            ValueError, match=f"q: expected a whole number of at least 1, got {q}"
        ):
            session.ask(q)
        assert contents(run) == before


@pytest.mark.parametrize("references", [unique_references(), grouped_references()])
def test_scores_come_in_any_order(run: Path, references: References) -> None:
    with create(run, references, refit_every=None) as session:
        asked = session.ask(8)
        for item in reversed(asked):
            session.tell(item, score_of(item))
        reverse = session.estimate()
        later = session.ask(4)
    with create(run.with_name("2"), references, refit_every=None) as session:
        for item in session.ask(8):
            session.tell(item, score_of(item))
        forward = session.estimate()
        assert session.ask(4) == later
    assert reverse.items == asked[::-1]
    assert forward.items == asked
    assert reverse.mean == pytest.approx(forward.mean, rel=1e-12)
    assert reverse.width == pytest.approx(forward.width, rel=1e-10)


@pytest.mark.parametrize("references", [unique_references(), grouped_references()])
def test_scores_that_nobody_asked_for_are_taken(
    run: Path, references: References
) -> None:
    with create(run, references) as session:
        would_be_asked = session.ask()[0]
    with create(run.with_name("2"), references) as session:
        session.tell(would_be_asked, score_of(would_be_asked))
        assert session.estimate().n == 1
        assert session.estimate().items == [would_be_asked]
        assert would_be_asked not in session.ask(23)
    assert resume(session.path).items == [would_be_asked]


def test_a_pending_item_and_others_can_be_told_at_once(run: Path) -> None:
    with create(run) as session:
        asked = session.ask(2)
        other = next(i for i in session.references.items if i not in asked)
        scores = {item: score_of(item) for item in (other, *asked)}
        session.tell_all(scores)
        assert session.estimate().items == [other, *asked]
        assert session.pending == []
    told = [e for e in events_of(run) if isinstance(e, Tell)]
    assert {e.item: e.score for e in told} == scores


def test_telling_the_same_again_changes_nothing(run: Path) -> None:
    with create(run) as session:
        items = evaluate(session, 9)
        before, estimate = contents(run), session.estimate()
        for item in items:
            session.tell(item, score_of(item))
        session.tell_all({item: score_of(item) for item in items})
        session.tell_all({})
        assert contents(run) == before
        assert session.estimate() == estimate


@pytest.mark.parametrize(
    "raw",
    [0.25, np.float64(0.25), np.float32(0.25), torch.tensor(0.25), Decimal("0.25")],
)
def test_a_score_may_be_any_kind_of_number(run: Path, raw: Any) -> None:
    with create(run) as session:
        session.tell("q3", raw)
        assert session.estimate().items == ["q3"]
    told = [e for e in events_of(run) if isinstance(e, Tell)]
    assert [(e.item, e.score) for e in told] == [("q3", 0.25)]


def test_right_and_wrong_may_be_told_as_truth_values_and_integers(run: Path) -> None:
    with create(run) as session:
        session.tell_all({"q3": True, "q4": False, "q5": 1, "q6": -2})
    told = [e.score for e in events_of(run) if isinstance(e, Tell)]
    assert told == [1.0, 0.0, 1.0, -2.0]


@pytest.mark.parametrize("references", [unique_references(), grouped_references()])
def test_five_at_once_are_five_single_asks(run: Path, references: References) -> None:
    with create(run, references) as session:
        assert evaluate(session, 8, q=4)
        at_once = session.ask(5)
    with create(run.with_name("2"), references) as session:
        assert evaluate(session, 8, q=4)
        assert [session.ask()[0] for _ in range(5)] == at_once


@pytest.mark.parametrize("references", [unique_references(), grouped_references()])
@pytest.mark.parametrize("weighted", [False, True])
def test_five_at_once_up_to_each_update_are_a_run_of_single_asks_and_tells(
    run: Path, references: References, weighted: bool
) -> None:
    if weighted:
        weights = np.linspace(1.0, 2.0, 24)
        references = References(
            references.scores, references.items, references.models, item_weights=weights
        )
    with create(run, references, refit_every=5) as session:
        batches = finish(session, q=5)
    with create(run.with_name("2"), references, refit_every=5) as session:
        singles = finish(session, q=1)
    assert batches == singles
    assert [e.n for e in events_of(run) if isinstance(e, Update)] == [5, 10, 15, 20]


def test_selection_by_information_gain_does_not_depend_on_scores_or_seed(
    run: Path,
) -> None:
    with create(run, seed=0) as session:
        first = evaluate(session, 7)
    with create(run.with_name("2"), seed=1) as session:
        for item in first:
            assert session.ask() == [item]
            session.tell(item, 1.0 - score_of(item))


def test_the_seed_fixes_a_random_order(run: Path) -> None:
    orders = []
    for k, seed in enumerate((0, 0, 1)):
        with create(run.with_name(f"r{k}"), grouped_references(), seed=seed) as session:
            orders.append(session.ask(24))
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def test_a_session_leaves_the_global_random_numbers_alone(run: Path) -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    with create(run, grouped_references()) as session:
        finish(session)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


# Stopping


def test_a_run_over_all_items_is_complete_and_exact(run: Path) -> None:
    references = unique_references()
    with create(run, references) as session:
        estimate = finish(session)
        assert session.done
        assert session.stop_reason == estimate.stop_reason == "complete"
        assert session.ask(3) == []
    truth = np.mean([score_of(item) for item in references.items])
    assert estimate.mean == pytest.approx(truth, abs=1e-14)
    assert estimate.width == 0.0


@pytest.mark.parametrize("references", [unique_references(), grouped_references()])
def test_a_budget_counts_items_that_are_pending(
    run: Path, references: References
) -> None:
    with create(run, references, stop=budget(10)) as session:
        evaluate(session, 4)
        assert len(session.ask(5)) == 5
        assert len(session.ask(5)) == 1
        assert session.ask(5) == []
        assert not session.done
    with Session.open(run) as session:
        assert session.ask() == []
        for item in session.pending[:5]:
            session.tell(item, score_of(item))
        assert not session.done
        session.tell(session.pending[0], 0.5)
        assert session.done
        assert session.stop_reason == "max_items"
        assert session.estimate().n == 10


def test_unasked_scores_count_for_the_budget(run: Path) -> None:
    with create(run, stop=budget(4)) as session:
        session.ask(3)
        free = untouched(session)
        session.tell_all({free[0]: 0.5, free[1]: 0.5})
        assert session.ask(3) == []
        session.tell_all({free[2]: 0.5, free[3]: 0.5})
        assert session.stop_reason == "max_items"


def test_a_budget_of_all_items_ends_complete(run: Path) -> None:
    with create(run, stop=budget(24)) as session:
        assert finish(session).stop_reason == "complete"


def test_a_run_converges_when_stable_and_narrow(run: Path) -> None:
    stop = StoppingRule(width=0.03, stable=0.01, window=4)
    with create(run, stop=stop) as session:
        estimate = finish(session)
    assert estimate.stop_reason == "converged"
    assert 4 <= estimate.n < 24

    def met(n: int) -> bool:
        last = estimate.estimates[max(0, n - 4) : n]
        narrow = estimate.widths[n - 1] <= 0.03
        return n >= 4 and narrow and max(last) - min(last) <= 0.01

    assert [met(n) for n in range(1, estimate.n + 1)] == [
        n == estimate.n for n in range(1, estimate.n + 1)
    ]


def test_scores_after_the_stop_are_taken_and_the_reason_stays(run: Path) -> None:
    with create(run, stop=budget(5)) as session:
        evaluate(session, 3)
        session.ask(2)
        late = untouched(session)[-3:]
        finish(session)
        before = session.estimate()
        session.tell_all({item: score_of(item) for item in late})
        after = session.estimate()
        assert session.done
        assert session.ask(4) == []
    assert (before.n, after.n) == (5, 8)
    assert before.stop_reason == after.stop_reason == "max_items"
    assert after.mean != before.mean
    with Session.open(run) as session:
        assert session.done
        assert session.estimate() == after


# One writer


def test_a_second_writer_is_refused_and_a_reader_is_not(run: Path) -> None:
    with create(run) as session:
        evaluate(session, 3)
        asked = session.ask(2)
        with pytest.raises(SessionLockedError, match="open for writing in another"):
            Session.open(run)
        reader = Session.open(run, read_only=True)
        assert reader.estimate() == session.estimate()
        assert reader.pending == asked
        session.tell(asked[0], 0.5)
        assert Session.open(run, read_only=True).estimate() == session.estimate()
        assert reader.estimate().n == 3


def test_a_reader_changes_nothing(started: Path) -> None:
    before = contents(started)
    reader = Session.open(started, read_only=True)
    for call in (
        lambda: reader.ask(),
        lambda: reader.tell("q0", 0.5),
        lambda: reader.tell_all({}),
    ):
        with pytest.raises(SessionLockedError, match="read-only"):
            call()
    reader.close()
    assert contents(started) == before


def test_closing_lets_another_writer_in(run: Path) -> None:
    session = create(run)
    session.close()
    session.close()
    with Session.open(run) as second:
        assert len(second.ask()) == 1
        with pytest.raises(SessionLockedError):
            Session.open(run)
    Session.open(run).close()


def test_a_closed_session_can_be_looked_at_but_not_changed(run: Path) -> None:
    with create(run) as session:
        evaluate(session, 2)
    before = contents(run)
    assert session.estimate().n == 2
    with pytest.raises(SessionLockedError, match="closed"):
        session.ask()
    with pytest.raises(SessionLockedError, match="closed"):
        session.tell("q0", 0.5)
    assert contents(run) == before


def test_an_open_that_fails_leaves_the_lock_free(started: Path) -> None:
    with pytest.raises(StateMismatchError) as error:
        Session.open(started, references=grouped_references())
    Session.open(started).close()
    # Until here the traceback kept the lock from being freed by garbage collection.
    assert error.tb is not None


def test_a_session_stays_in_its_folder_when_the_process_moves_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere" / "run").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with create(Path("run")) as session:
        monkeypatch.chdir(tmp_path / "elsewhere")
        evaluate(session, 2)
    assert resume(tmp_path / "run").n == 2
    assert list((tmp_path / "elsewhere" / "run").iterdir()) == []


# Scores and items that are refused


BAD_SCORES = [
    NAN,
    INF,
    -INF,
    "0.5",
    "",
    b"0.5",
    None,
    [0.5],
    {},
    1j,
    np.float64(NAN),
    torch.tensor(INF),
    torch.zeros(2),
    np.zeros(2),
    10**400,
    Decimal("NaN"),
    np.str_("0.5"),
]


@pytest.mark.parametrize(
    "score", BAD_SCORES, ids=lambda s: f"{type(s).__name__} {s}"[:24]
)
def test_a_score_that_is_no_finite_number_is_refused_and_nothing_changes(
    run: Path, score: Any
) -> None:
    with create(run) as session:
        evaluate(session, 8)
        item = session.ask()[0]
        before, estimate = contents(run), session.estimate()
        with pytest.raises(ScoreError, match=f"score of '{item}': .*finite number"):
            session.tell(item, score)
        with pytest.raises(ScoreError, match=f"score of '{item}'"):
            session.tell_all({**dict.fromkeys(untouched(session), 0.5), item: score})
        assert contents(run) == before
        assert session.estimate() == estimate
        assert session.pending == [item]
        session.tell(item, score_of(item))
        assert session.estimate().n == 9


@pytest.mark.parametrize("item", ["q24", "", "Q1", " q1", 1, None, 0.5, ("q1",)])
def test_an_unknown_item_is_refused_and_nothing_changes(run: Path, item: Any) -> None:
    with create(run) as session:
        evaluate(session, 8)
        before, estimate = contents(run), session.estimate()
        with pytest.raises(ScoreError, match="among the 24 items .*such as 'q0', 'q1'"):
            session.tell(item, 0.5)
        with pytest.raises(ScoreError, match="among the 24 items"):
            session.tell_all({**dict.fromkeys(untouched(session), 0.5), item: 0.5})
        assert contents(run) == before
        assert session.estimate() == estimate


def test_another_score_for_an_item_is_refused_and_nothing_changes(run: Path) -> None:
    with create(run) as session:
        item = evaluate(session, 8)[3]
        free = untouched(session)
        before, estimate = contents(run), session.estimate()
        wrong = score_of(item) + 1e-9
        complaint = f"'{item}' was told before with score {score_of(item)}, now with"
        with pytest.raises(ScoreError, match=complaint):
            session.tell(item, wrong)
        with pytest.raises(ScoreError, match=complaint):
            session.tell_all({free[0]: 0.5, item: wrong, free[1]: 0.5})
        assert contents(run) == before
        assert session.estimate() == estimate
    with Session.open(run) as session, pytest.raises(ScoreError, match=complaint):
        session.tell(item, wrong)


def test_score_errors_are_errors_of_ours_and_value_errors() -> None:
    assert issubclass(ScoreError, GpEvalError)
    assert issubclass(ScoreError, ValueError)


# Failures in the middle


def fail(*_: object, **__: object) -> None:
    raise OSError("no space left")


def test_a_tell_that_could_not_be_written_can_be_told_again(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(run) as session:
        evaluate(session, 3)
        item = session.ask()[0]
        before = session.estimate()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match="no space left"):
                session.tell(item, 0.25)
        assert session.estimate() == before
    with Session.open(run) as session:
        if item in session.pending:
            session.tell(item, 0.25)
        expected = session.estimate()
        assert expected.items[-1] == item
    assert resume(run) == expected


def test_telling_again_after_a_failed_write_keeps_the_session_readable(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = create(run)
    evaluate(session, 3)
    item = session.ask()[0]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no space left"):
            session.tell(item, 0.25)
    # The object may refuse from here on; it may not spoil the folder.
    try:
        session.tell(item, 0.25)
    except SessionLockedError:
        session.close()
        session = Session.open(run)
        session.tell(item, 0.25)
    estimate = session.estimate()
    session.close()
    assert estimate.n == 4
    assert resume(run) == estimate


def test_items_of_an_ask_that_could_not_be_written_are_not_lost(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = create(run)
    evaluate(session, 3)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="no space left"):
            session.ask(2)
    session.close()
    with Session.open(run) as session:
        assert finish(session).stop_reason == "complete"
    with create(run.with_name("2")) as session:
        assert finish(session) == resume(run)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_in_the_middle_of_an_update_loses_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def interrupt(kernel: Kernel, *_: object, **__: object) -> None:
        with torch.no_grad():
            for parameter in kernel.parameters():
                parameter.mul_(3.0)
        raise error

    with create(run.with_name("2")) as session:
        for item in session.ask(10):
            session.tell(item, score_of(item))
        expected = finish(session)
    session = create(run)
    asked = session.ask(10)
    for item in asked[:7]:
        session.tell(item, score_of(item))
    with monkeypatch.context() as patch:
        patch.setattr(gp_eval.models.bayesame, "fit_kernel", interrupt)
        with pytest.raises(error):
            session.tell(asked[7], score_of(asked[7]))
    # The object may refuse from here on; it may not spoil the folder.
    with contextlib.suppress(SessionLockedError):
        session.tell(asked[7], score_of(asked[7]))
    session.close()
    with Session.open(run) as session:
        assert finish(session) == expected


# Making a session


@pytest.mark.parametrize("target", ["m0", "m5"])
def test_a_target_among_the_references_is_refused_and_no_folder_made(
    run: Path, target: str
) -> None:
    with pytest.raises(DataError, match=rf"target: '{target}' is one of .*without"):
        Session.create(run, unique_references(), target=target)
    assert not run.exists()


def test_references_that_are_wrong_never_reach_a_session(run: Path) -> None:
    scores = np.zeros((2, 2))
    with pytest.raises(DataError, match="'twin'"):
        Session.create(
            run, References(scores, ["twin", "twin"], ["a", "b"]), target="t"
        )
    with pytest.raises(DataError, match="at least 1 item"):
        Session.create(run, References(scores[:0], [], ["a", "b"]), target="t")
    assert not run.exists()


def test_references_with_missing_cells_are_refused_and_no_folder_made(
    run: Path,
) -> None:
    references = References(
        [[1.0, NAN], [0.5, 0.5]], ["p", "q"], ["a", "b"], missing="keep"
    )
    with pytest.raises(DataError, match="1 missing cells"):
        Session.create(run, references, target="t")
    assert not run.exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"model": "nope"}, "model: expected one of .*bayesame"),
        ({"model_options": {"speed": 3}}, r"unknown options \['speed'\]"),
        ({"model_options": {"noise": -1.0}}, "noise: "),
        ({"model_options": {"refit_every": 0}}, "refit_every: "),
        ({"model_options": {"selection": "best"}}, "selection: "),
        ({"model_options": {"mean_module": ReferenceMean()}}, "mean_module"),
        ({"model_options": {"margin": INF}}, "margin"),
        ({"seed": 2**70}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"target": 5}, "target"),
    ],
)
def test_options_that_cannot_be_used_are_refused_and_no_folder_made(
    run: Path, options: dict[str, Any], complaint: str
) -> None:
    arguments = {"target": "target"} | options
    with pytest.raises(ValueError, match=complaint):
        Session.create(run, unique_references(), **arguments)
    assert not run.exists()


def test_a_kernel_that_does_not_fit_is_refused_and_no_folder_made(run: Path) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        create(run, covar_module=ScaleKernel(RBFKernel(ard_num_dims=3)))
    assert not run.exists()


def test_creating_over_a_session_is_refused_and_leaves_it(started: Path) -> None:
    before = contents(started)
    with pytest.raises(StateMismatchError, match="holds a session already"):
        create(started)
    assert contents(started) == before


def test_creating_over_an_open_session_is_refused_and_leaves_it(run: Path) -> None:
    with create(run):
        before = contents(run)
        with pytest.raises((StateMismatchError, SessionLockedError)):
            create(run)
        assert contents(run) == before


def test_creating_over_events_without_settings_is_refused_and_leaves_them(
    started: Path,
) -> None:
    (started / "session.json").unlink()
    before = contents(started)
    with pytest.raises(StateMismatchError, match=r"events .*session\.json is gone"):
        create(started)
    assert contents(started) == before
    with pytest.raises(StateMismatchError, match=r"it has no session\.json"):
        Session.open(started)
    assert contents(started) == before


def test_creating_never_replaces_references_that_are_not_its_own(run: Path) -> None:
    run.mkdir()
    (run / "references.npz").write_bytes(b"precious")
    with pytest.raises(StateMismatchError, match=r"references\.npz"):
        create(run)
    assert (run / "references.npz").read_bytes() == b"precious"


def test_a_session_may_be_made_in_an_empty_folder(run: Path) -> None:
    run.mkdir()
    with create(run) as session:
        assert len(session.ask()) == 1


def test_a_session_keeps_scores_and_weights_and_leaves_probabilities_out(
    run: Path,
) -> None:
    plain = unique_references(weighted=True)
    references = References(
        plain.scores,
        plain.items,
        plain.models,
        item_weights=plain.item_weights,
        groups=["g"] * 24,
        probabilities=np.zeros((6, 24, 2)),
        labels=np.zeros(24, dtype=int),
        meta={"metric": "acc"},
    )
    create(run, references).close()
    with Session.open(run, references=references) as session:
        assert session.references.fingerprint == references.fingerprint
        assert session.references.groups == references.groups
        assert session.references.meta == {"metric": "acc"}
        assert session.references.probabilities is None


def test_the_settings_are_readable_and_name_the_versions(run: Path) -> None:
    create(run, seed=3).close()
    settings = json.loads((run / "session.json").read_text())
    assert settings["target"] == "target"
    assert settings["model"] == "bayesame"
    assert settings["model_options"] == {"refit_every": 7}
    assert settings["seed"] == 3
    assert settings["items"] == [f"q{i}" for i in range(24)]
    assert settings["references"] == unique_references().fingerprint
    assert settings["stop"] == {
        "width": 1e-9,
        "stable": 1e-9,
        "window": 5,
        "max_items": None,
        "max_cost": None,
        "until": None,
    }
    assert settings["versions"]["torch"] == torch.__version__
    assert set(settings["versions"]) > {"gp-eval", "gpytorch", "botorch"}


# Opening a session


def test_opening_what_is_no_session_is_refused_and_makes_nothing(
    tmp_path: Path,
) -> None:
    with pytest.raises(StateMismatchError, match=r"'.*absent' is not a session"):
        Session.open(tmp_path / "absent")
    with pytest.raises(StateMismatchError, match="is not a session"):
        Session.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_opening_with_the_same_references_is_fine(started: Path) -> None:
    with Session.open(started, references=unique_references()) as session:
        assert session.estimate().n == 16


def changed(**changes: Any) -> References:
    plain = unique_references()
    arguments: dict[str, Any] = {
        "scores": plain.scores,
        "items": plain.items,
        "models": plain.models,
    }
    return References(**(arguments | changes))


OTHER_SCORE = unique_references().scores.clone()
OTHER_SCORE[5, 2] += 1e-12


@pytest.mark.parametrize(
    ("references", "complaint"),
    [
        (
            changed(items=["new", *(f"q{i}" for i in range(1, 24))]),
            "other items .*lack 'q0' and have 'new'",
        ),
        (unique_references(23), "other items .*lack 'q23'$"),
        (unique_references(25), "other items .*have 'q24'$"),
        (
            changed(models=["m0", "m1", "m2", "m3", "m4", "x"]),
            "other models .*lack 'm5' and have 'x'",
        ),
        (unique_references().without(["m2"]), "other models .*lack 'm2'$"),
        (changed(scores=OTHER_SCORE), "order, scores or weights"),
        (changed(item_weights=range(24)), "order, scores or weights"),
        (
            unique_references().subset(items=[f"q{i}" for i in range(24)][::-1]),
            "order, scores or weights",
        ),
        (
            unique_references().subset(models=["m1", "m0", "m2", "m3", "m4", "m5"]),
            "order, scores or weights",
        ),
    ],
)
def test_opening_with_other_references_is_refused_with_the_difference(
    started: Path, references: References, complaint: str
) -> None:
    before = contents(started)
    with pytest.raises(StateMismatchError, match=complaint) as error:
        Session.open(started, references=references)
    assert error.value.exit_code == 4
    assert contents(started) == before


def test_a_target_that_joined_the_references_is_named_as_a_difference(
    started: Path,
) -> None:
    plain = unique_references()
    scores = torch.cat([plain.scores, plain.scores[:, :1]], dim=1)
    grown = References(scores, plain.items, [*plain.models, "target"])
    with pytest.raises(StateMismatchError, match="have 'target'"):
        Session.open(started, references=grown)


# Damage


def edit_settings(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    settings = json.loads((folder / "session.json").read_text())
    change(settings)
    (folder / "session.json").write_text(json.dumps(settings))


def refused(folder: Path, complaint: str) -> None:
    """Both ways of opening raise, and leave every byte and the lock."""
    before = contents(folder)
    for read_only in (True, False):
        with pytest.raises(StateMismatchError, match=complaint) as error:
            Session.open(folder, read_only=read_only)
        assert error.value.exit_code == 4
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", 2),
        ("target", None),
        ("model", 3),
        ("model_options", []),
        ("covar_module", "RBF"),
        ("stop", {"width": -1.0}),
        ("stop", {"width": 0.1, "wdith": 0.2}),
        ("seed", "zero"),
        ("items", "q0"),
        ("references", 12),
        ("created", None),
        ("versions", "1"),
        ("surprise", 1),
    ],
)
def test_damaged_settings_are_an_error_that_names_the_field(
    started: Path, field: str, value: Any
) -> None:
    edit_settings(started, lambda settings: settings.update({field: value}))
    refused(started, rf"session\.json' is damaged: {field}")


@pytest.mark.parametrize("field", ["target", "stop", "seed", "items", "references"])
def test_settings_that_lack_a_field_are_an_error_that_names_it(
    started: Path, field: str
) -> None:
    edit_settings(started, lambda settings: settings.pop(field))
    refused(started, rf"session\.json' is damaged: {field}: .*required")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_settings_that_are_no_json_object_are_an_error(
    started: Path, content: bytes
) -> None:
    (started / "session.json").write_bytes(content)
    refused(started, r"session\.json' is damaged")


def test_settings_with_other_items_are_an_error(started: Path) -> None:
    edit_settings(started, lambda settings: settings["items"].reverse())
    refused(started, "changed")


def test_changed_references_are_an_error(started: Path) -> None:
    path = started / "references.npz"
    changed(scores=OTHER_SCORE).write(path)
    refused(started, r"references\.npz' was changed: its fingerprint")


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "text", "gone"])
def test_damaged_references_are_an_error(started: Path, damage: str) -> None:
    path = started / "references.npz"
    content = path.read_bytes()
    path.unlink()
    if damage == "flip":
        middle = content.index(b"scores.npy") + 200
        flipped = bytes([content[middle] ^ 0xFF])
        path.write_bytes(content[:middle] + flipped + content[middle + 1 :])
    elif damage != "gone":
        ends = {"cut": content[: len(content) // 2], "empty": b"", "text": b"q0,1\n"}
        path.write_bytes(ends[damage])
    refused(started, r"references of the session: .*references\.npz")


def test_a_missing_journal_is_an_error_and_no_new_one_is_made(started: Path) -> None:
    journal(started).unlink()
    refused(started, r"events\.jsonl' is missing")


def test_a_changed_score_in_the_journal_is_an_error(started: Path) -> None:
    item = next(e.item for e in events_of(started) if isinstance(e, Tell))
    score = f'"score":{score_of(item)}'.encode()
    content = journal(started).read_bytes()
    assert content.count(score) >= 1
    digit = content.index(score) + len(score) - 1
    other = b"1" if content[digit : digit + 1] != b"1" else b"2"
    journal(started).write_bytes(content[:digit] + other + content[digit + 1 :])
    line = content[:digit].count(b"\n") + 1
    refused(
        started, rf"events\.jsonl', line {line}: the line is damaged \(its checksum"
    )


@pytest.mark.parametrize("position", [0, 10, -1])
def test_a_garbage_line_in_the_journal_is_an_error(
    started: Path, position: int
) -> None:
    lines = journal(started).read_bytes().splitlines(keepends=True)
    lines.insert(position, b"garbage\n")
    journal(started).write_bytes(b"".join(lines))
    refused(started, f"line {lines.index(b'garbage' + bytes([10])) + 1}: ")


def test_a_score_that_is_there_twice_is_an_error(started: Path) -> None:
    number = next(k for k, e in enumerate(events_of(started)) if isinstance(e, Tell))
    lines = journal(started).read_bytes().splitlines(keepends=True)
    lines.insert(number + 1, lines[number])
    journal(started).write_bytes(b"".join(lines))
    refused(started, r"events\.jsonl|journal")


def test_a_journal_of_another_session_is_an_error(started: Path) -> None:
    other = started.with_name("other")
    with create(other, unique_references(60)) as session:
        session.tell("q59", 0.5)
    journal(started).write_bytes(journal(other).read_bytes())
    refused(started, "q59")


def test_a_truncated_last_line_is_left_alone_by_a_reader_and_repaired_by_a_writer(
    started: Path,
) -> None:
    content = journal(started).read_bytes()
    whole = content[:-1].rindex(b"\n") + 1
    for length in range(whole + 1, len(content), 11):
        journal(started).write_bytes(content[:length])
        reader = Session.open(started, read_only=True)
        assert journal(started).read_bytes() == content[:length]
        with Session.open(started) as session:
            assert journal(started).read_bytes() == content[:whole]
            assert session.estimate() == reader.estimate()
            assert session.pending == reader.pending == []
            item = session.ask()[0]
            session.tell(item, score_of(item))
            estimate = session.estimate()
        assert resume(started) == estimate


# Resuming


@pytest.mark.parametrize("model", ["bayesame", "bayesame-rs"])
@pytest.mark.parametrize(
    "references",
    [unique_references(), grouped_references(), unique_references(weighted=True)],
)
@pytest.mark.parametrize("q", [1, 3])
def test_a_resumed_session_has_the_same_numbers_to_the_last_bit(
    run: Path, references: References, model: str, q: int
) -> None:
    with create(run, references, model=model) as session:
        for _ in range(6):
            evaluate(session, q, q=q)
            assert Session.open(run, read_only=True).estimate() == session.estimate()
        session.ask(2)
        pending, estimate = session.pending, session.estimate()
    with Session.open(run) as session:
        assert session.pending == pending
        assert session.estimate() == estimate
        resumed = finish(session)
    with create(run.with_name("2"), references, model=model) as session:
        for _ in range(6):
            evaluate(session, q, q=q)
        session.ask(2)
        assert finish(session) == resumed


@pytest.mark.parametrize("seed", range(6))
def test_weighted_sessions_can_always_be_resumed(run: Path, seed: int) -> None:
    plain, generator = unique_references(), np.random.default_rng(seed)
    references = References(
        plain.scores, plain.items, plain.models, item_weights=generator.random(24)
    )
    create(run, references).close()
    with Session.open(run, references=references) as session:
        assert torch.equal(session.references.item_weights, references.item_weights)


def test_resuming_after_every_single_event_changes_nothing(run: Path) -> None:
    create(run).close()
    for _ in range(24):
        with Session.open(run) as session:
            item = session.ask()[0]
        with Session.open(run) as session:
            assert session.pending == [item]
            session.tell(item, score_of(item))
    with create(run.with_name("2")) as session:
        assert finish(session) == resume(run)


def test_updates_are_in_the_journal_once_with_what_the_model_used(run: Path) -> None:
    for _ in range(2):
        if not run.exists():
            create(run).close()
        with Session.open(run) as session:
            evaluate(session, 12)
    updates = [e for e in events_of(run) if isinstance(e, Update)]
    assert [e.n for e in updates] == [7, 14, 21]
    for update in updates:
        assert set(update.hyperparameters) == {"raw_alpha", "raw_beta"}
    assert len({json.dumps(e.hyperparameters) for e in updates}) == 3


def no_optimizer(*_: object, **__: object) -> None:
    raise AssertionError("the optimizer was called")


def test_a_replay_does_not_optimise(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(run) as session:
        evaluate(session, 20)
        estimate = session.estimate()
    monkeypatch.setattr(gp_eval.models.bayesame, "fit_kernel", no_optimizer)
    with Session.open(run) as session:
        assert session.estimate() == estimate
        item = session.ask()[0]
        session.tell(item, score_of(item))
    keep_events(run, lambda event: not isinstance(event, Update))
    with pytest.raises(AssertionError, match="the optimizer was called"):
        Session.open(run)


@pytest.mark.parametrize("stop_at", [7, 8, 14, 20])
def test_a_replay_without_the_updates_has_the_same_numbers_to_the_last_bit(
    run: Path, stop_at: int
) -> None:
    with create(run) as session:
        evaluate(session, stop_at)
        session.ask()
        estimate = session.estimate()
    with_updates = Session.open(run, read_only=True)
    keep_events(run, lambda event: not isinstance(event, Update))
    without = Session.open(run, read_only=True)
    assert with_updates.estimate() == without.estimate() == estimate
    assert with_updates.pending == without.pending
    with Session.open(run) as session:
        again = finish(session)
    with create(run.with_name("2")) as session:
        assert finish(session) == again
    fitted = [
        {e.n: e.hyperparameters for e in events_of(folder) if isinstance(e, Update)}
        for folder in (run, run.with_name("2"))
    ]
    assert fitted[0] == fitted[1]
    assert list(fitted[0]) == [7, 14, 21]


# Kernels of the user


def matern(nu: float = 1.5, lengthscale: float = 0.7) -> ScaleKernel:
    kernel = ScaleKernel(MaternKernel(nu=nu))
    kernel.base_kernel.lengthscale = lengthscale
    kernel.outputscale = 0.3
    return kernel


def test_a_kernel_of_the_user_resumes_with_the_same_numbers(run: Path) -> None:
    kernel = matern()
    before = {k: v.clone() for k, v in kernel.state_dict().items()}
    with create(run, covar_module=kernel) as session:
        evaluate(session, 16)
        session.ask()
        estimate = session.estimate()
        pending = session.pending
    after = kernel.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)
    with Session.open(run, covar_module=matern()) as session:
        assert session.estimate() == estimate
        assert session.pending == pending
        resumed = finish(session)
    with create(run.with_name("2"), covar_module=matern()) as session:
        assert finish(session) == resumed
    with create(run.with_name("3")) as session:
        assert finish(session) != resumed


def test_a_kernel_resumes_from_where_it_started_whatever_its_values_now(
    run: Path,
) -> None:
    with create(run, covar_module=matern(lengthscale=0.7)) as session:
        evaluate(session, 5)
        estimate = session.estimate()
    trained = matern(lengthscale=2.5)
    assert resume(run, covar_module=trained) == estimate
    assert trained.base_kernel.lengthscale.item() == pytest.approx(2.5)


def test_a_kernel_does_not_optimise_in_a_replay(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(run, covar_module=matern()) as session:
        evaluate(session, 16)
        estimate = session.estimate()
    monkeypatch.setattr(gp_eval.models.bayesame, "fit_kernel", no_optimizer)
    assert resume(run, covar_module=matern()) == estimate


@pytest.mark.parametrize(
    ("kernel", "complaint"),
    [
        (None, r"covar_module: .*created with ScaleKernel[\s\S]*MaternKernel"),
        (ScaleKernel(RBFKernel()), r"covar_module: expected [\s\S]*Matern[\s\S]*RBF"),
        (MaternKernel(nu=1.5), "covar_module: expected ScaleKernel"),
        (matern(nu=2.5), "covar_module: "),
        (ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=6)), "covar_module: "),
        (ScaleKernel(MaternKernel(nu=1.5, active_dims=(0, 1))), "covar_module: "),
    ],
    ids=["none", "rbf", "unscaled", "nu", "ard", "active_dims"],
)
def test_another_kernel_than_the_session_was_made_with_is_refused_by_name(
    run: Path, kernel: Kernel | None, complaint: str
) -> None:
    with create(run, covar_module=matern()) as session:
        evaluate(session, 3)
    before = contents(run)
    with pytest.raises(StateMismatchError, match=complaint):
        Session.open(run, covar_module=kernel)
    assert contents(run) == before
    Session.open(run, covar_module=matern()).close()


def test_a_kernel_for_a_session_that_was_made_without_is_refused(
    started: Path,
) -> None:
    with pytest.raises(StateMismatchError, match="covar_module: .*without one"):
        Session.open(started, covar_module=matern())

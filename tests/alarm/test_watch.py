from __future__ import annotations

from pathlib import Path

import pytest
import torch
from alarm_problems import with_target

from gp_eval import BayesAME, EvaluationLoop, References, Session, StoppingRule
from gp_eval.alarm import ControlVariate, RangeWatch, design_estimate
from gp_eval.alarm.watch import is_look
from gp_eval.evaluation import evaluate
from gp_eval.models import make_model
from gp_eval.result import Result

NEVER = StoppingRule(width=1e-12)
ACTIVE = {"margin": 10_000, "refit_every": 20}
"""Items are chosen, however many are the same to the references."""


def started(
    references: References, *, on_alarm: str = "fallback", model: str = "bayesame"
) -> EvaluationLoop:
    options = ACTIVE if model == "bayesame" else {}
    made = make_model(model, references, **options)
    return EvaluationLoop(made, references, stop=NEVER, on_alarm=on_alarm, seed=1)


def advance(loop: EvaluationLoop, scores: torch.Tensor, n: int, q: int = 1) -> None:
    while loop.n < n:
        asked = loop.ask(min(q, n - loop.n))
        assert asked, "nothing left to ask"
        for item in asked:
            loop.tell(item, float(scores[item]))


def result(loop: EvaluationLoop, references: References) -> Result:
    return loop.result("target", references.items)


def test_looks_are_few_and_far_between() -> None:
    assert [n for n in range(500) if is_look(n)] == [
        *(10, 15, 23, 35, 53, 80, 120, 180, 270, 405)
    ]


def test_a_target_above_all_references_raises_an_alarm_that_stays_on() -> None:
    references, scores = with_target(6.0)
    loop = started(references, on_alarm="warn")
    advance(loop, scores, 60)
    state = result(loop, references).range
    assert state is not None
    assert state.since in (10, 15, 23, 35, 53)
    assert state.raised.reason == "above"
    advance(loop, scores, 90)
    assert result(loop, references).range.since == state.since


@pytest.mark.parametrize("ability", [-1.3, -0.5, 0.3])
def test_a_target_among_the_references_raises_none(ability: float) -> None:
    references, scores = with_target(ability, seed=2)
    loop = started(references)
    advance(loop, scores, 200)
    state = result(loop, references).range
    assert state.since is None
    assert state.sentence is None


def test_a_warning_changes_no_number() -> None:
    references, scores = with_target(6.0)
    warned, plain = started(references, on_alarm="warn"), BayesAME(references, **ACTIVE)
    advance(warned, scores, 60)
    for item in warned.scores:
        plain.condition(torch.tensor([item]), scores[item : item + 1])
    assert warned.estimate == pytest.approx(float(plain.performance().mean), rel=1e-12)


def test_after_a_fall_back_the_estimate_is_that_of_the_design() -> None:
    references, scores = with_target(6.0)
    loop = started(references)
    advance(loop, scores, 100)
    since, items = result(loop, references).range.since, list(loop.scores)
    certain, sampled = items[:since], items[since:]
    expected = design_estimate(
        scores,
        ControlVariate.of(references),
        certain=torch.tensor(certain),
        sampled=torch.tensor(sampled),
        weights=references.item_weights,
    )
    assert loop.estimate == pytest.approx(float(expected.mean), rel=1e-10)
    assert loop.width == pytest.approx(float(expected.width()), rel=1e-10)


def test_with_few_random_items_the_interval_is_the_wider_one() -> None:
    references, scores = with_target(6.0)
    loop, warned = started(references), started(references, on_alarm="warn")
    advance(loop, scores, 60)
    since = result(loop, references).range.since
    loop = started(references)
    advance(loop, scores, since + 5)
    advance(warned, scores, since)
    pooled = design_estimate(
        scores,
        ControlVariate.of(references),
        certain=torch.tensor([], dtype=torch.long),
        sampled=torch.tensor(list(loop.scores)),
        weights=references.item_weights,
    )
    model = loop.model.performance()
    assert loop.estimate == pytest.approx(float(pooled.mean), rel=1e-10)
    wider = max(float(model.width()), float(pooled.width()))
    assert loop.width == pytest.approx(wider, rel=1e-10)


def test_a_late_alarm_needs_as_many_random_items_as_were_chosen() -> None:
    """After 53 chosen items, 30 random ones by themselves know less than all."""
    references, scores = with_target(6.0)
    usual, chosen = references.scores[:, 20], list(range(53))
    loop = started(references)
    for item in chosen:
        loop.reserve(item)
    for item in chosen:
        loop.tell(item, float(usual[item]) if item < 35 else 3.0)
    assert result(loop, references).range.since == 53

    def expected(certain: list[int], sampled: list[int]) -> float:
        values = scores.clone()
        values[:53] = torch.tensor(list(loop.scores.values())[:53])
        found = design_estimate(
            values,
            ControlVariate.of(references),
            certain=torch.tensor(certain, dtype=torch.long),
            sampled=torch.tensor(sampled),
            weights=references.item_weights,
        )
        return float(found.mean)

    advance(loop, scores, 53 + 52)
    assert loop.estimate == pytest.approx(expected([], list(loop.scores)), rel=1e-10)
    advance(loop, scores, 53 + 53)
    drawn = list(loop.scores)[53:]
    assert loop.estimate == pytest.approx(expected(chosen, drawn), rel=1e-10)


def test_after_a_fall_back_items_are_drawn_at_random() -> None:
    """The next item is each of the others as often, over 300 seeds."""
    references, _ = with_target(6.0, n_items=20, n_references=30)
    counts = torch.zeros(20)
    for seed in range(300):
        order = torch.randperm(20, generator=torch.Generator().manual_seed(seed))
        watch = RangeWatch(references, order)
        counts[watch.order[0]] += 1
    assert float(((counts - 15) ** 2 / 15).sum()) < 43.8  # chi2(19), 0.001


def test_the_end_is_exact_after_an_alarm() -> None:
    references, scores = with_target(6.0, n_items=60)
    loop = started(references)
    advance(loop, scores, 60)
    assert result(loop, references).range.since is not None
    assert loop.estimate == pytest.approx(float(scores.mean()), rel=1e-12)
    assert loop.width == 0.0


@pytest.mark.parametrize("weighted", [False, True])
def test_asking_for_several_equals_single_asks_after_an_alarm(weighted: bool) -> None:
    references, scores = with_target(6.0)
    if weighted:
        weights = torch.linspace(1, 2, 200, dtype=torch.float64)
        references = References(
            references.scores,
            references.items,
            references.models,
            item_weights=weights,
        )
    one, several = started(references), started(references)
    advance(one, scores, 60)
    since = result(one, references).range.since
    advance(several, scores, since)
    assert several.ask(12) == list(one.scores)[since : since + 12]


def test_scores_told_without_being_asked_are_no_random_sample() -> None:
    references, scores = with_target(6.0)
    loop = started(references)
    advance(loop, scores, 60)
    given = [i for i in range(200) if i not in loop.scores][:30]
    since = result(loop, references).range.since
    drawn = list(loop.scores)[since:]
    for item in given:
        loop.tell(item, float(scores[item]))
    chosen = [*list(loop.scores)[:since], *given]
    expected = design_estimate(
        scores,
        ControlVariate.of(references),
        certain=torch.tensor(chosen),
        sampled=torch.tensor(drawn),
        weights=references.item_weights,
    )
    assert loop.estimate == pytest.approx(float(expected.mean), rel=1e-10)


def test_a_model_that_draws_items_has_a_random_sample_already() -> None:
    references, scores = with_target(6.0)
    loop = started(references, model="bayes-rs-learn")
    advance(loop, scores, 60)
    assert result(loop, references).range.fallen_back
    order = torch.randperm(200, generator=torch.Generator().manual_seed(1))
    assert list(loop.scores) == order[:60].tolist()
    expected = design_estimate(
        scores,
        ControlVariate.of(references),
        certain=torch.tensor([], dtype=torch.long),
        sampled=order[:60],
        weights=references.item_weights,
    )
    assert loop.estimate == pytest.approx(float(expected.mean), rel=1e-10)


@pytest.mark.parametrize("model", ["rs-mean", "aipw", "bayes-aipw"])
def test_models_that_say_they_adapt_are_left_alone(model: str) -> None:
    references, scores = with_target(6.0)
    loop = started(references, model=model)
    advance(loop, scores, 25)
    state = result(loop, references).range
    assert state.action == "adapts"
    assert "allows for such targets itself" in state.sentence
    assert loop.estimate == float(loop.model.performance().mean)


def test_bayesame_adapts_where_it_reports_a_control_variate_of_random_items() -> None:
    references, _ = with_target(0.0)
    assert BayesAME(references, margin=0).adapts_off_range
    assert not BayesAME(references, **ACTIVE).adapts_off_range


def test_evaluate_falls_back_unless_told_otherwise() -> None:
    references, scores = with_target(6.0)
    truth = dict(zip(references.items, scores.tolist(), strict=True))
    stop = StoppingRule(width=1e-12, max_items=60)
    safe, warned = (
        evaluate(
            references,
            truth.__getitem__,
            model=BayesAME(references, **ACTIVE),
            stop=stop,
            **options,
        )
        for options in ({}, {"on_alarm": "warn"})
    )
    assert safe.range.fallen_back
    assert not warned.range.fallen_back
    assert safe.range.since == warned.range.since


def test_an_unknown_response_is_refused() -> None:
    references, _ = with_target(0.0)
    with pytest.raises(ValueError, match="on_alarm: expected 'fallback' or 'warn'"):
        started(references, on_alarm="panic")


# Sessions


def session(path: Path, references: References, **options) -> Session:
    return Session.create(
        path,
        references,
        target="target",
        model_options=ACTIVE,
        stop=NEVER,
        seed=1,
        **options,
    )


@pytest.mark.parametrize("killed_at", [9, 10, 12, 30, 55])
def test_a_resumed_session_has_the_same_alarm_and_draws_the_same_items(
    tmp_path: Path, killed_at: int
) -> None:
    references, scores = with_target(6.0)
    truth = dict(zip(references.items, scores.tolist(), strict=True))

    def go_on(made: Session, n: int) -> None:
        while made.estimate().n < n:
            for item in made.pending or made.ask(1):
                made.tell(item, truth[item])

    with session(tmp_path / "whole", references) as made:
        go_on(made, 60)
        whole = made.estimate()
    with session(tmp_path / "cut", references) as made:
        go_on(made, killed_at)
        made.ask(1)
    with Session.open(tmp_path / "cut") as made:
        go_on(made, 60)
        assert made.estimate() == whole
    assert whole.range.fallen_back


def test_a_session_from_before_there_was_an_alarm_goes_on_without_a_fall_back(
    tmp_path: Path,
) -> None:
    references, scores = with_target(6.0)
    folder = tmp_path / "old"
    with session(folder, references, on_alarm="warn") as made:
        for item in made.ask(40):
            made.tell(item, float(scores[references.items.index(item)]))
        now = made.estimate()
    settings = folder / "session.json"
    lines = settings.read_text().splitlines()
    settings.write_text("\n".join(line for line in lines if "on_alarm" not in line))
    text = settings.read_text().rstrip()
    settings.write_text(text.replace(",\n}", "\n}"))
    with Session.open(folder, read_only=True) as made:
        assert made.estimate() == now
        assert made.config.on_alarm == "warn"


def test_targets_of_a_joint_session_are_watched_one_by_one(tmp_path: Path) -> None:
    from gp_eval.multi_target_loop import MultiTargetLoop

    references, high = with_target(6.0, n_items=60)
    _, usual = with_target(-0.5, n_items=60, seed=0)
    model = make_model("bayesame-multi", references, n_targets=2)
    loop = MultiTargetLoop(model, references, stop=NEVER)
    for target, scores in enumerate((high, usual)):
        for item in range(12):
            loop.tell(target, item, float(scores[item]))
    found = loop.results(["high", "usual"], references.items)
    assert [r.range.action for r in found] == ["warn", "warn"]
    assert found[0].range.now.mean >= found[0].range.now.highest
    assert found[1].range.since is None


# Real data


def test_the_best_ten_on_ifeval_raise_an_alarm_and_are_covered(shared_data) -> None:
    """User report 15: no interval covered them, and no rule to abstain fired."""
    import numpy as np

    from gp_eval.experiments.splits import extrapolation

    loaded = np.load(shared_data / "benchpred_ifeval.npz")
    table = References(
        loaded["scores"].astype(float),
        [str(i) for i in loaded["item_ids"]],
        [f"m{k}" for k in range(loaded["scores"].shape[1])],
    )
    split = extrapolation(table)
    references = split.references(0.5, seed=0)
    off, covered = {"fallback": [], "warn": []}, 0
    for row in split.target_scores():
        for on_alarm, errors in off.items():
            loop = started(references, on_alarm=on_alarm)
            advance(loop, row, 110, q=10)
            found = result(loop, references)
            assert found.range.since <= 23
            errors.append(found.mean - float(row.mean()))
            if on_alarm == "fallback":
                covered += found.low <= float(row.mean()) <= found.high
    assert covered >= 9
    rms = {k: float(torch.tensor(e).square().mean().sqrt()) for k, e in off.items()}
    assert rms["fallback"] < 1.1 * rms["warn"]

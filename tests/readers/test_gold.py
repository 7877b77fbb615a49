"""Probability of the right choice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from logs import choice_row, lm_row, write_lm_eval
from scipy.special import softmax

from gp_eval.errors import DataError
from gp_eval.readers import Log, Options, build_references, read_logs
from gp_eval.readers.gold import gold_probability


def read(path: Path, **options: object) -> Log:
    (log,) = read_logs([path], options=Options(**options)).logs
    return log


def slow_gold(logliks: list[float], gold: list[int]) -> float:
    """The formula, letter by letter."""
    total = sum(np.exp(x) for x in logliks)
    return float(sum(np.exp(logliks[g]) for g in gold) / total)


def test_gold_probability_is_the_literal_formula_and_scipys_softmax() -> None:
    rng = np.random.default_rng(0)
    for n in range(2, 9):
        logliks = (-20 * rng.random(n)).tolist()
        gold = rng.choice(n, size=2, replace=False).tolist()
        got = gold_probability(logliks, gold)
        assert got == pytest.approx(slow_gold(logliks, gold), rel=1e-10)
        assert got == pytest.approx(softmax(logliks)[gold].sum(), rel=1e-10)
        shares = [gold_probability(logliks, [g]) for g in range(n)]
        assert sum(shares) == pytest.approx(1.0, rel=1e-12)  # type: ignore[arg-type]


def test_gold_probability_survives_log_likelihoods_far_below_zero() -> None:
    assert gold_probability([-1e4, -1e4], [0]) == 0.5
    assert gold_probability([-1e4, float("-inf")], [0]) == 1.0
    assert gold_probability([float("-inf")] * 2, [0]) is None
    assert gold_probability([0.0, float("nan")], [0]) is None
    assert gold_probability([0.0, 0.0], [2]) is None


def gold_of(tmp_path: Path, row: dict, metric: str | None = None) -> list[float]:
    path = write_lm_eval(tmp_path, [row])
    (block,) = read(path, value="gold-prob", metric=metric).blocks
    return block.scores.tolist()


@pytest.mark.parametrize(
    ("target", "gold"),
    [("2", [2]), (2, [2]), ("ccc", [2]), ("[0, 2]", [0, 2]), (["a", "ccc"], [0, 2])],
)
def test_targets_are_positions_or_texts(
    tmp_path: Path, target: object, gold: list[int]
) -> None:
    logliks = [-1.0, -2.0, -0.5]
    got = gold_of(tmp_path, choice_row(0, logliks, target, acc=1.0))
    assert got == [pytest.approx(slow_gold(logliks, gold), rel=1e-10)]


def test_a_normed_metric_divides_by_the_length_of_the_choices(tmp_path: Path) -> None:
    """Choices are a, bb, ccc."""
    row = choice_row(0, [-1.0, -2.0, -6.0], "1", acc=0.0)
    expected = softmax([-1.0, -1.0, -2.0])[1]
    assert gold_of(tmp_path, row, "acc_norm") == [pytest.approx(expected, rel=1e-10)]
    row["arguments"]["gen_args_1"]["arg_1"] = " é"  # one character, two bytes
    expected = softmax([-1.0, -1.0, -2.0])[1]
    assert gold_of(tmp_path, row, "acc_bytes") == [pytest.approx(expected, rel=1e-10)]


def test_unconditional_requests_are_no_choices(tmp_path: Path) -> None:
    row = choice_row(0, [-1.0, -2.0, 0.0, 0.0], "0", acc=1.0, acc_mutual_info=1.0)
    assert gold_of(tmp_path, row) == [pytest.approx(softmax([-1.0, -2.0])[0])]


def test_one_request_gives_the_probability_of_the_answer(tmp_path: Path) -> None:
    row = choice_row(0, [-0.7], "anything", acc=1.0)
    assert gold_of(tmp_path, row) == [pytest.approx(np.exp(-0.7), rel=1e-12)]
    row["filtered_resps"] = ["-0.7", "True"]  # a fork without the outer list
    assert gold_of(tmp_path, row) == [pytest.approx(np.exp(-0.7), rel=1e-12)]


def test_a_target_that_contradicts_the_accuracy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="disagree"):
        gold_of(tmp_path, choice_row(0, [-1.0, -2.0], "1", acc=1.0))


@pytest.mark.parametrize(
    "row",
    [
        choice_row(0, [-1.0, -2.0], "none of these", acc=1.0),
        choice_row(0, [-1.0, -2.0], "0", acc=0.43),  # truthfulqa_mc2
        lm_row(0, em=1.0),  # generated text
    ],
)
def test_rows_that_do_not_tell_it_give_no_probability(
    tmp_path: Path, row: dict
) -> None:
    path = write_lm_eval(tmp_path, [row])
    with pytest.raises(DataError, match="gold_prob: no row has log-likelihoods"):
        build_references(read_logs([path], options=Options(value="gold-prob")))


def test_gold_probabilities_of_real_logs(shared_samples: Path) -> None:
    """Independently: the accuracy of lm-eval is where the softmax is largest."""
    folder = shared_samples / "lm_eval" / "own_0.4.13" / "hf_tiny" / "tiny-0"
    (path,) = folder.glob("samples*.jsonl")
    (block,) = read(path, value="gold-prob").blocks
    for line, score in zip(path.read_text().splitlines(), block.scores, strict=True):
        row = json.loads(line)
        shares = softmax([float(x) for x, _ in row["filtered_resps"]])
        assert score == pytest.approx(shares[int(row["target"])], rel=1e-10)
        assert row["acc"] == float(shares.argmax() == int(row["target"]))

from __future__ import annotations

import itertools
import re

import pytest

from gp_eval.report.beside import Beside, Gap, beside
from gp_eval.report.chart import Axis, axis_of, curve_chart, ticks
from gp_eval.report.content import Curves, Report, TargetReport
from gp_eval.report.text import Digits, percent, plain


def target(n: int, *, stopped_at: int | None = None, **options) -> TargetReport:
    estimates = [0.5 + 0.2 / (k + 1) for k in range(n)]
    known = {
        "target": "t",
        "estimate": 0.6,
        "low": 0.5,
        "high": 0.7,
        "n": n,
        "N": 5000,
        "stopped_at": stopped_at,
        "stop_reason": "converged" if stopped_at else None,
        "curves": Curves(estimates=estimates, widths=[0.1] * n),
    }
    return TargetReport.model_construct(**known | options)


def points(path: str) -> list[tuple[float, float]]:
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_the_curve_goes_from_the_first_item_to_the_last() -> None:
    chart = curve_chart(target(10))
    line = points(chart.line)
    assert [x for x, _ in line] == pytest.approx([100.0 * k for k in range(1, 11)])
    # Estimates fall, and down on a screen is up in y.
    assert all(a < b for (_, a), (_, b) in itertools.pairwise(line))
    band = points(chart.band)
    assert len(band) == 20
    for (x, y), (_, up), (_, down) in zip(line, band, reversed(band), strict=False):
        assert up < y < down
        assert y - up == pytest.approx(down - y, abs=0.2)
        assert x > 0.0


def test_a_long_curve_is_thinned_and_keeps_both_ends_and_the_stop() -> None:
    chart = curve_chart(target(5000, stopped_at=1234))
    xs = [x for x, _ in points(chart.line)]
    assert len(xs) <= 401
    assert xs[0] == pytest.approx(0.2)
    assert xs[-1] == 1000.0
    assert any(x == pytest.approx(246.8) for x in xs)
    assert chart.stop == pytest.approx(24.68)


def test_nothing_to_draw_is_no_chart() -> None:
    assert curve_chart(target(0)) is None


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.64, 0.72, ["0.64", "0.66", "0.68", "0.70", "0.72"]),
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.131, 0.139, ["0.132", "0.134", "0.136", "0.138"]),
        (-30.0, 60.0, ["-20", "0", "20", "40", "60"]),
        (1e-6, 4e-6, ["0.000001", "0.000002", "0.000003", "0.000004"]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, labels: list[str]) -> None:
    made = ticks(low, high)
    assert [label for _, label in made] == labels
    for value, label in made:
        assert value == pytest.approx(float(label), abs=1e-12)


def test_counts_have_whole_ticks() -> None:
    assert [label for _, label in ticks(0.0, 3.0, whole=True)] == ["0", "1", "2", "3"]
    assert [v for v, _ in ticks(0.0, 1.0, whole=True)] == [0.0, 1.0]


def test_places_stay_on_the_axis() -> None:
    axis = Axis(1.0, 3.0)
    assert [axis(v) for v in (0.0, 1.0, 2.0, 3.0, 9.0)] == [0, 0, 50, 100, 100]
    assert axis_of([2.0])(2.0) == 50.0


def test_digits_follow_the_width() -> None:
    assert Digits(0.03)(0.5) == "0.5000"
    assert Digits(0.3)(0.5) == "0.500"
    assert Digits(3.0)(50.0) == "50.00"
    assert Digits(2e-6)(0.5) == "0.50000000"
    assert Digits(0.0)(0.5) == "0.5000"


def test_shares_never_round_to_certainty() -> None:
    assert percent(0.9999) == ">99 %"
    assert percent(1.0) == "100 %"
    assert percent(1e-9) == "<1 %"
    assert percent(0.0) == "0 %"


def test_names_are_on_one_line_and_show_what_they_hide() -> None:
    assert plain("a\nb\tc\r\nd") == "a b c d"
    assert plain("x\x00\x1b[31m\u202ey\u2066") == "x\ufffd\ufffd[31m\ufffdy\ufffd"
    assert plain("naïve 中文 ✓") == "naïve 中文 ✓"


def test_of_many_references_the_nearest_and_both_ends_are_shown() -> None:
    references = [
        {"model": f"m{k}", "score": score}
        for k, score in enumerate([0.99 - 0.01 * k for k in range(60)])
    ]
    report = Report.model_construct(
        targets=[target(3)],
        references=[_reference(entry) for entry in references],
    )
    rows = beside(report, nearest=2)
    shown = [row.name if isinstance(row, Beside) else row.n for row in rows]
    assert shown == ["m0", 36, "m37", "m38", "t", "m39", "m40", 18, "m59"]
    assert isinstance(rows[1], Gap)
    everything = beside(report, nearest=100)
    assert len(everything) == 61
    scores = [row.score for row in everything]
    assert scores == sorted(scores, reverse=True)


def _reference(entry: dict):
    from gp_eval.report.content import ReferenceScore

    return ReferenceScore(**entry)

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest
from logs import inspect_header, inspect_sample, write_eval

from gp_eval.errors import DataError, MissingDependencyError
from gp_eval.readers import Log, Policies, build_references, read_logs
from gp_eval.readers.records import ERRORED, SCORED, UNSCORED


def read(path: Path) -> Log:
    (log,) = read_logs([path]).logs
    return log


@pytest.mark.parametrize(
    ("value", "score"),
    [
        *(("C", 1.0), ("I", 0.0), ("P", 0.5), ("N", 0.0), (True, 1.0), (0.25, 0.25)),
        *(("0.5", 0.5), ("yes", 1.0), ("No", 0.0), ("true", 1.0), (1, 1.0)),
    ],
)
def test_values_of_inspect(tmp_path: Path, value: object, score: float) -> None:
    path = write_eval(tmp_path / "a.eval", [inspect_sample(1, value)])
    assert read(path).blocks[0].scores.tolist() == [score]


@pytest.mark.parametrize("value", ["maybe", [1, 2], {"a": "x"}, ""])
def test_other_values_are_refused_and_never_zero(tmp_path: Path, value: object) -> None:
    path = write_eval(tmp_path / "a.eval", [inspect_sample(1, value)])
    log = read(path)
    assert not log.blocks
    assert "match" in log.refused


def test_nan_and_null_are_unscored_and_failures_are_errored(tmp_path: Path) -> None:
    samples = [
        inspect_sample("a", float("nan")),
        {"id": "b", "epoch": 1, "scores": {"match": {"value": None}}},
        inspect_sample("c", error="boom"),
        inspect_sample("d", "C"),
    ]
    (block,) = read(write_eval(tmp_path / "a.eval", samples)).blocks
    assert block.states.tolist() == [UNSCORED, UNSCORED, ERRORED, SCORED]


def test_archives_of_zstd_need_the_extra_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_eval(tmp_path / "a.eval", [inspect_sample(1, "C")], zstd=True)
    assert read(path).blocks[0].scores.tolist() == [1.0]
    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        return  # Python itself knows it
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    with pytest.raises(MissingDependencyError, match=r"zstd: pip .*gp-eval\[logs\]"):
        read(path)


def test_a_killed_run_is_read_from_its_journal_in_the_order_of_writing(
    tmp_path: Path,
) -> None:
    samples = [inspect_sample(i, "C") for i in range(12)]
    log = read(write_eval(tmp_path / "a.eval", samples, killed=True))
    assert log.blocks[0].items == [str(i) for i in range(12)]  # 10 after 9, not after 1
    assert log.notes["runs with status started"] == 1


def test_epochs_are_averaged_and_counted(tmp_path: Path) -> None:
    samples = [
        inspect_sample(item, value, epoch=epoch)
        for item, values in (("a", "CCI"), ("b", "III"))
        for epoch, value in enumerate(values, start=1)
    ]
    built = build_references(read_logs([write_eval(tmp_path / "a.eval", samples)]))
    assert built.scores.tolist() == [[pytest.approx(2 / 3)], [0.0]]
    assert built.counts["repeats_averaged"] == 4


def test_a_killed_run_gives_no_score_from_some_of_the_epochs(tmp_path: Path) -> None:
    """Their mean is another score than the mean of all."""
    samples = [inspect_sample("a", value, epoch=e) for e, value in ((1, "C"), (2, "I"))]
    samples.append(inspect_sample("b", "C", epoch=1))
    path = write_eval(tmp_path / "a.eval", samples, killed=True, config={"epochs": 2})
    log = read(path)
    assert set(log.blocks[0].items) == {"a"}
    assert log.notes["epochs of unfinished samples"] == 1


def test_a_retry_keeps_the_latest_that_did_not_fail(tmp_path: Path) -> None:
    first = [inspect_sample("a", "I"), inspect_sample("b", error="x")]
    second = [inspect_sample("a", error="y"), inspect_sample("b", "C")]
    write_eval(tmp_path / "1.eval", first)
    # Later although its clock time is earlier: another time zone.
    write_eval(tmp_path / "2.eval", second, created="2026-01-02T00:04:05-05:00")
    built = build_references(read_logs([tmp_path]))
    assert built.scores.tolist() == [[0.0], [1.0]]
    third = [inspect_sample("a", "C"), inspect_sample("b", "C")]
    write_eval(tmp_path / "0.eval", third, created="2026-01-02T09:04:05+00:00")
    assert build_references(read_logs([tmp_path])).scores.tolist() == [[1.0], [1.0]]


def test_another_run_is_no_retry(tmp_path: Path) -> None:
    write_eval(tmp_path / "1.eval", [inspect_sample("a", "I")])
    later = {"task_id": "t2", "created": "2026-02-02T03:04:05+00:00"}
    write_eval(tmp_path / "2.eval", [inspect_sample("a", "C")], **later)
    with pytest.raises(DataError, match=r"'org/m' \(in '1.eval', '2.eval'\)"):
        build_references(read_logs([tmp_path]))
    latest = build_references(read_logs([tmp_path]), policies=Policies(runs="latest"))
    mean = build_references(read_logs([tmp_path]), policies=Policies(runs="mean"))
    assert (latest.scores.item(), mean.scores.item()) == (1.0, 0.5)


def test_json_logs_hold_the_same_as_archives(tmp_path: Path) -> None:
    samples = [inspect_sample("x", "C"), inspect_sample(3, float("nan"))]
    archive = read(write_eval(tmp_path / "a.eval", samples)).blocks[0]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(inspect_header() | {"samples": samples}, indent=2))
    assert "NaN" in path.read_text()
    inline = read(path).blocks[0]
    assert inline.items == archive.items == ["x", "3"]
    assert inline.states.tolist() == archive.states.tolist()


def test_an_id_listed_twice_in_an_epoch_is_refused(tmp_path: Path) -> None:
    samples = [inspect_sample(1, "C"), inspect_sample("1", "C")]
    with pytest.raises(DataError, match="listed twice"):
        read(write_eval(tmp_path / "a.eval", samples))


def test_names_of_entries_lead_nowhere(tmp_path: Path) -> None:
    """Only fixed names are read, and none is written."""
    folder = tmp_path / "in"
    folder.mkdir()
    extra = {"../../evil.json": b"x", "/etc/evil": b"x", "samples/../../e_epoch_1": b""}
    path = write_eval(folder / "a.eval", [inspect_sample("../../x", "C")], extra=extra)
    before = sorted(tmp_path.rglob("*"))
    assert read(path).blocks[0].items == ["../../x"]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_zip_of_something_else_is_no_log(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x.txt", "x")
    with pytest.raises(DataError, match="of no known format"):
        read(tmp_path / "a.zip")
    with pytest.raises(DataError, match="no header"):
        read_logs([tmp_path / "a.zip"], format="inspect")

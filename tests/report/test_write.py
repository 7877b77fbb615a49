from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command import gp_eval
from PIL import Image
from reports import HOSTILE, hostile_references, session, tell_all
from sessions import contents

from gp_eval import Groups
from gp_eval.errors import DataError
from gp_eval.report.build import build_report
from gp_eval.report.content import Report
from gp_eval.report.markdown import markdown_report
from gp_eval.report.write import write_report

KEYS = {
    "target": "target estimate low high width kind covers n N done stop_reason "
    "stopped_at stop verdict probability decision cost spending rank rank_best "
    "rank_worst warnings curves groups groups_note group_by ungrouped macro micro "
    "stops_on surprises surprises_note surprise_rms evaluated pending skipped",
    "group": "group n N share estimate low high references_mean",
    "item": "item group score references_mean predicted predicted_std surprise",
    "report": "format level targets comparison references provenance",
    "provenance": "model model_options kernel hyperparameters hyperparameters_at stop "
    "seed n_items n_references n_evaluated weighted fingerprint meta created "
    "last_event versions reported reported_with",
}
"""Scripts rely on these: a new format number where one of them goes."""


def report(path: Path, **options) -> Report:
    with session(path, **options) as made:
        return build_report(made)


def test_json_has_stable_keys_and_reads_back_to_the_last_bit(tmp_path: Path) -> None:
    made = report(tmp_path / "run")
    path = write_report(made, tmp_path / "a.json")
    assert Report.model_validate_json(path.read_bytes()) == made
    record = json.loads(path.read_bytes())
    target = record["targets"][0]
    for name, entry in (
        ("report", record),
        ("target", target),
        ("group", target["groups"][0]),
        ("item", target["surprises"][0]),
        ("provenance", record["provenance"]),
    ):
        assert list(entry) == KEYS[name].split()
    assert target["estimate"] == made.targets[0].estimate


def test_markdown_says_the_same(tmp_path: Path) -> None:
    made = report(tmp_path / "run")
    text = markdown_report(made)
    (target,) = made.targets
    assert f"**{target.estimate:.4f}**" in text
    for part in (target.covers, target.stop, "| law | ", made.provenance.fingerprint):
        assert part in text
    rows = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    assert len(rows) > 25


def test_markdown_has_both_means_and_says_whose_groups_they_are(tmp_path: Path) -> None:
    with session(tmp_path / "run") as made:
        groups = Groups("m.csv:`level`", ("easy", "hard", "") * 8)
        made = build_report(made, groups=groups)
    (target,) = made.targets
    text = markdown_report(made)
    assert "### Score by group (m.csv:\\`level\\`)" in text
    lines = [line for line in text.splitlines() if line.startswith("| *")]
    names = [line.split("|")[1].strip() for line in lines[:3]]
    assert names == [
        "*in no group*",
        "*macro mean, of groups*",
        "*micro mean, of items*",
    ]
    assert f"{target.macro.estimate:.3f}" in lines[1]
    assert "| 9 of 24 |" in lines[2]
    assert target.groups_note in text


def test_names_are_neither_markdown_nor_html_nor_new_lines(tmp_path: Path) -> None:
    made_at = tmp_path / "run"
    references = hostile_references()
    with session(made_at, n=0, references=references, target=HOSTILE) as made:
        tell_all(made, 12)
        made.ask(1)
        text = markdown_report(build_report(made))
    assert "<script" not in text
    assert "<img" not in text
    assert "http://" not in text  # the colon is escaped: no link by itself
    assert "\u202e" not in text
    assert not re.search(r"(?<!\\)(`|\[x|\$)", text)
    columns = None
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line))
        if cells and columns is None:
            columns = cells
        if cells:
            assert cells == columns, line
        else:
            columns = None


def test_a_picture_is_a_picture_whatever_the_name(tmp_path: Path) -> None:
    name = "$x^{$<b>"
    made = report(tmp_path / "run", target=name)
    path = write_report(made, tmp_path / "a.png")
    with Image.open(path) as picture:
        assert picture.size[0] > 500


def test_a_picture_needs_a_score(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no item was evaluated yet"):
        write_report(report(tmp_path / "run", n=0), tmp_path / "a.png")
    assert not (tmp_path / "a.png").exists()


def test_a_failed_write_leaves_the_old_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = report(tmp_path / "run")
    path = tmp_path / "a.md"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(made, path)
    assert path.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.md", "run"]


# The command


def test_the_command_writes_all_formats_and_touches_nothing(tmp_path: Path) -> None:
    session(tmp_path / "run").close()
    before = contents(tmp_path / "run")
    names = ["a.html", "a.json", "a.md", "a.png"]
    outputs = [word for name in names for word in ("-o", tmp_path / name)]
    done = gp_eval("report", tmp_path / "run", *outputs)
    assert (done.code, done.out) == (0, "")
    assert done.err.count("Report: ") == 4
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)
    assert contents(tmp_path / "run") == before


def test_the_command_reports_while_another_process_writes(tmp_path: Path) -> None:
    with session(tmp_path / "run"):
        done = gp_eval("report", tmp_path / "run", "-o", tmp_path / "a.md")
    assert done.code == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.pdf", "expected one of"), ("nowhere/a.html", "no such folder")],
)
def test_what_cannot_be_written_is_said_before_the_work(
    tmp_path: Path, name: str, message: str
) -> None:
    done = gp_eval("report", tmp_path / "no-run", "-o", tmp_path / name)
    assert done.code == 1
    assert message in done.err


def test_a_folder_that_is_no_session_is_exit_4(tmp_path: Path) -> None:
    done = gp_eval("report", tmp_path, "-o", tmp_path / "a.md")
    assert done.code == 4
    assert "is not a session" in done.err

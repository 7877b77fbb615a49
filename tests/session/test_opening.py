"""Folders of either kind of session, and of those made before there were two."""

from __future__ import annotations

import json
from pathlib import Path

import multi_target_sessions as multi
import pytest
import torch
from sessions import contents, create, evaluate, events_of, journal

from gp_eval import MultiTargetSession, References, Session, open_session
from gp_eval.errors import ScoreError, SessionLockedError, StateMismatchError
from gp_eval.session.journal import Ask, Journal, Tell


@pytest.fixture
def single(tmp_path: Path) -> Path:
    with create(tmp_path / "single") as session:
        evaluate(session, 9)
        session.ask(2)
    return tmp_path / "single"


@pytest.fixture
def several(tmp_path: Path) -> Path:
    with multi.create(tmp_path / "several") as session:
        multi.evaluate(session, 13)
        session.ask(2)
    return tmp_path / "several"


def test_a_folder_is_opened_by_the_class_it_is_of(single: Path, several: Path) -> None:
    with open_session(single) as one, open_session(str(several)) as many:
        assert type(one) is Session
        assert type(many) is MultiTargetSession
        assert one.targets == ["target"]
        assert one.estimates() == [one.estimate()]
        assert (
            many.estimates()
            == MultiTargetSession.open(several, read_only=True).estimates()
        )
        assert (len(one.pending), len(many.pending)) == (2, 2)


@pytest.mark.parametrize("name", ["single", "several"])
def test_arguments_reach_the_class(
    name: str, request: pytest.FixtureRequest, single: Path, several: Path
) -> None:
    folder = {"single": single, "several": several}[name]
    reader = open_session(folder, read_only=True)
    with pytest.raises(SessionLockedError, match="read-only"):
        reader.ask()
    other = References([[0.5, 1.0]], ["q0"], ["m0", "m1"])
    with pytest.raises(StateMismatchError, match="other items"):
        open_session(folder, references=other)
    open_session(folder).close()


def test_progress_is_handed_on(several: Path) -> None:
    steps: list[int] = []
    with open_session(several, progress=lambda step, _: steps.append(step)) as session:
        assert isinstance(session, MultiTargetSession)
        multi.evaluate(session, 10)
    assert steps == [1, 2, 3, 4, 5]


def test_the_other_class_says_which_one_to_use(single: Path, several: Path) -> None:
    before = contents(single), contents(several)
    for read_only in (True, False):
        with pytest.raises(
            StateMismatchError, match="several' is a session of several targets: use "
            "MultiTargetSession.open or open_session"
        ):  # fmt: skip
            Session.open(several, read_only=read_only)
        with pytest.raises(
            StateMismatchError,
            match="single' is a session of one target: use Session.open or open_ses",
        ):
            MultiTargetSession.open(single, read_only=read_only)
    assert (contents(single), contents(several)) == before
    Session.open(single).close()
    MultiTargetSession.open(several).close()


def test_what_is_no_session_is_refused_and_nothing_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "file"):
        with pytest.raises(StateMismatchError, match="is not a session"):
            open_session(path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'"a"'])
def test_damaged_settings_are_an_error(several: Path, content: bytes) -> None:
    (several / "session.json").write_bytes(content)
    for opener in (open_session, Session.open, MultiTargetSession.open):
        with pytest.raises(StateMismatchError, match=r"session\.json' is damaged"):
            opener(several)


def test_a_model_of_several_targets_is_refused_for_one(tmp_path: Path) -> None:
    references = multi.unique_references()
    with pytest.raises(ValueError, match="'shared-mean' is of several .*MultiTarget"):
        Session.create(tmp_path / "run", references, target="t", model="shared-mean")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("target", ["", 5, None])
def test_one_target_has_a_name_as_well(tmp_path: Path, target: object) -> None:
    references = multi.unique_references()
    with pytest.raises(ValueError, match="target: expected a name that is not empty"):
        Session.create(tmp_path / "run", references, target=target)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "event",
    [
        Tell(item="q1", target="target", score=0.5),
        Ask(items=["q1"], targets=["target"]),
    ],
)
def test_events_that_name_a_target_are_none_of_a_single_session(
    tmp_path: Path, event: Ask | Tell
) -> None:
    create(tmp_path / "run").close()
    Journal(journal(tmp_path / "run")).append([event])
    with pytest.raises(StateMismatchError, match="an event names target 'target'"):
        Session.open(tmp_path / "run")


# Written by gp_eval 0.1.0 before there were several targets.

OLD_SETTINGS = """{
  "format": 1,
  "target": "mine",
  "model": "bayesame",
  "model_options": {"refit_every": 2},
  "covar_module": null,
  "stop": {"width": 0.001, "stable": 0.005, "window": 30, "max_items": 4},
  "seed": 5,
  "items": ["p", "q", "r", "s"],
  "references": "6cd2996cfccee86404f2811622986f87108faf8da405c67152ed90fecaf662e2",
  "created": "2026-11-30T05:14:13.497+00:00",
  "versions": {"gp-eval": "0.1.0", "torch": "2.13.0+cpu", "gpytorch": "1.15.2"}
}"""

OLD_EVENTS = [
    '{"time":"2026-11-30T05:14:13.645+00:00","event":"ask","items":["q","p"],'
    '"crc":"34ef9ab4"}',
    '{"time":"2026-11-30T05:14:13.645+00:00","event":"tell","item":"q","score":0.25,'
    '"crc":"890477e4"}',
    '{"time":"2026-11-30T05:14:13.646+00:00","event":"tell","item":"p","score":1.0,'
    '"crc":"283a262a"}',
    '{"time":"2026-11-30T05:14:13.655+00:00","event":"update","n":2,"hyperparameters":'
    '{"raw_alpha":[0.15614999999982643],"raw_beta":[149.09270131733996]},'
    '"crc":"58599e4b"}',
    '{"time":"2026-11-30T05:14:13.655+00:00","event":"ask","items":["r"],'
    '"crc":"5ecf6126"}',
    '{"time":"2026-11-30T05:14:13.655+00:00","event":"tell","item":"r","score":0.5,'
    '"crc":"443f2472"}',
    '{"time":"2026-11-30T05:14:13.656+00:00","event":"ask","items":["s"],'
    '"crc":"e34f69c5"}',
]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    scores = [[0.1, 0.9], [0.4, 0.6], [0.8, 0.7], [0.2, 0.5]]
    references = References(scores, ["p", "q", "r", "s"], ["m0", "m1"])
    folder = tmp_path / "old"
    folder.mkdir()
    references.write(folder / "references.npz")
    (folder / "session.json").write_text(OLD_SETTINGS)
    journal(folder).write_text("".join(line + "\n" for line in OLD_EVENTS))
    return folder


def test_a_folder_made_before_there_were_several_targets_goes_on(old: Path) -> None:
    with open_session(old) as session:
        assert isinstance(session, Session)
        result = session.estimate()
        # As it was printed then, possibly on another machine.
        assert result.mean == pytest.approx(0.5234977740171765, rel=1e-9)
        assert result.width == pytest.approx(0.38725992615345524, rel=1e-9)
        assert result.items == ["q", "p", "r"]
        assert session.pending == ["s"]
        session.tell("s", 0.75)
        assert session.stop_reason == "complete"


def test_lines_of_one_target_are_as_they_were(old: Path) -> None:
    fresh = old.with_name("fresh")
    fresh.mkdir()
    Journal(journal(fresh)).create()
    Journal(journal(fresh)).append(events_of(old))
    assert journal(fresh).read_text().splitlines() == OLD_EVENTS


def test_settings_of_one_target_have_the_fields_they_had(single: Path) -> None:
    """And those that an older version would not go by, which therefore refuses them."""
    settings = json.loads((single / "session.json").read_text())
    added = {"costs", "on_alarm"}
    assert settings.keys() == {*json.loads(OLD_SETTINGS), *added}


@pytest.mark.parametrize("model", ["bayesame-logit", "irt-2pl"])
def test_a_score_that_the_model_cannot_take_is_refused_before_it_is_written(
    tmp_path: Path, model: str
) -> None:
    """On disk it would make the folder impossible to replay."""
    generator = torch.Generator().manual_seed(0)
    references = References(
        (torch.rand(12, 5, generator=generator) > 0.5).double(),
        [f"q{i}" for i in range(12)],
        [f"m{k}" for k in range(5)],
    )
    with Session.create(tmp_path / "run", references, target="t", model=model) as made:
        with pytest.raises(ScoreError, match="q3"):
            made.tell_all({"q2": 1.0, "q3": 0.5})
        made.tell("q4", 1.0)
    with Session.open(tmp_path / "run") as again:
        assert again.estimate().items == ["q4"]

"""The page: well-formed, self-contained, and deaf to what names try."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from reports import HOSTILE, hostile_references, session, tell_all
from sessions import NEVER, unique_references

from gp_eval import Groups, MultiTargetSession, StoppingRule
from gp_eval.report.build import build_report
from gp_eval.report.content import Report
from gp_eval.report.html import html_report
from gp_eval.report.text import plain

VOID = {"meta", "link", "br", "img", "input", "hr"}
ELEMENTS = """
html head meta link title style body header main section footer h1 h2 h3 p b div span
br bdi table caption thead tbody tr th td ul li details summary svg path
"""


class Page(HTMLParser):
    """Elements, attributes and text; complains about tags that do not match."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        assert len({name for name, _ in attrs}) == len(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data


def hostile(path: Path) -> Report:
    """Every name attacks, and every part of the page is there."""
    with session(
        path, n=0, references=hostile_references(), target=HOSTILE + "t"
    ) as made:
        tell_all(made, 12)
        pending = made.ask(2)
        made.skip({pending[0]: HOSTILE + "why"})
        of_item = (*made.references.groups[:-1], "")
        return build_report(made, groups=Groups(f"{HOSTILE}.csv:{HOSTILE}", of_item))


def joint(path: Path) -> Report:
    references = hostile_references()
    names = [HOSTILE + "t0", HOSTILE + "t1", HOSTILE + "t2"]
    with MultiTargetSession.create(
        path,
        references,
        targets=names,
        stop=NEVER,
        model_options={"steps": 5, "initial": 0.2},
    ) as made:
        for k, (target, item) in enumerate(made.ask(12)):
            made.tell(target, item, 0.5 + 0.01 * (k % 7))
        return build_report(made)


@pytest.mark.parametrize("make", [hostile, joint])
def test_names_are_text_and_nothing_else(tmp_path: Path, make) -> None:
    report = make(tmp_path)
    page = Page(html_report(report))
    assert page.tags <= set(ELEMENTS.split())
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    for target in report.targets:
        assert plain(target.target) in page.text
    for target in report.targets:
        for name in (
            *(item.item for item in target.surprises),
            *(group.group for group in target.groups),
            target.group_by,
            *(item.reason for item in target.skipped),
            *target.pending,
        ):
            assert plain(name) in page.text
    assert plain(report.references[0].model) in page.text
    assert "alert(1)" in page.text
    assert "{{7*7}}" in page.text  # a name is no template


@pytest.mark.parametrize("make", [hostile, joint])
def test_the_page_needs_nothing_from_outside(tmp_path: Path, make) -> None:
    page = Page(html_report(make(tmp_path)))
    outside = re.compile(r"//|url\(|@import", re.IGNORECASE)
    for tag, name, value in page.attributes:
        if name in ("src", "href", "srcset", "data", "action", "style", "d"):
            assert not outside.search(value), (tag, name, value)
    (policy,) = [v for _, n, v in page.attributes if n == "content" and "src" in v]
    assert policy.startswith("default-src 'none'")
    style = re.search(r"<style>(.*?)</style>", html_report(make(tmp_path / "b")), re.S)
    assert style is not None
    assert not outside.search(style.group(1))


def test_a_page_of_plain_names_mentions_no_address(tmp_path: Path) -> None:
    with session(tmp_path) as made:
        content = html_report(build_report(made))
    assert not re.search(r"https?:", content)
    assert "<script" not in content
    assert content.startswith("<!DOCTYPE html>")


def test_everything_promised_is_on_the_page(tmp_path: Path) -> None:
    with session(tmp_path) as made:
        report = build_report(made)
    page = Page(html_report(report))
    (target,) = report.targets
    for text in (
        "my/model",
        target.covers,
        target.stop,
        "9 of 24 items",
        "Score by group",
        "physics",
        target.surprises[0].item,
        "Beside the reference models",
        report.references[0].model,
        report.provenance.fingerprint,
        "bayesame",
        "report made",
        *target.warnings,
    ):
        assert text in page.text
    attributes = {name: value for _, name, value in page.attributes}
    assert "prefers-color-scheme: dark" in html_report(report)
    assert "width=device-width" in {v.split(",")[0] for _, n, v in page.attributes}
    assert attributes["lang"] == "en"


def test_the_stop_is_marked_where_it_was(tmp_path: Path) -> None:
    stop = StoppingRule(width=1e-9, max_items=6)
    with session(tmp_path, n=6, stop=stop) as made:
        content = html_report(build_report(made))
    assert "stopped at 6 of 24" in content
    with session(tmp_path / "b") as made:
        assert "stopped at" not in html_report(build_report(made))


def test_a_session_without_scores_has_a_page_without_a_chart(tmp_path: Path) -> None:
    with session(tmp_path, n=0, references=unique_references()) as made:
        page = Page(html_report(build_report(made)))
    assert ("div", "class", "chart") not in page.attributes
    assert "0 of 24 items" in page.text

"""What .ci/docs makes of docstrings, README and tutorials; .ci/run builds the site."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("mkdocs", "material", "mkdocstrings", "griffe", "latex2mathml")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"needs the docs extra: no {', '.join(MISSING)}"
)

SOURCE = '''
"""A module."""

from other import Foreign

__all__ = ["Child", "Foreign"]


class Parent:
    """A parent."""

    def run(self) -> None:
        """Runs."""


class Child(Parent):
    """Inherits :meth:`run`."""


class _Twin:
    def run(self) -> None:
        """Runs, too."""
'''


@pytest.fixture
def docs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci" / "docs"))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


@pytest.fixture
def package(tmp_path: Path):
    """A package ``toy`` of one module and one sub-package, as griffe reads it."""
    import griffe

    files = {
        "__init__.py": 'from toy.sub import Child\n__all__ = ["Child"]\n',
        "sub/__init__.py": 'from toy.sub.child import Child\n__all__ = ["Child"]\n',
        "sub/child.py": SOURCE,
        "_private.py": '__all__ = ["hidden"]\nhidden = 1\n',
    }
    for name, text in files.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return griffe.load("toy", search_paths=[tmp_path], allow_inspection=False)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (":math:`a_b`", r"\(a_b\)"),
        (":math:`a\n    + b`", r"\(a + b\)"),
        ("``code`` stays", "``code`` stays"),
        ("Example:\n    >>> 1", "Examples:\n    >>> 1"),
        (
            ":class:`~toy.A`",
            '<autoref identifier="<toy.A>" optional><code>A</code></autoref>',
        ),
        (
            ":func:`toy.f`",
            '<autoref identifier="<toy.f>" optional><code>toy.f()</code></autoref>',
        ),
        (
            ":class:`~toy.\n    B`",
            '<autoref identifier="<toy.B>" optional><code>B</code></autoref>',
        ),
    ],
)
def test_a_role_becomes_a_link_or_a_formula(docs, written: str, expected: str) -> None:
    assert docs("roles").convert(written, lambda name: f"<{name}>") == expected


@pytest.mark.parametrize("opening", [".. math:: a\n", ".. math::\n\n        a\n"])
def test_a_displayed_formula_stands_between_blank_lines(docs, opening: str) -> None:
    text = f"    Before.\n\n    {opening}        + b\n\n    After.\n"
    converted = docs("roles").convert(text, str)
    paragraphs = [p.strip() for p in converted.split("\n\n")]
    assert [p for p in paragraphs if p] == ["Before.", r"\[a + b\]", "After."]


def test_names_are_found_in_the_scope_then_in_the_package(docs, package) -> None:
    find = docs("roles").find
    child = package["sub.child.Child"]
    assert find("run", child) == "toy.sub.child.Parent.run"
    assert find("Parent", child) == "toy.sub.child.Parent"
    assert find("Parent.run", child) == "toy.sub.child.Parent.run"
    assert find("toy.Child", package["sub.child._Twin.run"]) == "toy.sub.child.Child"
    assert find("_Twin.run", package) == "toy.sub.child._Twin.run"


@pytest.mark.parametrize(
    ("name", "seen"), [("absent", "nothing"), ("run", "toy.sub.child._Twin.run")]
)
def test_a_name_of_nothing_or_of_several_things_is_an_error(
    docs, package, name: str, seen: str
) -> None:
    with pytest.raises(LookupError, match=f"docstring of toy: '{name}' names .*{seen}"):
        docs("roles").find(name, package)


def test_each_thing_is_shown_once_at_the_highest_package_that_holds_it(
    docs, package
) -> None:
    pages = docs("pages").reference(package)
    assert list(pages) == ["reference/toy.md", "reference/toy.sub.md"]
    assert "- [`Child`][toy.sub.Child]: Inherits" in pages["reference/toy.md"]
    assert ":::" not in pages["reference/toy.md"]
    assert re.findall("^::: (.*)$", pages["reference/toy.sub.md"], re.M) == [
        "toy.sub.Child"
    ]


def test_every_public_name_of_gp_eval_has_a_place(docs) -> None:
    import gp_eval

    pages = docs("pages").site()
    shown = re.findall("^::: (.*)$", "\n".join(pages.values()), re.M)
    assert len(shown) == len(set(shown)) > 100
    last = {path.rpartition(".")[2] for path in shown}
    assert set(gp_eval.__all__) <= last
    for package in (ROOT / "gp_eval").glob("**/__init__.py"):
        name = ".".join(package.parent.relative_to(ROOT).parts)
        if "__all__" in package.read_text("utf-8"):
            assert f"reference/{name}.md" in pages


def test_a_tutorial_keeps_its_prose_and_its_code(docs) -> None:
    source = (
        "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1  # why\n\n# %%\ny = 2\n"
    )
    assert docs("pages").tutorial(source) == (
        "# Title\n\nText.\n\n```python\nx = 1  # why\n```\n\n```python\ny = 2\n```\n"
    )
    with pytest.raises(ValueError, match="expected to begin with '# %%'"):
        docs("pages").tutorial("x = 1\n# %%\n")


def test_tutorials_in_the_readme_lead_to_their_pages(docs) -> None:
    pages = docs("pages").site()
    linked = re.findall(r"\]\((tutorials/\w+\.\w+)\)", pages["index.md"])
    tutorials = {page for page in pages if page.startswith("tutorials/")}
    assert set(linked) == tutorials != set()
    assert "[[" not in pages["index.md"]


def test_a_formula_becomes_mathml_or_an_error(docs) -> None:
    maths = docs("maths")
    page = maths.to_mathml(
        r'<p><span class="arithmatex">\(a &lt; b\)</span></p>'
        '\n<div class="arithmatex">\\[\\frac12\\]</div>'
    )
    assert page.count("<math") == 2
    assert page.count('display="block"') == page.count("<mfrac>") == 1
    assert "arithmatex" not in page
    with pytest.raises(ValueError, match=r"no MathML for \\nonsense"):
        maths.formula(r"a + \nonsense")


@pytest.mark.parametrize(
    "raw",
    [
        ":func:<code>f</code>",
        ".. math::",
        r"\frac12",
        "&gt;&gt;&gt; f()",
        "``a",
        r"\(a",
    ],
)
def test_raw_markup_outside_code_is_found(docs, raw: str) -> None:
    leaks = docs("leaks").leaks
    assert leaks(f"<p>Before {raw} after</p>")
    assert not leaks(f"<pre>Before {raw.replace('code', 'b')} after</pre>")

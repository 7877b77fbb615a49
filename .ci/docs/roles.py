r"""Sphinx roles of the docstrings as links and formulas, when griffe reads them.

``:math:`` becomes ``\(...\)``. A role that names something becomes a link to it where
a page shows it, and code where none does. What it names must exist in the package, so
that a rename cannot leave a dead reference behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import griffe

__all__ = ["Roles", "convert", "find"]

_ROLE = re.compile(r":(class|func|meth|attr|data|mod|exc):`([^`]+)`")
_MATH = re.compile(r":math:`([^`]+)`")
_BLOCK = re.compile(r"^( *)\.\. math::(.*(?:\n\1 +\S.*|\n(?=\n))*)", re.MULTILINE)
# The section that holds ``>>>`` is known to griffe by its plural only.
_EXAMPLE = re.compile(r"^( *)Example:$", re.MULTILINE)


def convert(text: str, path_of: Callable[[str], str]) -> str:
    """Markdown of a docstring.

    Args:
        text: The docstring as it is written.
        path_of: The full path of what a role names.
    """

    def link(match: re.Match[str]) -> str:
        written = "".join(match[2].split())
        name = written.lstrip("~.")
        label = name.rpartition(".")[2] if written[0] in "~." else name
        call = "()" if match[1] in ("func", "meth") else ""
        # Optional: not all that exists has a place on a page.
        return (
            f'<autoref identifier="{path_of(name)}" optional>'
            f"<code>{label}{call}</code></autoref>"
        )

    text = _BLOCK.sub(_block, text)
    text = _MATH.sub(lambda match: rf"\({' '.join(match[1].split())}\)", text)
    return _EXAMPLE.sub(r"\1Examples:", _ROLE.sub(link, text))


def find(name: str, scope: griffe.Object) -> str:
    """Full path of what a docstring calls ``name``.

    Looked for in the object itself, in what it inherits and in what surrounds it; then
    as a full path, then as the end of exactly one path of the package.

    Args:
        name: A name, with dots or without.
        scope: The object of the docstring.

    Raises:
        LookupError: Nothing in the package is called so, or several things are.
    """
    for place in _outwards(scope):
        found = _member(place, name.split("."))
        if found is not None:
            return found.canonical_path
    package = scope.package
    if name.startswith(f"{package.path}."):
        found = _member(package, name.split(".")[1:])
        if found is not None:
            return found.canonical_path
    ends = sorted(
        {o.path for o in _objects(package) if o.path.endswith(f".{name}")}, key=len
    )
    if len(ends) != 1:
        seen = "nothing" if not ends else ", ".join(ends)
        raise LookupError(
            f"docstring of {scope.path}: {name!r} names {seen} in {package.path}, "
            "expected one thing"
        )
    return ends[0]


class Roles(griffe.Extension):
    """Converts all docstrings of a package once it is read."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Convert the docstrings; ``kwargs`` is what griffe passes besides."""
        for thing in list(_objects(pkg)):
            if thing.docstring is not None:
                thing.docstring.value = convert(
                    thing.docstring.value, lambda name, scope=thing: find(name, scope)
                )


def _block(match: re.Match[str]) -> str:
    # A paragraph of one line, which is what arithmatex takes for a displayed formula.
    tex = " ".join(match[2].split())
    return f"{match[1]}\\[{tex}\\]\n"


def _outwards(thing: griffe.Object) -> Iterator[griffe.Object]:
    place: griffe.Object | None = thing
    while place is not None:
        yield place
        place = place.parent


def _member(place: griffe.Object, names: list[str]) -> griffe.Object | None:
    found: Any = place
    for name in names:
        if found.is_alias:
            found = found.final_target
        members = found.all_members if found.is_class else found.members
        if name not in members:
            return None
        found = members[name]
    return found


def _objects(place: griffe.Object) -> Iterator[griffe.Object]:
    yield place
    for member in place.members.values():
        if not member.is_alias:
            yield from _objects(member)

"""The pages: README, tutorials, and one for each sub-package and public module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe
from roles import Roles

__all__ = ["ROOT", "navigation", "reference", "site", "tutorial"]

ROOT = Path(__file__).parents[2]
# Their users are the command line and the harness; nobody imports them.
_INTERNAL = {"gp_eval.cli", "gp_eval.experiments.batched"}


@cache
def site() -> dict[str, str]:
    """Markdown of all pages by address, in their order."""
    written = {"index.md": _relinked((ROOT / "README.md").read_text("utf-8"))}
    for path in sorted((ROOT / "tutorials").glob("*.py")):
        written[f"tutorials/{path.stem}.md"] = tutorial(path.read_text("utf-8"))
    package = griffe.load(
        "gp_eval",
        search_paths=[ROOT],
        allow_inspection=False,
        extensions=griffe.load_extensions(Roles),
    )
    return written | reference(package)


def navigation(addresses: dict[str, str]) -> list[dict[str, object]]:
    """The menu of these pages: home, tutorials, reference."""
    tutorials = [a for a in addresses if a.startswith("tutorials/")]
    modules = [a for a in addresses if a.startswith("reference/")]
    return [
        {"Home": "index.md"},
        {"Tutorials": tutorials},
        {"Reference": [{Path(a).stem: a} for a in modules]},
    ]


def tutorial(source: str) -> str:
    """Markdown of a notebook in the percent format: prose as such, code in fences."""
    cells = re.split(r"^# %%(.*)\n", source, flags=re.MULTILINE)
    if cells[0].strip():
        raise ValueError(f"tutorial: expected to begin with '# %%', got {cells[0]!r}")
    parts = []
    for kind, cell in zip(cells[1::2], cells[2::2], strict=True):
        if kind.strip() == "[markdown]":
            parts.append(re.sub(r"^# ?", "", cell.strip(), flags=re.MULTILINE))
        elif cell.strip():
            parts.append(f"```python\n{cell.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def reference(package: griffe.Module) -> dict[str, str]:
    """Pages of a package: what each sub-package exports, each thing shown once."""
    modules = list(_public(package))
    homes = _homes(modules)
    return {
        f"reference/{module.path}.md": _page(module, homes)
        for module in sorted(modules, key=lambda module: module.path)
    }


def _public(module: griffe.Module) -> Iterator[griffe.Module]:
    """Packages that export names, and modules that no package exports for."""
    if module.exports:
        yield module
    for child in module.modules.values():
        if child.name.startswith("_") or child.path in _INTERNAL:
            continue
        if child.is_init_module or module.parent is None or not module.exports:
            yield from _public(child)


def _homes(modules: list[griffe.Module]) -> dict[str, str]:
    """Where each thing is shown: by canonical path, the path it has on that page."""
    homes: dict[str, tuple[bool, int, str]] = {}
    for module in modules:
        for name in module.exports or []:
            true = module[str(name)].canonical_path
            # A page above the definition before others, then the page nearest the top.
            rank = (
                module.parent is None or not true.startswith(f"{module.path}."),
                module.path.count("."),
                f"{module.path}.{name}",
            )
            homes[true] = min(homes.get(true, rank), rank)
    return {true: path for true, (_, _, path) in homes.items()}


def _page(module: griffe.Module, homes: dict[str, str]) -> str:
    names = [str(name) for name in module.exports or []]
    shown = [n for n in names if f"{module.path}.{n}" in homes.values()]
    lines = [
        f"# `{module.path}`",
        "",
        module.docstring.value if module.docstring else "",
        "",
        *(_entry(module[name], homes) for name in names),
    ]
    for name in shown:
        lines += ["", f"::: {module.path}.{name}", "    options: {heading_level: 2}"]
    return "\n".join(lines) + "\n"


def _entry(thing: griffe.Object, homes: dict[str, str]) -> str:
    text = thing.docstring.value if thing.docstring else ""
    summary = " ".join(text.split("\n\n")[0].split())
    link = f"- [`{thing.name}`][{homes[thing.canonical_path]}]"
    return f"{link}: {summary}" if summary else link


def _relinked(text: str) -> str:
    """Links to tutorials, as files and as names in code, lead to their pages."""
    text = re.sub(r"(?<!\[)`tutorials/(\w+)\.py`", r"[\g<0>](tutorials/\1.md)", text)
    return re.sub(r"\]\(tutorials/(\w+)\.py\)", r"](tutorials/\1.md)", text)

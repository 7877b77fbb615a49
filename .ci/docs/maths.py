"""Formulas as MathML, so that a page needs neither a script nor a network."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

__all__ = ["formula", "to_mathml"]

# What arithmatex leaves of inline and of displayed formulas.
_MARKED = re.compile(
    r'<span class="arithmatex">\\\((?P<inline>.*?)\\\)</span>'
    r'|<div class="arithmatex">\s*\\\[(?P<block>.*?)\\\]\s*</div>',
    flags=re.DOTALL,
)


def to_mathml(page: str) -> str:
    """The page with MathML in place of marked TeX.

    Raises:
        ValueError: A formula holds a command that has no MathML.
    """
    return _MARKED.sub(_replace, page)


def formula(tex: str, *, display: str = "inline") -> str:
    """MathML of one formula, ``display`` being ``inline`` or ``block``.

    Raises:
        ValueError: The formula holds a command that has no MathML.
    """
    # The one function name of ours that the converter lacks.
    named = re.sub(r"\\arg(?![A-Za-z])", r"\\operatorname{arg}", tex)
    mathml = convert(named, display=display)
    # The converter prints commands that it does not know as they are.
    unknown = re.search(r"\\[A-Za-z]+", mathml)
    if unknown:
        raise ValueError(f"formula {tex!r}: no MathML for {unknown[0]}")
    return mathml


def _replace(match: re.Match[str]) -> str:
    display = "inline" if match["inline"] is not None else "block"
    return formula(html.unescape(match[display]).strip(), display=display)

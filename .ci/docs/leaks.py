"""What a page must not show: markup of docstrings that nothing converted."""

from __future__ import annotations

import re

__all__ = ["leaks"]

_CODE = re.compile(r"<(pre|code|script|style)\b.*?</\1>", flags=re.DOTALL)
# A role, a directive, a TeX command, a doctest, a fence of code that did not close.
_RAW = re.compile(
    r":[a-z]+:(?=`|<|\\)|\.\. [a-z]+::|\\[A-Za-z]+|&gt;&gt;&gt;|``|\\[(\[]"
)


def leaks(page: str) -> list[str]:
    """Raw markup in the HTML of a page, outside code, each with what is around it."""
    # A mark for the code, for a role is known by what follows it.
    text = _CODE.sub("<code>", page)
    return [text[max(m.start() - 30, 0) : m.end() + 30] for m in _RAW.finditer(text)]

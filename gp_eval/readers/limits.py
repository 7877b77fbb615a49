"""How much a log may hold before it is refused.

A log is data from elsewhere: a small file may unpack to a huge one, or name millions of
entries. The limits lie far above real logs and far below the memory of a laptop.
"""

from __future__ import annotations

__all__ = [
    "MAX_ARRAY_BYTES",
    "MAX_DIRECTORY_BYTES",
    "MAX_DOCUMENT_BYTES",
    "MAX_ENTRIES",
    "MAX_FILES",
    "MAX_LINE_BYTES",
    "MAX_RATIO",
    "RATIO_FREE_BYTES",
]

MAX_FILES = 200_000
"""Files looked at below the given folders."""
MAX_ENTRIES = 500_000
"""Entries of one zip archive."""
MAX_DIRECTORY_BYTES = 128 * 2**20
"""Table of contents of one zip archive."""
MAX_DOCUMENT_BYTES = 2**30
"""One JSON document, one unpacked zip entry or one pickle."""
MAX_LINE_BYTES = 64 * 2**20
"""One line of JSON lines."""
MAX_RATIO = 250
"""Unpacked bytes for each packed one; prompts of a few-shot task repeat a lot."""
RATIO_FREE_BYTES = 256 * 2**20
"""Below this unpacked size the ratio does not matter."""
MAX_ARRAY_BYTES = 2**30
"""One array of a pickle."""

"""What mkdocs calls: pages that no file holds, and formulas."""

from __future__ import annotations

import leaks
import maths
import pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

__all__ = ["on_config", "on_files", "on_page_content"]


def on_config(config: MkDocsConfig) -> None:
    """The order of pages, which is that of the written ones."""
    config.nav = pages.navigation(pages.site())


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the written pages to the files of the theme."""
    for address, text in pages.site().items():
        files.append(File.generated(config, address, content=text))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Formulas as MathML, before the search index reads the page.

    Raises:
        PluginError: The page shows raw markup, or a formula has no MathML.
    """
    try:
        html = maths.to_mathml(html)
    except ValueError as error:
        raise PluginError(f"{page.file.src_uri}: {error}") from error
    found = leaks.leaks(html)
    if found:
        raise PluginError(f"{page.file.src_uri} shows raw markup: {found}")
    return html

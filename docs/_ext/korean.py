"""Korean pages say that they are Korean: to browsers, to screen readers, and to the style sheet."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

__all__ = ["setup"]


def say_language(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object) -> None:
    """Set the language of a page before it is written."""
    if pagename.startswith("ko/"):
        context["language"] = "ko"


def setup(app: Sphinx) -> dict[str, bool]:
    """Be asked about each page."""
    app.connect("html-page-context", say_language)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

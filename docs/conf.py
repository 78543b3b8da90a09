"""How the book is built: `make docs`, or `python -m sphinx -W docs build/docs`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src"), str(HERE.parent)]

from manyheads import __version__  # noqa: E402

project = "manyheads"
author = "the manyheads contributors"
copyright = "2026, the manyheads contributors"
release = __version__
version = ".".join(__version__.split(".")[:2])

extensions = ["myst_parser", "mathml", "reference", "korean"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext", "_build"]
highlight_language = "none"
suppress_warnings = ["ref.python"]  # several packages have a class of the same name
toc_object_entries = False
html_domain_indices = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
myst_url_schemes = ["http", "https", "mailto"]

html_theme = "furo"
html_title = "manyheads"
html_theme_options = {"top_of_page_buttons": []}
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_extra_path = ["_generated"]
(HERE / "_generated").mkdir(exist_ok=True)  # `reference` fills it

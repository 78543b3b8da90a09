"""How the book is built, in English and in Korean: `make docs`.

python -m sphinx -W docs build/docs                      the English book
python -m sphinx -W -t ko -c docs docs/ko build/docs/ko  the Korean book
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src"), str(HERE.parent)]

from manyheads import __version__  # noqa: E402

KOREAN = tags.has("ko")  # type: ignore[name-defined]  # noqa: F821  # Sphinx puts `tags` here

project = "manyheads"
author = "the manyheads contributors"
copyright = "2026, the manyheads contributors"
release = __version__
version = ".".join(__version__.split(".")[:2])
language = "ko" if KOREAN else "en"

extensions = ["myst_parser", "sphinx_copybutton", "mathml", "languages", "live", "notebooks"]
extensions.append("korean" if KOREAN else "reference")
source_suffix = {".md": "markdown"}
exclude_patterns = [] if KOREAN else ["_ext", "_templates", "_build", "ko/**"]
highlight_language = "none"
smartquotes_action = "qe"  # quotation marks and ellipses; "--version" keeps its two hyphens
suppress_warnings = ["ref.python"]  # several packages have a class of the same name
toc_object_entries = False
html_domain_indices = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "html_image"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
myst_url_schemes = {
    "http": None,
    "https": None,
    "mailto": None,
    # Pages of the other language (_ext/languages.py).
    "other-book": "{{path}}",
    "other-book-section": "{{path}}#{{fragment}}",
}

html_theme = "furo"
html_title = "manyheads"
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {"color-brand-primary": "#0b5c9e", "color-brand-content": "#0b5c9e"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ff", "color-brand-content": "#7cc0ff"},
}
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
templates_path = ["_templates"]
pygments_style = "a11y-light"
pygments_dark_style = "a11y-dark"
copybutton_exclude = ".linenos, .gp, .go"  # prompts and outputs of console blocks
copybutton_selector = (
    "div.highlight-bash pre, div.highlight-python pre, div.highlight-toml pre, div.highlight-console pre"
)
if not KOREAN:
    html_extra_path = ["_generated"]
    (HERE / "_generated").mkdir(exist_ok=True)  # `reference` fills it

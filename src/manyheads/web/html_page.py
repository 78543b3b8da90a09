"""The page that shows the computation of a model: its data, and the page as one self-contained file.

Its files are in `web/page`, and its script in `web/built`. `manyheads serve` serves them; a self-contained file
includes them and the data, with a content security policy that allows this script only.
"""

from __future__ import annotations

import base64
import hashlib
import inspect as introspection
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import manyheads
from bitext.languages import language_name
from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.shown_card import shown_card
from manyheads.inference.about import describe
from manyheads.inference.inspect import curves, inspect
from manyheads.views.documents import Inspection, ModelInspection
from manyheads.web.scripts import PAGE, built_script

_PACKAGE = Path(manyheads.__file__).parent
_LANGUAGES = ("en", "ko")
_MOST_LINES = 90  # lines of code that are shown for a symbol


@dataclass(frozen=True)
class PageModel:
    """A model inside a page, with the script that computes with it.

    Attributes:
        worker: the script that computes.
        head: JSON text of the engine in base64, "wasm", and the description of the model, "header".
        tensors: the weights in base64, in parts.
    """

    worker: str
    head: str
    tensors: Sequence[str]

    def elements(self) -> str:
        """Return the elements of the page that hold the model; the browser executes none of them directly."""
        parts = (f'<script type="text/plain" class="manyheads-tensors">{part}</script>\n' for part in self.tensors)
        head = self.head.replace("<", "\\u003c")
        checksum = 1
        for text in (self.worker, head, *self.tensors):
            checksum = zlib.adler32(text.encode(), checksum)
        return (
            f'<script type="text/plain" id="manyheads-worker" data-checksum="{checksum}">{self.worker}</script>\n'
            f'<script type="application/json" id="manyheads-model">{head}</script>\n{"".join(parts)}'
        )


def strings() -> dict[str, Any]:
    """Return the texts of the page by language."""
    return {language: json.loads(_text_of(f"{language}.json")) for language in _LANGUAGES}


def model_document(inspection: ModelInspection, card: str) -> dict[str, Any]:
    """Return the data of a model for the page, with its card (Markdown) and the source code of its parts."""
    sources = _excerpts(tuple(symbol.source for symbol in inspection.symbols))
    return {"model": inspection.packed_dict(), "sources": sources, "card": shown_card(card)}


@cache
def _excerpts(locations: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return the source of functions and classes at locations such as "model/attention.py:31"."""
    sources = {}
    for location in locations:
        name, _, number = location.rpartition(":")
        first = int(number)
        lines = (_PACKAGE / name).read_text(encoding="utf-8").splitlines(keepends=True)
        block = introspection.getblock(lines[first - 1 :])[:_MOST_LINES]
        sources[location] = {"line": first, "text": "".join(block).removesuffix("\n")}
    return sources


def stand_alone(run: str | Path, inspection: Inspection, *, language: str | None = None) -> str:
    """Return a self-contained page with an inspection of a text or model, the model and its training curves.

    It opens in `language`, one of `_LANGUAGES`; None is the language of the browser.
    """
    run = Path(run)
    model = inspection if isinstance(inspection, ModelInspection) else inspect(run)
    assert isinstance(model, ModelInspection)
    about = {
        "models": [describe(RunDirectory.existing(run).config(), RunDirectory(run).name)],
        "parts": [*(["inspection"] if inspection is not model else []), "curves", "model"],
        "char_limit": 0,
    }
    own = None if inspection is model else inspection.packed_dict()
    return page_of_run(run, about, own, model_document(model, RunDirectory(run).card()), language)


def page_of_run(
    run: Path,
    about: dict[str, Any],
    inspection: dict[str, Any] | None,
    document: dict[str, Any] | None,
    language: str | None,
    model: PageModel | None = None,
) -> str:
    """Return the page of a run as one file; "curves" is left out of the parts in `about` if the run has none."""
    training = curves([run]).to_dict() if RunDirectory(run).log() else None
    parts = [name for name in about["parts"] if training or name != "curves"]
    data = {
        "strings": strings(),
        "language": language,
        "about": about | {"parts": parts, "key_required": False},
        "inspection": inspection,
        "model": document,
        "curves": training,
    }
    return _page_with(data, _title_of(about["models"][0]), model)


def _title_of(facts: dict[str, Any]) -> str:
    """Return the name of a model, and the languages of a translator in English, as the title of its page."""
    name: str = facts["name"]
    if "source" not in facts:
        return name
    return f"{name}: a translator from {language_name(facts['source'])} to {language_name(facts['target'])}"


def _page_with(data: dict[str, Any], title: str, model: PageModel | None) -> str:
    """Return the page as one file with style, scripts and data, and with a model if it is given."""
    style, index = _text_of("page.css"), _text_of("index.html")
    script = built_script("page.js")
    assert not re.search(r"</script|<!--", script + (model.worker if model else ""), re.IGNORECASE)
    computing = ("'wasm-unsafe-eval' ", "worker-src blob:; ") if model else ("", "")
    policy = (
        f"default-src 'none'; script-src {computing[0]}'{_digest(script)}'; {computing[1]}"
        f"style-src '{_digest(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    document = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<title>{escape(title)}</title>\n'
    description = "The model runs in this file; every step of its computation can be seen." if model else ""
    head += f'<meta name="description" content="{escape(f"{title}. {description}".strip())}">\n'
    index = re.sub(r"<script src=[^\n]*\n|<title>[^\n]*\n|<meta name=\"description\"[^\n]*\n", "", index)
    index = index.replace('<meta name="viewport"', head + '<meta name="viewport"', 1)
    index = index.replace('<link rel="stylesheet" href="page/page.css">', f"<style>{style}</style>")
    inner = f'<script type="application/json" id="manyheads-data">{document}</script>\n'
    scripts = f"{inner}{model.elements() if model else ''}<script>{script}</script>\n"
    return index.replace("</body>", scripts + "</body>")


def _text_of(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the hash of a script or style for the content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")

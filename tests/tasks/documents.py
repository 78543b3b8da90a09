"""Documents as people have them, made of a table of parts, and a translator that keeps words alone.

The translator drops every mark, symbol and line end: the structure that comes out was kept around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from manyheads.config.schema import Config
from manyheads.inference.translation.translator import Translator
from manyheads.search.interface import Engine, Hypothesis, make_hypothesis
from manyheads.search.options import UNCONSTRAINED, Constraints, SearchOptions
from manyheads.text.characters import ByteTokenizer
from manyheads.text.tokenizer import EOS, TokenizerPair

SENTENCES = [
    "Ein Hund läuft über die Wiese", "Zwei Männer spielen Schach im Park", "Bitte warten Sie einen Augenblick",
    "Die Sitzung beginnt nach dem Mittagessen", "Wir haben Ihre Nachricht erhalten", "Das Paket ist unterwegs",
    "Öffnen Sie das Fenster", "Kinder zahlen die Hälfte", "Der Zug hält nicht in Köln", "Danke für Ihre Geduld",
    "Speichern Sie die Datei auf dem Rechner", "Alle Plätze sind besetzt", "Übermorgen regnet es im Norden",
]  # fmt: skip

# Parts of documents by kind; each § is a sentence, and everything else must come out as it stands.
PARTS = {
    "paragraphs": ["§", "§.", "§?", "§! ", "  §", "§.\n§.", "§.\n\n\n§.", "\t§.\n\t§.", "§.\r\n\r\n§."],
    "headings": ["# §", "## §", "###### §", "§\n====", "§\n---", "**§**", "# § #"],
    "lists": [
        "- §\n- §.\n- §", "* §\n  * §\n  * §", "+ §\n+ §", "1. §\n2. §\n3. §", "1) §\n2) §", "(1) §\n(2) §",
        "a) §\nb) §", "• §\n• §", "– §\n– §", "- [ ] §\n- [x] §", "10. §\n11. §", "▪ §\n▪ §", "①§\n② §",
    ],
    "quotations": [
        "> §\n> §", "> §.\n>\n> §.", ">> §\n> §", "> - §\n> - §", "„§“", "„§.“", '"§?"', "»§«", "“§!”",
    ],
    "tables": [
        "| § | § |\n| --- | :-: |\n| § | 12,50 € |", "§\t§\t17\n§\t§\t18", "§ | § | §", "§    §",
        "|§|§|\n|-|-|\n|§|§|", "§;\t12:30\n§;\t14:00",
    ],
    "code": [
        "```python\nif name:\n    print(name)\n```", "~~~\nmake all\n~~~\n§.", "§: `name`",
        "§\n```\nx = y\n\nz = x\n```",
    ],
    "emphasis": [
        "§ **§**", "*§* §", "§ _§_.", "__§__ §", "~~§~~ §", "***§*** §", "- **§** §", "| **§** | *§* |",
    ],
    "links": [
        "[§](https://example.org/a?b=1) §", "§ https://example.org/a_b?c=1#d", "§ www.example.org/x §",
        "![§](bild.png)", "§: tom.meier@example.org", "- [§](seite.md)", "<https://example.org>",
    ],
    "placeholders": [
        "§ %s", "%d §", "§ {name}, §", "{0} § {1}", "§ %1$s §", "§ {{ user.name }}!", "${count} §", "§ $USER §",
        "%(title)s: §", "§ [[seite]] §", "§ {n, number} §", "§ %.2f §", "- %s: §",
    ],
    "tags": [
        "<b>§</b>", "§ <i>§</i> §", "<p>§</p>\n<p>§.</p>", "§<br/>§", "<li>§</li>", '<a href="x.html">§</a> §',
        "§ &amp; §", "&nbsp;§", "§ &lt;§&gt;", "<!-- Notiz -->", "<h1>§</h1>",
    ],
    "others": ["***", "---", "…", "12.03.2021", "12:30", "+49 30 1234567", "§ 😀", "👍 §", "1.2.3.4", "3,50 €"],
}  # fmt: skip
HTML_PARTS = {
    "blocks": [
        "<p>§.</p>", "<h1>§</h1>", "<h2 class='x'>§</h2>\n<p>§.<br>§?</p>", "<blockquote>\n  §!\n</blockquote>",
        "<hr/>",
    ],
    "lists": [
        "<ul>\n  <li>§</li>\n  <li>§.</li>\n</ul>", "<ol><li>§<ul><li>§</li></ul></li></ol>",
        "<dl><dt>§<dd>§</dl>",
    ],
    "tables": ["<table><tr><th>§</th><th>§</th></tr>\n<tr><td>12,50 €</td><td>§</td></tr></table>"],
    "tags": [
        "<p>§ <b>§</b> §.</p>", '<p><a href="x.html?a=1&amp;b=2">§</a> §</p>', "<p>§ <em>§ <i>§</i></em></p>",
        "<p><img src='a.png' alt='Bild'> §</p>", "<p>§ <code>x = 1</code></p>", "<p><span>§</span></p>",
    ],
    "untouched": [
        "<pre>if x:\n    y()</pre>", "<script>if (a < b) c();</script>", "<!-- Notiz -->",
        "<style>p > a {}</style>",
    ],
    "placeholders": [
        "<p>{name}, §</p>", "<p>%s: § {count}</p>", "<p>§ https://example.org/a_b</p>", "<p>12:30</p>",
    ],
}  # fmt: skip
_BETWEEN = ("\n", "\n\n", "\r\n", "\n\n\n", "\n \n")


def documents(table: Mapping[str, Sequence[str]] = PARTS, count: int = 300) -> list[str]:
    """Return documents that a translator of words with `match_source` must return as they are."""
    rng = Random("documents")
    parts = [part for kind in table.values() for part in kind]
    found = []
    for number in range(count):
        # each part occurs in several documents, beside others
        chosen = [parts[(7 * number + index * 11) % len(parts)] for index in range(rng.randint(2, 7))]
        text = rng.choice(_BETWEEN).join(chosen)
        found.append(re.sub("§", lambda _: rng.choice(SENTENCES), text))
    return found


class WordEngine(Engine):
    """An engine whose output is the words of its source, each as it is, between single blanks."""

    def search(
        self,
        rows: Sequence[Sequence[int]],
        options: SearchOptions,
        constraints: object = (),
        cancelled: object = None,
    ) -> list[list[Hypothesis]]:
        return [[_keep_words(row)] for row in rows]

    def stream(
        self, row: Sequence[int], options: SearchOptions, constraints: Constraints = UNCONSTRAINED
    ) -> Iterator[int]:
        yield from (*_keep_words(row).tokens, EOS)


_TOKENIZER = ByteTokenizer(lowercase=False)


def _keep_words(row: Sequence[int]) -> Hypothesis:
    """Return the words of a source; a byte of a word attends to the same byte of the source."""
    kept, origins = bytearray(), list[int]()
    text = _TOKENIZER.decode(row)
    for word in re.finditer(r"[^\W\d_]+", text):
        blank, start = b" " * bool(kept), len(text[: word.start()].encode())
        letters = word[0].encode()
        kept += blank + letters
        origins += [*[start] * len(blank), *range(start, start + len(letters))]
    (tokens,) = _TOKENIZER.encode([kept.decode()])
    attention = np.eye(len(row) + 1)[[*origins, len(row)]]
    scores = [-0.1] * (len(tokens) + 1)
    output = make_hypothesis([*tokens, EOS], scores, ended=True, length_penalty=1.0)
    return replace(output, attention=tuple(map(tuple, attention.tolist())))


def word_translator(**search: bool) -> Translator:
    """Return a translator that keeps the words of a text, and nothing else of what it is given."""
    config = Config.model_validate(
        {
            "data": {"source": "de", "target": "en", "max_length": 200},
            "tokenizer": {"kind": "bytes"},
            "model": {"max_positions": 400},
            "search": {"copy_literals": True} | search,
        }
    )
    return Translator(config, TokenizerPair(_TOKENIZER, _TOKENIZER, joint=True), WordEngine())

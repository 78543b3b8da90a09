"""Read PO files: untranslated messages are units, and their translations are written into `msgstr`."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bitext.formats.po import PoMessage, PoText, escape_po, po_messages
from bitext.plurals import MAX_FORMS, numbers_of_forms, plural_rule
from manyheads.documents.document import Document, ReadOptions, decode, numbered_lines
from manyheads.documents.messages import Message, keeps_placeholders, message_block, message_tokens
from manyheads.documents.units import Edit, Part, Translated, Unit

_CHARSET = re.compile(r"(?<=charset=)[\w.:-]+")
_PLURAL_FORMS = re.compile(r"nplurals\s*=\s*([0-9]+)\s*;\s*plural\s*=\s*([^;]+)")
# What a template leaves open in the header.
_OPEN_FIELDS = re.compile(
    r"(?P<language>(?<=Language: )(?=\\n)|(?<=Language:)(?=\\n))|(?P<charset>(?<=charset=)CHARSET\b)"
    r"|(?P<plural>nplurals=INTEGER; plural=EXPRESSION;)"
)
_WRAPPER = partial(
    textwrap.wrap, drop_whitespace=False, replace_whitespace=False, expand_tabs=False, break_long_words=False,
    break_on_hyphens=False,
)  # fmt: skip
_FUZZY_LINE = re.compile(r"#, *fuzzy[ \t]*\r?\n")


@dataclass(frozen=True)
class _PoUnit(Message):
    """A text of a message.

    Attributes:
        places: the texts that its translation replaces, with what stands before the translation.
        surplus: plural forms that the target language lacks, which are removed.
        fuzzy: the flag of a doubtful translation; None if the message has it.
        width: columns of a line; None if only line ends of the text end it, 0 if nothing does.
        newline: line end of the file.
    """

    places: Sequence[Edit] = ()
    surplus: Sequence[Edit] = ()
    fuzzy: Edit | None = None
    width: int | None = None
    newline: str = "\n"

    def edits(self, translated: Translated) -> Iterator[Edit]:
        """Return the translation in each of its places, and the flag of a doubtful one."""
        strings = self.newline.join(f'"{line}"' for line in _lines(self.with_tags(translated), self.width))
        for place in self.places:
            yield place._replace(text=place.text + strings)
        yield from self.surplus
        if self.fuzzy and self.is_doubtful(translated):
            yield self.fuzzy


def _lines(text: str, width: int | None) -> list[str]:
    """Return what the strings of a text hold, divided into lines as gettext does it."""
    pieces = [
        escape_po(piece) for piece in ([text] if width == 0 else re.findall(r"[^\n]*\n|[^\n]+", text) or [""])
    ]
    if width:
        wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)  # these have two columns
        length = max(1, (width - len('""')) * len(text) // max(1, len(text) + wide))
        if len(pieces) == 1 and len(pieces[0]) > length - len("msgstr "):
            pieces.insert(0, "")
        pieces = [line for piece in pieces for line in _WRAPPER(piece, length) or [""]]
    return pieces if len(pieces) == 1 or not pieces[0] else ["", *pieces]


def read(data: bytes, options: ReadOptions) -> Document:
    """Return the document in the bytes of a PO file or template; see `Format.read`."""
    match = re.search(rb'Content-Type:[^"]*charset=(?!CHARSET)([\w.:-]+)', data)
    charset = match[1].decode() if match else ""
    text, encode = decode(data, options.name, charset)

    def pack(texts: Sequence[str]) -> bytes:
        try:
            texts[0].encode(charset or "utf-8")
        except UnicodeEncodeError:
            return _CHARSET.sub("UTF-8", texts[0], count=1).encode()
        return encode(texts[0])

    return Document([Part(text, [partial(_read_messages, options=options)])], pack)


def _read_messages(text: str, options: ReadOptions) -> Iterator[Unit | Edit]:
    messages = [message for message in po_messages(numbered_lines(text), options.name) if not message.obsolete]
    header = next((message for message in messages if message.is_header), PoMessage())
    numbers = _numbers_of_forms(header.header.get("Plural-Forms", ""), options.target)
    newline = "\r\n" if "\r\n" in text else "\n"
    has_plurals = any("msgid_plural" in message.texts for message in messages)
    if header.texts and options.target:
        yield from _header_edits(text, header, options.target, newline, has_plurals=has_plurals)
    lines = (line for message in messages for part in message.texts.values() for line in part.strings[:-1])
    width = max((len(line) + 2 for line in lines if line and not line.endswith("\\n")), default=None)
    for message in messages:
        if message is not header:
            yield from _units(message, numbers, options, newline, width)


def _numbers_of_forms(stated: str, target: str) -> list[list[int]]:
    """Return the numbers of each plural form, by the rule of a file, else by that of a language."""
    match = _PLURAL_FORMS.search(stated)
    try:
        numbers = numbers_of_forms(match[2]) if match else []
    except ValueError:
        numbers = []
    if not match or not numbers:
        return numbers_of_forms(plural_rule(target)[0])
    return numbers + [[]] * (min(int(match[1]), MAX_FORMS) - len(numbers))


def _header_edits(text: str, header: PoMessage, target: str, newline: str, *, has_plurals: bool) -> Iterator[Edit]:
    """Yield what a template leaves open: language, charset, rule of plurals, and that it is no draft."""
    rule = plural_rule(target)[0]
    plural = f"nplurals={len(numbers_of_forms(rule))}; plural=({rule});"
    fields = {"language": target.replace("-", "_"), "charset": "UTF-8", "plural": plural}
    span = header.texts["msgstr"]
    for match in _OPEN_FIELDS.finditer(text, span.start, span.end):
        yield Edit(*match.span(), fields[match.lastgroup or ""])
    if has_plurals and "Plural-Forms" not in header.header:
        yield Edit(span.end, span.end, f'{newline}"Plural-Forms: {plural}\\n"')
    if fuzzy := _FUZZY_LINE.match(text, header.flags_start - len("#,")):
        yield Edit(*fuzzy.span(), "")


def _units(
    message: PoMessage, numbers: Sequence[Sequence[int]], options: ReadOptions, newline: str, width: int | None
) -> Iterator[Unit]:
    texts = message.texts
    fuzzy = Edit(message.flags_start, message.flags_start, " fuzzy," if message.flags else f"#, fuzzy{newline}")

    def unit(source: PoText, places: Sequence[Edit], surplus: Sequence[Edit] = ()) -> _PoUnit:
        block, key = message_block([*message_tokens(source.text)])
        keeps_lines = "\n" in block.text and len(source.strings) == 1
        return _PoUnit(
            block,
            places[0].start,
            places[0].end,
            access_key=key,
            places=places,
            surplus=surplus,
            fuzzy=None if "fuzzy" in message.flags else fuzzy,
            width=0 if keeps_lines else None if "no-wrap" in message.flags else width,
            newline=newline,
        )

    def is_open(text: PoText) -> bool:
        return options.everything or not text.text

    if "msgid_plural" not in texts:
        if is_open(texts["msgstr"]):
            yield unit(texts["msgid"], [Edit(texts["msgstr"].start, texts["msgstr"].end, "")])
        return
    forms = [text for keyword, text in texts.items() if keyword.startswith("msgstr")]
    last = forms[: len(numbers)][-1].end
    places = [Edit(form.start, form.end, "") if is_open(form) else None for form in forms[: len(numbers)]]
    places += [Edit(last, last, f"{newline}msgstr[{index}] ") for index in range(len(forms), len(numbers))]
    surplus = [Edit(last, forms[-1].end, "")] if all(map(is_open, forms)) and last < forms[-1].end else []
    same = keeps_placeholders(texts["msgid"].text, texts["msgid_plural"].text)
    singular = [len(numbers) > 1 and 1 in form and (same or len(form) == 1) for form in numbers]
    for keyword, is_singular in (("msgid", True), ("msgid_plural", False)):
        own = [place for place, single in zip(places, singular, strict=True) if place and single == is_singular]
        if own:
            yield unit(texts[keyword], own, [] if is_singular else surplus)

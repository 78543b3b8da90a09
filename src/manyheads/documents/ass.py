r"""Read subtitles of Advanced SubStation Alpha (.ass) and SubStation Alpha (.ssa).

The sources are the "ASS File Format Guide" of libass, and "Sub Station Alpha v4.00+ Script Format".
"""

from __future__ import annotations

from collections.abc import Iterator

from manyheads.documents.cues import Cue, CueFormat, seconds
from manyheads.documents.document import numbered_lines

_FIELDS = "layer, start, end, style, name, marginl, marginr, marginv, effect, text"


def _find(text: str) -> Iterator[Cue]:
    """Yield the dialogue lines of the section [Events]; their fields are those of its line `Format`."""
    section, fields = "", _FIELDS.split(", ")
    for start, line in numbered_lines(text):
        if line.startswith("["):
            section = line.strip().lower()
        kind, _, rest = line.partition(":")
        if section != "[events]":
            continue
        if kind == "Format":
            fields = [field.strip().lower() for field in rest.split(",")]
        elif kind == "Dialogue" and fields[-1] == "text":
            values = rest.split(",", len(fields) - 1)
            event = dict(zip(fields, values, strict=False))
            if "text" in event:
                first, last = seconds(event.pop("start", "")), seconds(event.pop("end", ""))
                end = start + len(line)
                yield Cue(end - len(event.pop("text")), end, first, last, ",".join(event.values()))


def _decode(text: str) -> str:
    return text.replace("\\h", "\u00a0").replace("\\{", "{").replace("\\}", "}")


def _encode(text: str) -> str:
    return text.replace("{", "\\{").replace("}", "\\}").replace("\u00a0", "\\h").replace("\n", "\\N")


# A drawing is not translated: {\p1} begins one, {\p0} ends it.
_TAGS = (
    r"(?<!\\)\{[^{}]*\\p[1-9][^{}]*\}.*?(?:\{[^{}]*\\p0[^{}]*\}|\Z)"
    r"|\{\\(?P<open>[bius])1\}|\{\\(?P<close>[bius])0\}|(?<!\\)\{[^{}]*\}"
)
read = CueFormat("[Script Info]", _find, _TAGS, r"\\[Nn]", _decode, _encode).read

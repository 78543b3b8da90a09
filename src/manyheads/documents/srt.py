"""Read SubRip subtitles (.srt). They have no specification; FFmpeg, VLC and pysubs2 read them in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from manyheads.documents.cues import TIMES, Cue, CueFormat, seconds
from manyheads.documents.document import numbered_lines


def _find(text: str) -> Iterator[Cue]:
    """Yield the cues; the text of each ends before the number and the times of the next one."""
    lines = list(numbered_lines(text))
    heads = [index for index, (_, line) in enumerate(lines) if TIMES.match(line)]
    for head, last in pairwise([*heads, len(lines)]):
        first = head + 1
        if last < len(lines) and lines[last - 1][1].strip().isdigit():
            last -= 1
        while first < last and not lines[last - 1][1].strip():
            last -= 1
        times = TIMES.match(lines[head][1])
        if times and first < last:
            end, line = lines[last - 1]
            yield Cue(lines[first][0], end + len(line), seconds(times[1]), seconds(times[2]), times[3].strip())


# Tags of HTML; players know override tags of ASS such as {\an8} too.
_TAGS = r"</(?P<close>[bius]|font)\s*>|<(?P<open>[bius]|font)(?:\s[^<>]*)?>|\{\\[^{}]*\}"
read = CueFormat("-->", _find, _TAGS, r"\r?\n", str, str).read

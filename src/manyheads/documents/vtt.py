"""Read WebVTT subtitles (W3C, "WebVTT: The Web Video Text Tracks Format", section 6.1, the parser of files)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import pairwise

from manyheads.documents.blocks import escape_markup
from manyheads.documents.cues import TIMES, Cue, CueFormat, seconds
from manyheads.documents.document import numbered_lines

# The size of a cue, and its place in the lower half of the picture, depend on the number of its lines.
_OF_LINES = re.compile(r"\s*(?:size:\S*|line:(?:[5-9]\d|100)\b\S*)")


def _find(text: str) -> Iterator[Cue]:
    """Yield the cues: a line with "-->" begins one in any block, and a blank line or the next one ends it."""
    beyond = len(text) + 1
    times, start, end = None, 0, 0  # of the present cue
    for (position, line), (following, _) in pairwise([*numbered_lines(text), (beyond, ""), (beyond, "")]):
        if line and "-->" not in line:
            end = position + len(line)
            continue
        if times and start < end:
            yield Cue(start, end, seconds(times[1]), seconds(times[2]), _OF_LINES.sub("", times[3]).strip())
        times, start = TIMES.match(line), following


# Tags of cue text (section 6.4); the readings of a ruby and the timestamps are not translated.
_TAGS = r"<rt[^<>]*>[^<]*(?:</rt[^<>]*>)?|</(?P<close>[a-z]+)[^<>]*>|<(?P<open>[a-z]+)[^<>]*>|<[^<>]*>"
read = CueFormat("WEBVTT", _find, _TAGS, r"\r?\n", unescape, escape_markup).read

"""Colours that people with any kind of colour vision can distinguish.

Shades have the colours of cividis (Nunez, Anderton and Renslow 2018), dark blue for low and yellow for high values.
Signed values have vermilion below 0, white at 0 and blue above. Lines have the colours of Okabe and Ito (2008),
each with a different dash and marker. The page (web/page/colours.js) has the same colours.
"""

from __future__ import annotations

_CIVIDIS = (
    (0, 34, 78), (18, 53, 112), (59, 73, 108), (87, 93, 109), (112, 113, 115),
    (138, 134, 120), (165, 156, 116), (195, 179, 105), (225, 204, 85), (254, 232, 56),
)  # fmt: skip
_DIVERGING = (
    (122, 48, 0), (213, 94, 0), (241, 163, 94), (249, 249, 249), (120, 180, 222), (0, 114, 178), (0, 50, 92),
)  # fmt: skip
INK = "#1a1a1a"
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("", "7 3", "2 2", "9 3 2 3", "4 4", "12 3", "1 3")
MARKERS = ("circle", "square", "triangle", "diamond", "cross", "plus", "ring")

Colour = tuple[int, int, int]


def shade(share: float, *, signed: bool = False) -> Colour:
    """Return the colour of a value from 0, the low end of the scale, to 1; on a signed scale 0.5 is white."""
    scale = _DIVERGING if signed else _CIVIDIS
    position = min(1.0, max(0.0, share)) * (len(scale) - 1)
    lower = min(int(position), len(scale) - 2)
    part = position - lower
    first, second = scale[lower], scale[lower + 1]
    red, green, blue = (round(start + (end - start) * part) for start, end in zip(first, second, strict=True))
    return red, green, blue


def hexadecimal(colour: Colour) -> str:
    """Return a colour as #rrggbb."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def ink_on(colour: Colour) -> str:
    """Return black or white, the one with the better contrast on a colour (WCAG 2)."""
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (part / 255 for part in colour)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#ffffff"

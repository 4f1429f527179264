"""Colours of drawings: a hue and bands for each kind, a shade for each chunk.

Hues are four of Okabe and Ito's, those that colour-blind readers tell apart best in light and dark
shades too. In grey the bands say the
kind: B has one along the top, W along the bottom, BW both, F none. Shades go from dark for the
first chunk to light for the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

HUES: Final[Mapping[str, str]] = MappingProxyType(
    {"F": "#56b4e9", "BW": "#009e73", "B": "#f0e442", "W": "#d55e00"}
)
"""Kind → its hue.

Reference:
    Okabe and Ito, Color Universal Design, 2008: sky blue, bluish green, yellow, vermillion.
"""

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "F": "forward",
        "BW": "backward",
        "B": "backward for the input",
        "W": "backward for the weights",
    }
)
"""Kind → what it does, in the order of legends."""

BLACK: Final = "#000000"
WHITE: Final = "#ffffff"
_DARKEST: Final = 0.3
_LIGHTEST: Final = 0.5


def shade(kind: str, look: int, looks: int) -> str:
    """Colour of a kind in one of several shades; the hue itself where there is one.

    Args:
        kind: F, B, W or BW.
        look: which of them, from 0, the darkest.
        looks: how many there are.

    Returns:
        `#rrggbb`.

    Example:
        >>> shade("F", 0, 1), shade("F", 0, 2), shade("F", 1, 2)
        ('#56b4e9', '#3c7ea3', '#aadaf4')
    """
    hue = HUES[kind]
    if looks == 1:
        return hue
    dark, light = mixed(hue, BLACK, _DARKEST), mixed(hue, WHITE, _LIGHTEST)
    return mixed(dark, light, look / (looks - 1))


def ink(fill: str) -> str:
    """Black or white, whichever is easier to read on a colour.

    The contrast is 4.58 at least, and so above the 4.5 that WCAG 2.1 asks of small text.
    """
    return max(BLACK, WHITE, key=lambda colour: contrast(colour, fill))


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, from 1 to 21.

    Reference:
        Web Content Accessibility Guidelines 2.1, 2018, definition of contrast ratio.

    Example:
        >>> round(contrast("#000000", "#ffffff"))
        21
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance, 0 for black to 1 for white: what is left of a colour in grey."""
    red, green, blue = (_linear(value / 255) for value in _channels(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def mixed(colour: str, other: str, share: float) -> str:
    """A colour with a share, 0 to 1, of another one."""
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

"""Colours: readable, and told apart by everyone, also in grey."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from ppframe.simulator.palette import (
    HUES,
    MEANINGS,
    contrast,
    ink,
    luminance,
    mixed,
    shade,
)

# How people without one kind of cone see linear red, green, blue: Machado, Oliveira, Fernandes,
# A Physiologically-based Model for Simulation of Color Vision Deficiency, 2009, severity 1.
BLINDNESS = {
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
Colour = tuple[float, float, float]


def linear(colour: str) -> Colour:
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return red, green, blue


def seen(colour: str, matrix: tuple[Colour, ...]) -> Colour:
    rgb = linear(colour)
    red, green, blue = (
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, rgb, strict=True)))) for row in matrix
    )
    return red, green, blue


def lab(rgb: Colour) -> Colour:
    """CIE 1976 L*a*b* under D65."""
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    xyz = [sum(a * b for a, b in zip(row, rgb, strict=True)) for row in to_xyz]
    ratios = [value / reference for value, reference in zip(xyz, white, strict=True)]
    x, y, z = (r ** (1 / 3) if r > 0.008856 else 7.787 * r + 16 / 116 for r in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: Colour, other: Colour) -> float:
    return float(sum((a - b) ** 2 for a, b in zip(lab(one), lab(other), strict=True)) ** 0.5)


@pytest.mark.parametrize("looks", range(1, 9))
def test_texts_can_be_read_on_every_shade(looks: int) -> None:
    for kind in HUES:
        for look in range(looks):
            fill = shade(kind, look, looks)
            assert contrast(ink(fill), fill) >= 4.5
            # the stripes of the second chain lighten it by up to 0.6
            striped = mixed(fill, "#ffffff", 0.6)
            assert look < looks / 2 or contrast(ink(fill), striped) >= 4.5


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize("looks", [1, 2])
def test_colour_blind_readers_tell_the_kinds_apart(blindness: str, looks: int) -> None:
    """A distance of 10 in L*a*b* is plain to see side by side; just noticeable is 2.3."""
    for look in range(looks):
        colours = [seen(shade(kind, look, looks), BLINDNESS[blindness]) for kind in HUES]
        assert min(distance(*pair) for pair in combinations(colours, 2)) > 10


@pytest.mark.parametrize("looks", [2, 3, 4])
def test_in_grey_each_chunk_is_lighter_than_the_one_before(looks: int) -> None:
    for kind in HUES:
        greys = [luminance(shade(kind, look, looks)) for look in range(looks)]
        lightness = [116 * grey ** (1 / 3) - 16 for grey in greys]
        assert all(b - a > 6 for a, b in pairwise(lightness))


def test_every_kind_has_a_hue_and_a_meaning() -> None:
    assert set(HUES) == set(MEANINGS) == {"F", "B", "W", "BW"}


def test_contrast_is_that_of_wcag() -> None:
    # #767676 is the lightest grey that passes 4.5 on white, by the guidelines' own table
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
    assert contrast("#ffffff", "#000000") == pytest.approx(21)

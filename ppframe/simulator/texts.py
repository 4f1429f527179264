"""Numbers as texts for people, and for SVG."""

from __future__ import annotations

SECOND = "s"
"""The unit of time that is shown as ms or µs where that is shorter."""


def number(value: float) -> str:
    """A coordinate, to a hundredth of a pixel.

    Example:
        >>> number(3.0), number(2.507), number(-0.001)
        ('3', '2.51', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def amount(value: float) -> str:
    """A number for people, to four digits.

    Example:
        >>> amount(33.0), amount(0.123456), amount(12345.6)
        ('33', '0.1235', '12346')
    """
    return f"{value:.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def bytes_text(num_bytes: float) -> str:
    """A size with its unit.

    Example:
        >>> bytes_text(1610612736), bytes_text(512)
        ('1.5 GiB', '512 B')
    """
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if num_bytes >= 1 << power:
            return f"{num_bytes / (1 << power):.1f} {unit}"
    return f"{num_bytes:.0f} B"


def time_text(time: float, unit: str) -> str:
    """A time with its unit.

    Args:
        time: 0 or more.
        unit: unit of it, as printed.

    Example:
        >>> time_text(15.0, "forwards"), time_text(0.0125, "s"), time_text(2.0, "")
        ('15 forwards', '12.5 ms', '2')
    """
    if unit != SECOND:
        return f"{time:g} {unit}".rstrip()
    for size, name in ((1.0, "s"), (1e-3, "ms")):
        if time >= size or not time:
            return f"{time / size:.4g} {name}"
    return f"{time * 1e6:.4g} µs"


def clock_text(time: float, unit: str) -> str:
    """A time where its unit is told elsewhere, unless that is the second.

    Example:
        >>> clock_text(15.0, "forwards"), clock_text(0.0125, "s")
        ('15', '12.5 ms')
    """
    return time_text(time, unit) if unit == SECOND else amount(time)

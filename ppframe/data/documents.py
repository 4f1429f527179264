"""Documents, each a name and its bytes: which are held out, and how they become one text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from ppframe.errors import ConfigError

_SEPARATOR = b"\n\n"


def by_hash(names: Iterable[str]) -> list[str]:
    """Names in an arbitrary order that is the same everywhere.

    The order is that of a hash of each name alone, so that a document that comes or goes moves no
    other one.
    """
    return sorted(names, key=lambda name: (hashlib.blake2b(name.encode()).digest(), name))


def split_by_document(
    documents: Mapping[str, bytes], *, validation_fraction: float
) -> tuple[bytes, bytes]:
    """Training text and validation text, no document in both.

    Args:
        documents: name to content; at least two.
        validation_fraction: share of the documents to hold out; at least one is.

    Returns:
        both texts, documents in the order of their names.
    """
    require_fraction(validation_fraction)
    num_held_out = round(len(documents) * validation_fraction)
    num_held_out = min(max(1, num_held_out), len(documents) - 1)
    held_out = set(by_hash(documents)[:num_held_out])
    return (
        _SEPARATOR.join(documents[name] for name in sorted(documents) if name not in held_out),
        _SEPARATOR.join(documents[name] for name in sorted(held_out)),
    )


def split_by_position(text: bytes, *, validation_fraction: float) -> tuple[bytes, bytes]:
    """The text up to a point to train, what follows to validate."""
    require_fraction(validation_fraction)
    cut = len(text) - max(1, round(len(text) * validation_fraction))
    return text[:cut], text[cut:]


def require_fraction(validation_fraction: float) -> None:
    """Raise ConfigError unless something is left on both sides."""
    if not 0.0 < validation_fraction < 1.0:
        raise ConfigError(
            f"must lie between 0 and 1, both excluded, but is {validation_fraction}. "
            f"0.1 holds out a tenth.",
            path="data.validation_fraction",
        )

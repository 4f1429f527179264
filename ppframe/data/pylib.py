"""Real text that is there without a download: the running Python's own standard library."""

from __future__ import annotations

import logging
import os
import platform
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ppframe.data.base import require_at_least
from ppframe.data.byte_text import ByteText
from ppframe.data.documents import by_hash, split_by_document
from ppframe.errors import ConfigError
from ppframe.registry import register

_LOG = logging.getLogger(__name__)

# Not the standard library (installed packages), not everywhere (distributions leave the tests
# out), or no code to speak of (character tables, the help texts).
_LEFT_OUT = frozenset(
    {
        "__pycache__",
        "dist-packages",
        "encodings",
        "idle_test",
        "pydoc_data",
        "site-packages",
        "test",
        "tests",
    }
)


@register("data", "pylib")
def pylib(
    *, seq_len: int, validation_fraction: float = 0.05, max_bytes: int = 8_000_000
) -> ByteText:
    """Bytes of the standard library's source files, some files held out for validation.

    Which files exist depends on the version of Python; which of them are taken and held out
    depends on their names alone.

    Args:
        seq_len: length of a sample, in bytes.
        validation_fraction: share of the files to hold out, between 0 and 1.
        max_bytes: files are taken, in the order of a hash of their names, while they fit in this.

    Raises:
        ConfigError: this Python has no readable source files, or an option is out of range.
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    documents = read_library(root, max_bytes=max_bytes)
    train, validation = split_by_document(documents, validation_fraction=validation_fraction)
    source = f"standard library of Python {platform.python_version()}, {len(documents)} files"
    return ByteText(train, validation, seq_len=seq_len, source=source)


def read_library(root: Path, *, max_bytes: int) -> dict[str, bytes]:
    """Source files under a folder, as relative POSIX name to content with `\\n` line ends.

    Files that can't be read are left out, with one warning for all.

    Raises:
        ConfigError: fewer than two files could be read.
    """
    require_at_least("data.max_bytes", max_bytes, 1)
    documents: dict[str, bytes] = {}
    unreadable: list[OSError] = []
    room = max_bytes
    for name in by_hash(_source_names(root)):
        try:
            text = (root / name).read_bytes().replace(b"\r\n", b"\n")
        except OSError as error:
            unreadable.append(error)
            continue
        if len(text) > room:
            break
        documents[name] = text
        room -= len(text)
    if unreadable:
        _LOG.warning("%d files left out; the first: %s", len(unreadable), unreadable[0])
    if len(documents) < 2:
        raise ConfigError(
            f"`pylib` must find at least two readable source files, but finds {len(documents)} "
            f"under {root} (at most {max_bytes} bytes). A Python that keeps its library zipped or "
            f"compiled has none: use `data=text data.path=FILE_OR_GLOB`.",
            path="data",
        )
    return documents


def _source_names(root: Path) -> Iterator[str]:
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if name not in _LEFT_OUT)
        for file in files:
            if file.endswith(".py"):
                yield Path(folder, file).relative_to(root).as_posix()

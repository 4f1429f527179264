"""Files that are either there as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file under another name in its folder, and rename it once it is on disk.

    Whoever reads `path` sees the old file or the new one, also after a crash. When writing fails,
    the old file stays and the other one is removed.

    Args:
        path: file to write; its folder is made.
        write: writes the content to the open binary file that it is given.

    Raises:
        OSError: it can't be written; names `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with naming(path), draft.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error that the operating system raises within the block names this file."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, whole or not at all."""
    write_whole(path, lambda file: file.write(text.encode()))

"""The user's own text files, by path or glob."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from ppframe.data.byte_text import ByteText
from ppframe.data.documents import split_by_document, split_by_position
from ppframe.errors import ConfigError
from ppframe.registry import register


@register("data", "text")
def text(
    *,
    path: str | Sequence[str],
    seq_len: int,
    validation_fraction: float = 0.1,
    base_folder: str | None = None,
) -> ByteText:
    """Bytes of the files that a path or glob matches, some held out for validation.

    Of several files some whole files are held out, chosen by a hash of their names; of a single
    file its end is.

    Args:
        path: a file, or a glob such as `notes/**/*.txt`, or several of either; `~` is expanded.
        seq_len: length of a sample, in bytes.
        validation_fraction: share of the files, or of the single file, between 0 and 1.
        base_folder: what relative paths start from; the current folder when None.

    Raises:
        ConfigError: nothing matches, a file can't be read, or there is too little text.
    """
    base = Path.cwd() if base_folder is None else Path(base_folder)
    patterns = (path,) if isinstance(path, str) else tuple(path)
    if not patterns:
        raise ConfigError(
            "must match at least one file, but the list of paths is empty. Add one.",
            path="data.path",
        )
    files = sorted({file for pattern in patterns for file in _matching(pattern, base)})
    source = ", ".join(patterns)
    if len(files) == 1:
        only = _read(files[0])
        train, validation = split_by_position(only, validation_fraction=validation_fraction)
    else:
        common = os.path.commonpath(files)
        documents = {file.relative_to(common).as_posix(): _read(file) for file in files}
        train, validation = split_by_document(documents, validation_fraction=validation_fraction)
        source = f"{source} ({len(files)} files)"
    return ByteText(train, validation, seq_len=seq_len, source=source)


def _matching(pattern: str, base: Path) -> list[Path]:
    """Files that the pattern names; a name that exists is taken as it stands, brackets and all."""
    wanted = base / Path(pattern).expanduser()
    if wanted.is_file():
        return [wanted.resolve()]
    if wanted.is_dir():
        raise ConfigError(
            f"must name files, but `{pattern}` is a folder ({wanted}). "
            f"Give a glob, such as `{pattern.rstrip('/')}/**/*.txt`.",
            path="data.path",
        )
    pattern_expanded = str(Path(pattern).expanduser())
    found = glob.glob(os.path.join(glob.escape(str(base)), pattern_expanded), recursive=True)
    files = [Path(name).resolve() for name in found if Path(name).is_file()]
    if not files:
        raise ConfigError(
            f"must match at least one file, but `{pattern}` matches none (looked for {wanted}). "
            f"Correct it; relative paths start from {base}.",
            path="data.path",
        )
    return files


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"must match readable files, but {file} can't be read ({error.strerror}). "
            f"Change its permissions, or narrow the pattern.",
            path="data.path",
        ) from error

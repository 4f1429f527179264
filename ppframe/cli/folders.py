"""Where configuration comes from and where runs write."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin

import ppframe
from ppframe.config.plain import register_resolver
from ppframe.errors import ConfigError

_MAX_NAME_BYTES = 120
_HASH_LETTERS = 8
_TRIED_BYTES = 1 << 15  # about what Hydra and the start of a run write
_RESOLVER = "ppframe.bounded"


def conf_folder() -> Path:
    """The folder of the package's own configuration: in the wheel, else in the repository."""
    package = Path(ppframe.__file__).resolve().parent
    in_wheel = package / "conf"
    return in_wheel if in_wheel.is_dir() else package.parent / "conf"


def own_conf_folder(launch_folder: Path) -> Path | None:
    """The user's `conf` in the launch folder, where it is one and another than the package's."""
    own = launch_folder / "conf"
    if not own.is_dir() or own.resolve() == conf_folder():
        return None
    return own


@final
class OwnConf(SearchPathPlugin):
    """Puts the user's `conf` behind the package's on Hydra's search path."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append it, where there is one."""
        own = own_conf_folder(Path.cwd())
        if own is not None:
            search_path.append(provider="launch folder", path=f"file://{own.resolve()}")


def hidden_files(launch_folder: Path) -> list[Path]:
    """Files of the user's `conf` that are never read, as the package has others of their names."""
    own, package = own_conf_folder(launch_folder), conf_folder()
    if own is None:
        return []
    return [
        file
        for file in sorted(own.rglob("*.yaml"))
        if (twin := package / file.relative_to(own)).is_file()
        and twin.read_bytes() != file.read_bytes()
    ]


def follows() -> bool:
    """Whether this is one of several processes of a run, and not the first: torchrun's RANK."""
    return os.environ.get("RANK", "0") != "0"


def scratch_folder() -> Path:
    """A folder for a process whose run writes in another one's; it goes when the process ends."""
    folder = tempfile.mkdtemp(prefix="ppframe_rank_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def claim_folder(wanted: Path) -> Path:
    """Make a folder that no other launch has, as near to the wanted name as can be.

    Making a folder is atomic: of two launches in the same second one gets the name, the other the
    same with `-2`.

    Args:
        wanted: absolute path.

    Returns:
        the folder made.

    Raises:
        ConfigError: it can't be made, or nothing can be written into it.
    """
    wanted = bounded(wanted)
    with _told(wanted):
        wanted.parent.mkdir(parents=True, exist_ok=True)
        folder = _claimed(wanted)
        _try_to_write(folder)
    return folder


def writable_folder(wanted: Path) -> Path:
    """The folder itself, made where it is not there; others may have it too.

    Raises:
        ConfigError: it can't be made, or nothing can be written into it.
    """
    with _told(wanted):
        wanted.mkdir(parents=True, exist_ok=True)
        _try_to_write(wanted)
    return wanted


def _claimed(wanted: Path) -> Path:
    number = 1
    while True:
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def _try_to_write(folder: Path) -> None:
    probe = folder / f".probe.{os.getpid()}"
    try:
        probe.write_bytes(bytes(_TRIED_BYTES))
    finally:
        probe.unlink(missing_ok=True)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """What the operating system refuses, as the fault that it is."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"the folder of the run must be one that can be made and written into, but is "
            f"{folder}, which gave: {error.strerror or error}. Start somewhere else, or set "
            "hydra.run.dir (hydra.sweep.dir for a sweep) to another folder."
        ) from error


def bounded(path: Path) -> Path:
    """The path with every too long name in it cut, a hash of the whole name at its end."""
    return Path(*(bounded_name(part) for part in path.parts))


def bounded_interpolation(text: str) -> str:
    """An interpolation that bounds the folder that `text` becomes once it is resolved."""
    return f"${{{_RESOLVER}:{text}}}"


def register_bounds() -> None:
    """Make `bounded_interpolation` work in this process."""
    register_resolver(_RESOLVER, lambda *parts: str(bounded(Path(",".join(map(str, parts))))))


def bounded_name(name: str) -> str:
    """The name itself, or its beginning and a hash where it is too long for a folder."""
    encoded = os.fsencode(name)
    if len(encoded) <= _MAX_NAME_BYTES:
        return name
    mark = hashlib.sha256(encoded).hexdigest()[:_HASH_LETTERS]
    head = encoded[: _MAX_NAME_BYTES - _HASH_LETTERS - 1].decode("utf-8", "ignore")
    return f"{head}-{mark}"

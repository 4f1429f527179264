"""Import paths: from `package.module.Class` to the thing itself, or to the real reason why not."""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from collections.abc import Iterable
from types import ModuleType
from typing import Any, final

from ppframe.registry import nearest_first

_SHOWN = 5


@final
class NotImportable(Exception):
    """An import path that leads nowhere; the text says why and names what is near."""


def locate(path: str) -> Any:
    """The class, function or module that an import path names.

    Args:
        path: such as `torch.nn.Linear`; a class inside a class is found too.

    Raises:
        NotImportable: a module that is missing or raises, or a name that its module lacks.
    """
    names = path.split(".")
    if not all(name.isidentifier() for name in names):
        raise NotImportable(
            f"must be an import path such as `package.module.Class`, but is `{path}`"
        )
    found: Any = _import(names[0], path)
    for depth, name in enumerate(names[1:], 1):
        found = _member(found, name, ".".join(names[:depth]), path)
    return found


def _member(owner: Any, name: str, owner_path: str, path: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        pass
    if isinstance(owner, ModuleType) and hasattr(owner, "__path__"):
        return _import(f"{owner_path}.{name}", path)
    raise NotImportable(_missing(path, name, owner_path, _public(owner)))


def _import(module: str, path: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise NotImportable(_raised(path, module, error)) from error
        parent, _, name = module.rpartition(".")
        raise NotImportable(_missing(path, name, parent, _modules(parent))) from error
    except (Exception, SystemExit) as error:  # whatever the user's module raises, we report
        raise NotImportable(_raised(path, module, error)) from error


def _missing(path: str, name: str, owner: str, known: Iterable[str]) -> str:
    near = ", ".join(f"`{entry}`" for entry in nearest_first(name, known)[:_SHOWN])
    where = f"`{owner}` has no `{name}`" if owner else f"there is no module `{name}`"
    return f"must be importable, but is `{path}`, and {where}. Nearest: {near or 'none'}"


def _raised(path: str, module: str, error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "importlib" not in frame.filename]
    where = f"{own[-1].filename}, line {own[-1].lineno}" if own[1:] else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}, line {error.lineno}"
    return (
        f"must be importable, but is `{path}`, and importing `{module}` raised "
        f"{type(error).__name__}: {error}" + (f" ({where})" if where else "")
    )


def _public(owner: Any) -> list[str]:
    names = [name for name in dir(owner) if not name.startswith("_")]
    if hasattr(owner, "__path__"):
        names += [entry.name for entry in pkgutil.iter_modules(owner.__path__)]
    return names


def _modules(parent: str) -> list[str]:
    if parent:
        return _public(importlib.import_module(parent))
    return [entry.name for entry in pkgutil.iter_modules()]

"""Composing on the side: what Hydra is about to compose, to look at before it does.

Hydra's public `compose` knows nothing of `--config-dir` and the like, so this uses the loader that
Hydra's own main makes; the version of Hydra is bounded for that reason.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.hydra_config import HydraConfig
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import setup_globals
from hydra.types import RunMode

from ppframe.cli.folders import OwnConf, conf_folder
from ppframe.config.plain import keys_of_file, without_key
from ppframe.errors import ConfigError

VERSION_BASE = "1.3"
CONFIG_NAME = "config"


@final
@dataclass(frozen=True, slots=True)
class Composition:
    """What Hydra composed.

    Args:
        whole: everything, with Hydra's own part under `hydra`.
    """

    whole: Any

    @property
    def task(self) -> Any:
        """The part that the job gets."""
        return without_key(self.whole, "hydra")

    @property
    def choices(self) -> Mapping[str, Any]:
        """The option chosen in each group."""
        choices: Mapping[str, Any] = self.whole.hydra.runtime.choices
        return choices

    def declared(self, group: str) -> frozenset[str]:
        """The keys that the chosen option of a group writes into its file."""
        return declared_keys(self.whole.hydra, group)

    @property
    def is_sweep(self) -> bool:
        """Whether the configuration itself asks for a sweep."""
        return bool(self.whole.hydra.mode == RunMode.MULTIRUN)


@final
class Composer:
    """Composes configurations and answers what there is to compose.

    Args:
        loader: on the search path of the run.
        config_name: the file to begin with.
    """

    def __init__(self, loader: ConfigLoaderImpl, config_name: str) -> None:
        self._loader = loader
        self._config_name = config_name
        self._made: dict[tuple[str, ...], Composition] = {}
        self._parser = OverridesParser.create(config_loader=loader)

    @classmethod
    def from_arguments(cls, arguments: argparse.Namespace) -> Composer:
        """The composer of a command line.

        Raises:
            ConfigError: a folder that it names is not there.
        """
        version.setbase(VERSION_BASE)
        setup_globals()
        Plugins.instance().register(OwnConf)
        folder = Path(arguments.config_path or conf_folder())
        if not folder.is_dir():
            raise ConfigError(f"--config-path must be a folder that is there, but is {folder}.")
        search_path = create_config_search_path(str(folder))
        if arguments.config_dir is not None:
            extra = Path(arguments.config_dir).resolve()
            if not extra.is_dir():
                raise ConfigError(f"--config-dir must be a folder that is there, but is {extra}.")
            before = SearchPathQuery(provider="schema")
            search_path.prepend(provider="command-line", path=f"file://{extra}", anchor=before)
        return cls(ConfigLoaderImpl(search_path), arguments.config_name or CONFIG_NAME)

    def compose(self, overrides: Sequence[str]) -> Composition:
        """What Hydra makes of these overrides; made once.

        Raises:
            ConfigError: it can't be composed; the text is Hydra's.
        """
        key = tuple(overrides)
        if key not in self._made:
            self._made[key] = self._compose(key)
        return self._made[key]

    def _compose(self, overrides: Sequence[str]) -> Composition:
        try:
            config = self._loader.load_configuration(
                config_name=self._config_name,
                overrides=list(overrides),
                run_mode=RunMode.RUN,
                validate_sweep_overrides=False,
            )
        except Exception as error:  # Hydra, OmegaConf and YAML raise classes of their own
            reasons = [str(reason) for reason in (error, error.__cause__) if reason is not None]
            lines = [line.strip() for text in reasons for line in text.splitlines()[:3]]
            lines += self._no_texts() if isinstance(error, UnicodeError) else []
            raise ConfigError(" ".join(filter(None, lines)) or type(error).__name__) from error
        HydraConfig.instance().set_config(config)
        return Composition(config)

    def _no_texts(self) -> list[str]:
        """The files under conf that Python can't read as text, of which its error names none."""
        files = [file for folder in self.sources() for file in sorted(folder.rglob("*.yaml"))]
        return [f"({file} must be UTF-8 text.)" for file in files if not _is_text(file)]

    def parse(self, text: str) -> Override:
        """An override in parts.

        Raises:
            HydraException: it breaks Hydra's grammar.
        """
        return self._parser.parse_overrides([text])[0]

    def is_group(self, key: str) -> bool:
        """Whether a key names a config group, such as `schedule` or `hydra/launcher`."""
        return "." not in key and self._loader.repository.group_exists(key)

    def has_option(self, group: str, name: str) -> bool:
        """Whether a group has an option of this name."""
        return bool(name) and self._loader.repository.config_exists(f"{group}/{name}")

    def option_like(self, group: str, name: str) -> str | None:
        """The option of this name, where `_` and `-` and the case of letters count as the same."""
        if self.has_option(group, name):
            return name
        alike = [option for option in self.options(group) if _folded(option) == _folded(name)]
        return alike[0] if len(alike) == 1 else None

    def has_all(self, group: str, names: Sequence[str]) -> bool:
        """Whether a group has all of these options."""
        return all(self.has_option(group, name) for name in names)

    def options(self, group: str) -> list[str]:
        """The options of a group, sorted."""
        return sorted(self._loader.repository.get_group_options(group, ObjectType.CONFIG))

    def keys_of(self, group: str, name: str) -> frozenset[str]:
        """The keys that an option writes into its file."""
        files = (Path(folder, group, f"{name}.yaml") for folder in self.sources())
        return next((keys_of_file(file) for file in files if file.is_file()), frozenset())

    def groups(self) -> list[str]:
        """The groups at the top, Hydra's own left out, sorted."""
        found = self._loader.repository.get_group_options("", ObjectType.GROUP)
        return sorted(group for group in found if group != "hydra")

    def sources(self) -> list[Path]:
        """The folders on the search path, first found first."""
        return [
            Path(source.path)
            for source in self._loader.get_sources()
            if source.scheme() == "file" and Path(source.path).is_dir()
        ]


def declared_keys(hydra: Any, group: str) -> frozenset[str]:
    """The keys that the chosen option of a group writes into its file.

    Args:
        hydra: Hydra's own part of a composed configuration.
        group: the group.
    """
    for source in hydra.runtime.config_sources:
        file = Path(source.path, group, f"{hydra.runtime.choices.get(group)}.yaml")
        if source.schema == "file" and file.is_file():
            return keys_of_file(file)
    return frozenset()


def _is_text(file: Path) -> bool:
    try:
        file.read_text(encoding="utf-8")
    except UnicodeError:
        return False
    return True


def _folded(name: str) -> str:
    return name.replace("_", "-").lower()

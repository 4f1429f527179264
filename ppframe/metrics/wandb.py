"""Weights & Biases as a sink: online with a key, offline without, never a question.

wandb is imported when a run starts, not with this module: a run without it doesn't pay for it.
"""

from __future__ import annotations

import html
import logging
import netrc
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final
from urllib.parse import urlsplit

from ppframe.errors import ConfigError, Fault
from ppframe.metrics.base import Plan, RunInfo, Sink
from ppframe.metrics.plain import jsonable
from ppframe.registry import register
from ppframe.simulator import DrawingOptions, draw_html

if TYPE_CHECKING:
    from wandb import Run

_log = logging.getLogger(__name__)

_DRAWN_ACTIONS = 5000
_MAX_TAG_LETTERS = 64

_MAX_PROJECT_LETTERS = 128
_NOT_IN_PROJECTS = "/\\#?%:"
_MODE_VARIABLE = "WANDB_MODE"
_CACHE_VARIABLE = "WANDB_CACHE_DIR"

Mode = Literal["online", "offline", "disabled", "shared"]
_MODES: Mapping[str, Mode] = {
    "online": "online",
    "run": "online",
    "offline": "offline",
    "dryrun": "offline",
    "disabled": "disabled",
    "shared": "shared",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WandbOptions:
    """Options of the sink.

    Args:
        project: project that the run is filed under.
        entity: user or team; None for the key's own.
        group: group of runs; None for the run's own group, such as its sweep.
        tags: tags of the run.
        mode: how to run; None for `WANDB_MODE`, or else online with a key and offline without.
        init_timeout_s: seconds to wait for the server before going offline.
    """

    project: str = "ppframe"
    entity: str | None = None
    group: str | None = None
    tags: Sequence[str] = ()
    mode: Mode | None = None
    init_timeout_s: float = 30.0


@register("logger", "wandb")
def wandb(
    *,
    project: str = "ppframe",
    entity: str | None = None,
    group: str | None = None,
    tags: Sequence[str] = (),
    mode: Mode | None = None,
    init_timeout_s: float = 30.0,
) -> Sink:
    """Sink for Weights & Biases; the options are those of `WandbOptions`.

    Raises:
        ConfigError: with each thing that wandb would refuse: the name of the project, a tag that is
            empty or too long, an unknown mode in `WANDB_MODE`.
    """
    faults = [*_project_faults(project), *_tag_faults(tags), *_mode_faults(os.environ)]
    if faults:
        raise ConfigError(faults)
    return WandbSink(
        WandbOptions(
            project=project,
            entity=entity,
            group=group,
            tags=tuple(tags),
            mode=mode,
            init_timeout_s=init_timeout_s,
        )
    )


def _project_faults(project: str) -> Iterator[Fault]:
    path = "logger.wandb.project"
    refused = [letter for letter in _NOT_IN_PROJECTS if letter in project]
    if refused:
        yield Fault(
            path,
            f"must have none of the letters {' '.join(_NOT_IN_PROJECTS)}, but `{project}` has "
            f"{' '.join(refused)}. Write - for it; `logger.wandb.entity` takes the user or team.",
        )
    if len(project) > _MAX_PROJECT_LETTERS:
        yield Fault(
            path,
            f"must have at most {_MAX_PROJECT_LETTERS} letters, but has {len(project)}. Shorten "
            "it.",
        )


def _tag_faults(tags: Sequence[str]) -> Iterator[Fault]:
    for tag in tags:
        if not 1 <= len(tag) <= _MAX_TAG_LETTERS:
            yield Fault(
                "logger.wandb.tags",
                f"each tag must have 1 to {_MAX_TAG_LETTERS} letters, but `{tag}` has {len(tag)}. "
                "Shorten it.",
            )


def _mode_faults(environment: Mapping[str, str]) -> Iterator[Fault]:
    """wandb refuses it even where a mode is given."""
    name = environment.get(_MODE_VARIABLE)
    if name and name not in _MODES:
        yield Fault(
            "logger.wandb.mode",
            f"{_MODE_VARIABLE}, which stands for it in the environment, must be one of "
            f"{', '.join(_MODES)}, but is `{name}`. Correct it, or unset it.",
        )


@final
class WandbSink(Sink):
    """Records the run with wandb, in the folder `wandb` of the run directory.

    The run's id is kept beside its files, so that a run which goes on in the same directory goes on
    under the same id. Nothing is left behind: wandb's service ends with the run.
    """

    def __init__(self, options: WandbOptions) -> None:
        self._options = options
        self._run: Run | None = None
        self._is_started = False

    def start(self, run: RunInfo) -> None:
        """Open the run; without a server it is recorded offline."""
        self._is_started = True
        if not os.environ.get(_MODE_VARIABLE):
            os.environ.pop(_MODE_VARIABLE, None)  # wandb takes an empty one for a mode
        mode = choose_mode(self._options.mode, os.environ)
        folder = run.run_dir / "wandb"
        folder.mkdir(exist_ok=True)
        if not _has_cache(os.environ):
            os.environ[_CACHE_VARIABLE] = str(folder / "cache")
        if mode.notice:
            _log.warning("wandb: %s; recorded offline in %s", mode.notice, folder)
        try:
            self._run = self._open(run, mode.name)
        except Exception as error:
            if mode.name not in ("online", "shared"):
                raise
            reason = str(error).strip().partition("\n")[0]
            _log.warning("wandb: no run online (%s); recorded offline in %s", reason, folder)
            self._run = self._reopen_offline(run)
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")
        if run.plan is not None:
            self._run.summary["bubble_fraction_predicted"] = run.plan.bubble_fraction
            self.page("schedule", _drawing(run.plan))

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Log under our own step; wandb's own counts rows."""
        if self._run is not None:
            self._run.log({**metrics, "step": step})

    def text(self, name: str, text: str) -> None:
        """Log the text as an HTML page of fixed-width letters."""
        self.page(name, f"<pre>{html.escape(text)}</pre>")

    def page(self, name: str, page: str) -> None:
        """Log the page as it is."""
        if self._run is not None:
            import wandb as client

            self._run.log({name: client.Html(page, inject=False)})

    def finish(self, summary: Mapping[str, Any], exit_code: int) -> None:
        """Close the run with its exit code, and wandb's service with it."""
        if not self._is_started:
            return
        import wandb as client

        try:
            if self._run is not None:
                self._run.summary.update(jsonable(summary))
                self._run.finish(exit_code=exit_code)
        finally:
            self._run = None
            client.teardown(exit_code)

    def _reopen_offline(self, run: RunInfo) -> Run:
        """Open under the same id, which the service holds until it ends."""
        import wandb as client

        client.teardown()
        return self._open(run, "offline")

    def _open(self, run: RunInfo, mode: Mode) -> Run:
        import wandb as client

        run_id, is_known = _run_id(run.run_dir)
        if any((run.run_dir / "wandb").glob(f"offline-run-*-{run_id}")):
            _log.warning("wandb: run %s goes on in a second folder beside its first", run_id)
        settings = client.Settings(console="off", init_timeout=self._options.init_timeout_s)
        if mode == "offline":
            settings.silent = True  # otherwise the environment decides
        return client.init(
            project=self._options.project,
            entity=self._options.entity,
            group=self._options.group or run.group or None,
            tags=list(self._options.tags),
            name=run.name or None,
            job_type=run.job_type,
            dir=run.run_dir,
            config=jsonable(run.config),
            id=run_id,
            resume="allow" if is_known else None,
            mode=mode,
            reinit="finish_previous",
            settings=settings,
        )


def _drawing(plan: Plan) -> str:
    """The schedule as a page to zoom and click in."""
    options = DrawingOptions(max_actions=_DRAWN_ACTIONS)
    return draw_html(plan.timeline, title=plan.schedule, unit=plan.time_unit, options=options)


@final
@dataclass(frozen=True, slots=True)
class ChosenMode:
    """A mode of wandb.

    Args:
        name: the mode.
        notice: why it is offline though nobody asked for that; empty otherwise.
    """

    name: Mode
    notice: str = ""


def choose_mode(asked: Mode | None, environment: Mapping[str, str]) -> ChosenMode:
    """What the user says, else `WANDB_MODE`, else online with a key and offline without.

    An empty `WANDB_MODE` says nothing. Online without a key would ask for one, so it becomes
    offline as well.
    """
    name = asked or _MODES.get(environment.get(_MODE_VARIABLE, ""), "online")
    if name in ("online", "shared") and not has_key(environment):
        return ChosenMode("offline", "no API key found (WANDB_API_KEY or netrc)")
    return ChosenMode(name)


def has_key(environment: Mapping[str, str]) -> bool:
    """Whether wandb would find a key without asking: in the environment or in the netrc file."""
    if environment.get("WANDB_API_KEY") or environment.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    own = environment.get("WANDB_BASE_URL")
    hosts = {urlsplit(own).netloc} if own else {"api.wandb.ai", *_default_host()}
    try:
        entries = netrc.netrc(_netrc_path(environment))
    except (OSError, netrc.NetrcParseError):
        return False
    found = (entries.authenticators(host) for host in hosts)
    return any(entry is not None and entry[2] for entry in found)


def _default_host() -> set[str]:
    import wandb as client

    return {urlsplit(str(client.Settings().base_url)).netloc}


def _netrc_path(environment: Mapping[str, str]) -> Path:
    named = environment.get("NETRC")
    if named:
        return Path(named).expanduser()
    home = Path("~").expanduser()
    usual, windows = home / ".netrc", home / "_netrc"
    return windows if windows.exists() and not usual.exists() else usual


def _has_cache(environment: Mapping[str, str]) -> bool:
    """Whether wandb can write where it keeps its log; if not, it logs to the terminal."""
    home = environment.get("HOME")
    usual = environment.get("XDG_CACHE_HOME") or (home and f"{home}/.cache")
    root = environment.get(_CACHE_VARIABLE) or usual
    if not root:
        return False
    try:
        Path(root, "wandb", "logs").mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return True


def _run_id(run_dir: Path) -> tuple[str, bool]:
    """The id kept in the run directory and True, or a new one, now kept there, and False."""
    path = run_dir / "wandb" / "run_id"
    if path.exists():
        return path.read_text(encoding="utf-8").strip(), True
    run_id = uuid.uuid4().hex[:12]
    path.write_text(run_id + "\n", encoding="utf-8")
    return run_id, False

"""What `--help` prints: how to run, the groups with a line on each option, the keys, their values.

Everything comes from the files under conf: the first sentence of an option's file is its line, the
comment behind a key is the key's. Only schedules say themselves what they are. Hydra's own help
lists names only, and takes longer.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ppframe.cli.composer import CONFIG_NAME, Composer
from ppframe.config.plain import raw_yaml
from ppframe.registry import names
from ppframe.schedule import schedule_facts
from ppframe.schedule.generators.facts import KIND

_USAGE = """\
ppframe: pipeline-parallel training from a config.

  {command} [GROUP=OPTION] [KEY=VALUE]...    one run
  {command} -m KEY=VALUE,VALUE...            a sweep: a job for every combination
  {command} mode=plan                        verify, simulate and draw; no training
  {command} mode=check                       list every fault of the configuration
  {command} mode=eval checkpoint=PATH        evaluate a saved model
  {command} mode=profile                     measure what each stage costs, for cost=profiled
  {command} --help [GROUP=OPTION]...         this text, for other options

+KEY=VALUE adds a key that no file lists, ~KEY takes one away. Files of a run: outputs/DATE/TIME.
Tab completion: eval "$({command} -sc install=bash)". Hydra's own options: --hydra-help.
"""
_KEY = re.compile(r"^(\s*)([\w-]+):")
_COMMENT = re.compile(r"\s#\s+(.*)$")
_COLUMN = 40


def help_text(composer: Composer, overrides: Sequence[str]) -> str:
    """The whole text.

    Args:
        composer: knows the groups.
        overrides: of the command line, whose keys and values are shown.
    """
    composed = composer.compose(overrides)
    chosen = {group: str(choice) for group, choice in composed.choices.items()}
    parts = [
        _USAGE.format(command=command_name()),
        "Groups and their options (* is chosen)",
        *_groups(composer, chosen),
        "",
        "Keys and their values",
        *_keys(raw_yaml(composed.task), _all_comments(composer, chosen)),
        "",
    ]
    return "\n".join(parts)


def command_name() -> str:
    """How this process was called, as one types it."""
    name = os.path.basename(sys.argv[0])
    return f"python {name}" if name.endswith(".py") else name


def _groups(composer: Composer, chosen: Mapping[str, str]) -> Iterator[str]:
    for group in composer.groups():
        label = group
        for option in composer.options(group):
            mark = "*" if chosen.get(group) == option else " "
            title = option_title(composer, f"{group}/{option}")
            yield f"  {label:<15}{mark} {option:<18} {title}".rstrip()
            label = ""


def option_title(composer: Composer, name: str) -> str:
    """What an option is, in a sentence; empty where nothing says it.

    A schedule says it in its facts, any other option in the first comment of its file.

    Args:
        composer: finds the file.
        name: such as `schedule/1f1b`.
    """
    group, _, option = name.partition("/")
    facts = schedule_facts(option) if group == KIND and option in names(KIND) else None
    if facts is not None:
        return f"{facts.summary[:1].upper()}{facts.summary[1:]}."
    lines = [line for line in _text(composer, name).splitlines() if not line.startswith("# @")]
    comments = itertools.takewhile(lambda line: line.startswith("#"), lines)
    text = " ".join(line.lstrip("# ") for line in comments)
    sentence, dot, _ = text.partition(". ")
    return sentence + dot.rstrip()


def _all_comments(composer: Composer, chosen: Mapping[str, str]) -> dict[str, str]:
    """The comment behind each key, by dotted path."""
    found = dict(_comments(_text(composer, CONFIG_NAME), ""))
    for group, option in chosen.items():
        found.update(_comments(_text(composer, f"{group}/{option}"), f"{group}."))
    return found


def _comments(text: str, prefix: str) -> Iterator[tuple[str, str]]:
    for path, line in _paths(text.splitlines()):
        comment = _COMMENT.search(line)
        if comment is not None and path:
            yield prefix + path, comment[1]


def _keys(text: str, comments: Mapping[str, str]) -> Iterator[str]:
    for path, line in _paths(text.splitlines()):
        comment = comments.get(path)
        yield f"  {line}" if comment is None else f"  {line:<{_COLUMN}} # {comment}"


def _paths(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each line of a YAML text with the dotted path of its key, which is empty in lists."""
    above: list[tuple[int, str]] = []
    for line in lines:
        match = _KEY.match(line)
        if match is None:
            yield "", line
            continue
        indent = len(match[1])
        above = [*(entry for entry in above if entry[0] < indent), (indent, match[2])]
        yield ".".join(key for _, key in above), line


def _text(composer: Composer, name: str) -> str:
    """The file of an option; empty where it is none of the files on the search path."""
    for folder in composer.sources():
        file = Path(folder, f"{name}.yaml")
        if file.is_file():
            return file.read_text(encoding="utf-8", errors="replace")
    return ""

"""What the files under conf can say about a fault."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ppframe.cli.composer import Composer, Composition
from ppframe.cli.help import option_title
from ppframe.errors import Fault

_ABSENT = re.compile(r"there is no `([\w-]+)\.([\w.-]+)`")
_CHOICE = re.compile(r"\b[\w-]+=[\w-]+")


def with_hint(fault: Fault, composed: Composition, composer: Composer) -> Fault:
    """The fault; where an interpolation reads a key that the chosen option lacks, with more.

    Told are the options that have the key, and what the options in question say that they go with.

    Args:
        fault: as it was found.
        composed: the configuration that it was found in.
        composer: knows the groups.
    """
    absent = _ABSENT.search(fault.message)
    if absent is None or not composer.is_group(absent[1]):
        return fault
    group, key = absent.groups()
    having = [name for name in composer.options(group) if key in composer.keys_of(group, name)]
    groups = dict.fromkeys((fault.path.partition(".")[0], group))
    hints = [
        *([f"It is in {' and in '.join(f'{group}={name}' for name in having)}."] if having else ()),
        *(hint for each in groups for hint in _said_by(each, composed, composer)),
    ]
    return replace(fault, message=" ".join((fault.message, *hints)))


def _said_by(group: str, composed: Composition, composer: Composer) -> Iterator[str]:
    """The line of the chosen option, where it names options of other groups."""
    option = f"{group}/{composed.choices.get(group)}"
    title = option_title(composer, option)
    if _CHOICE.search(title):
        yield f"conf/{option}.yaml says: {title}"

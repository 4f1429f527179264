"""What `--help` says of every option."""

from __future__ import annotations

import os
from pathlib import Path

from hydra._internal.utils import get_args_parser

from ppframe.cli.composer import Composer
from ppframe.cli.help import help_text, option_title
from ppframe.schedule.generators.gpipe import FACTS
from tests.launching import composer, process_state


def test_every_option_of_every_group_is_told_in_a_whole_sentence() -> None:
    options = [
        f"{group}/{option}"
        for group in composer().groups()
        if group != "local"
        for option in composer().options(group)
    ]
    titles = {name: option_title(composer(), name) for name in options}
    assert {name for name, title in titles.items() if not title} == set()
    assert [name for name, title in titles.items() if title[-1] not in ".…}"] == []


def test_a_schedule_is_told_by_its_facts() -> None:
    told = help_text(composer(), [])
    assert f"gpipe              {FACTS.summary.capitalize()}." in told


def test_a_comment_of_several_lines_is_told_up_to_the_end_of_its_sentence(tmp_path: Path) -> None:
    (tmp_path / "conf" / "loss").mkdir(parents=True)
    text = "# @package _global_\n# One sentence,\n# in two lines. Another.\nname: mse  # not this\n"
    (tmp_path / "conf" / "loss" / "own.yaml").write_text(text)
    with process_state():
        os.chdir(tmp_path)
        own = Composer.from_arguments(get_args_parser().parse_args([]))
        assert option_title(own, "loss/own") == "One sentence, in two lines."

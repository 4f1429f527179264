"""The HTML page, read back as XML: complete in itself, and true to what actions need."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings

from ppframe.schedule import Action, Compute, Schedule, build_schedule
from ppframe.simulator import DrawingOptions, TimelineEntry, draw_html, replay, simulate
from tests.simulator.shapes import schedules


def page_of(name: str = "dora", ranks: int = 4, microbatches: int = 8) -> str:
    return draw_html(simulate(build_schedule(name, ranks, microbatches)), title=name)


def boxes(page: str) -> list[ET.Element]:
    return [e for e in ET.fromstring(page).iter() if "box" in e.get("class", "").split()]


def needs_in(page: str) -> list[list[int]]:
    (found,) = (e for e in ET.fromstring(page).iter("script") if e.get("id") == "needs")
    needs: list[list[int]] = json.loads(found.text or "")
    return needs


def needed_in_words(action: Compute, last: int) -> set[str]:
    """The rule as the papers state it, with every way in which it may be met."""
    stage, kind, m = action.stage, action.kind.value, action.microbatch
    if kind == "F":
        return {f"{stage - 1}F{m}"} if stage else set()
    if kind == "W":
        return {f"{stage}B{m}"}
    above = {f"{stage + 1}B{m}", f"{stage + 1}BW{m}"} if stage < last else set()
    return {f"{stage}F{m}"} | above


@given(schedules())
@settings(max_examples=20, deadline=None)
def test_links_lead_to_what_an_action_needs(schedule: Schedule) -> None:
    page = draw_html(simulate(schedule))
    drawn = [box.get("data-action", "") for box in boxes(page)]
    for action, needs in zip(drawn, needs_in(page), strict=True):
        parsed = Action.parse(action)
        assert isinstance(parsed, Compute)
        wanted = needed_in_words(parsed, schedule.num_stages - 1) & set(drawn)
        assert {drawn[need] for need in needs} == wanted


def test_a_measured_action_is_linked_to_measured_ones() -> None:
    report = simulate(build_schedule("gpipe", 2, 1))
    page = draw_html(report, measured=report.timeline)
    # rank 0 predicted, rank 0 measured, rank 1 predicted, rank 1 measured; F and BW in each
    assert needs_in(page) == [[], [0, 5], [], [2, 7], [0], [4], [2], [6]]


def test_a_part_of_a_pair_is_found_in_the_pair() -> None:
    ran = [("0F0", 0), ("1F0", 1), ("(0F1;1BW0)", 2), ("1F1", 4)]
    page = draw_html([TimelineEntry(0, Action.parse(a), at, at + 1) for a, at in ran])
    assert needs_in(page) == [[], [0], [1], [2]]


def test_the_page_loads_nothing() -> None:
    page = page_of()
    assert re.findall(r"https?:|//[\w-]+\.|\bsrc=|\bhref=|@import|url\((?!#)", page) == []


def test_names_are_escaped() -> None:
    page = draw_html([TimelineEntry(0, Action.parse("0F0"), 0, 1)], title="</script><b>&")
    root = ET.fromstring(page)
    assert root.findtext("head/title") == "</script><b>&"
    assert page.count("</script>") == 2


def test_there_is_a_switch_for_all_that_there_is_to_switch() -> None:
    def switches(page: str) -> set[str]:
        return {e.get("id", "")[5:] for e in ET.fromstring(page).iter("input")}

    report = simulate(build_schedule("1f1b", 2, 3))
    always = {"memory", "transfers", "critical"}
    assert switches(draw_html(report)) == always
    measured = draw_html(report, measured=report.timeline)
    assert switches(measured) == always | {"predicted", "measured"}


def test_every_element_that_the_viewer_asks_for_is_there() -> None:
    report = simulate(build_schedule("1f1b", 2, 3))
    root = ET.fromstring(draw_html(report, measured=report.timeline))
    ids = {e.get("id") for e in root.iter()}
    classes = {name for e in root.iter() for name in e.get("class", "").split()}
    code = files("ppframe.simulator").joinpath("viewer.js").read_text(encoding="utf-8")
    assert set(re.findall(r'getElementById\("([\w-]+)"\)', code)) <= ids
    assert set(re.findall(r'querySelector\("\.([\w-]+)"\)', code)) <= classes


def test_the_tables_state_the_figures_of_the_report() -> None:
    cells = [cell.text for cell in ET.fromstring(page_of("1f1b")).iter("td")]
    # (M + P - 1) * 3 and 3 * (P - 1) of it idle
    assert cells[:6] == ["makespan", "33", "bubble fraction", "0.2727", "span bubble", "0.2727"]
    assert cells[8:14] == ["0", "24", "9", "27.3%", "4", "4"]


def test_predicted_and_measured_figures_stand_side_by_side() -> None:
    schedule = build_schedule("gpipe", 1, 1)
    measured = replay(schedule, {Action.parse("0F0"): 2.0, Action.parse("0BW0"): 5.0})
    page = draw_html(simulate(schedule), measured=measured.timeline, unit="s")
    cells = [cell.text for cell in ET.fromstring(page).iter("td")]
    assert cells[:3] == ["makespan", "3 s", "7 s"]


def test_critical_actions_are_marked() -> None:
    report = simulate(build_schedule("1f1b", 4, 8))
    marked = [b for b in boxes(draw_html(report)) if "critical" in b.get("class", "")]
    assert len(marked) == len(report.critical_path)


def test_a_big_one_is_cut_and_stays_small() -> None:
    report = simulate(build_schedule("1f1b", 16, 64))
    page = draw_html(report, options=DrawingOptions(max_actions=500))
    assert len(boxes(page)) <= 500
    assert len(needs_in(page)) == len(boxes(page))
    assert "Part of the whole" in page
    assert len(page) < 500 * 600 + 40_000


@pytest.mark.skipif(shutil.which("node") is None, reason="node checks the syntax")
def test_the_viewer_is_javascript(tmp_path: Path) -> None:
    script = tmp_path / "viewer.js"
    script.write_bytes(files("ppframe.simulator").joinpath("viewer.js").read_bytes())
    assert subprocess.run(["node", "--check", script], check=False).returncode == 0

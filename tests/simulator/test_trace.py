from __future__ import annotations

import json
from typing import Any

import pytest

from ppframe.schedule import Action, build_schedule, lower
from ppframe.simulator import TimelineEntry, chrome_trace, simulate, trace


def events_of(text: str, phase: str = "X") -> list[dict[str, Any]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


def entry(rank: int, text: str, start: float, end: float) -> TimelineEntry:
    return TimelineEntry(rank, Action.parse(text), start, end)


def test_every_entry_is_a_complete_event() -> None:
    report = simulate(lower(build_schedule("1f1b", 2, 3), reduce=True))
    events = events_of(chrome_trace({"predicted": report.timeline}))
    assert [event["name"] for event in events] == [entry.name for entry in report.timeline]
    assert {event["tid"] for event in events} == {0, 1}


def test_times_are_microseconds_from_the_first_start() -> None:
    timeline = [entry(0, "0F0", 100.5, 100.75), entry(1, "1F0", 101.0, 102.0)]
    events = events_of(chrome_trace({"measured": timeline}))
    assert [(event["ts"], event["dur"]) for event in events] == [(0, 0.25e6), (0.5e6, 1e6)]
    events = events_of(chrome_trace({"units": timeline}, microseconds_per_unit=1000))
    assert [(event["ts"], event["dur"]) for event in events] == [(0, 250), (500, 1000)]


def test_an_event_tells_what_it_did() -> None:
    timeline = [
        entry(0, "4BW7", 0, 1),
        entry(0, "2SEND_F3_2RECV_B1", 1, 2),
        entry(0, "2REDUCE", 2, 2),
    ]
    compute, exchange, reduce = events_of(chrome_trace({"run": timeline}))
    assert compute["args"] == {"stage": 4, "kind": "BW", "microbatch": 7}
    assert exchange["args"]["kind"] == ["SEND_F", "RECV_B"]
    assert exchange["args"]["microbatch"] == [3, 1]
    assert reduce["args"]["microbatch"] is None
    assert [e["cat"] for e in (compute, exchange)] == ["compute", "communication"]


def test_several_timelines_are_processes_from_one_time_zero() -> None:
    text = chrome_trace(
        {"predicted": [entry(0, "0F0", 0, 1)], "measured": [entry(0, "0F0", 7.0, 8.5)]}
    )
    assert [(event["pid"], event["ts"]) for event in events_of(text)] == [(0, 0), (1, 0)]
    names = [event["args"]["name"] for event in events_of(text, "M")]
    assert names == ["predicted", "rank 0", "measured", "rank 0"]


def test_entries_come_in_the_order_of_time_whatever_order_they_are_given_in() -> None:
    timeline = [entry(0, "0F1", 1, 2), entry(1, "1F0", 1, 2), entry(0, "0F0", 0, 1)]
    names = [event["name"] for event in events_of(chrome_trace({"run": timeline}))]
    assert names == ["r0/0_F_0", "r0/0_F_1", "r1/1_F_0"]


def test_an_empty_timeline_has_no_events() -> None:
    assert events_of(chrome_trace({"empty": []})) == []


def test_an_arrow_leads_from_what_was_needed_to_what_needed_it() -> None:
    timeline = [
        entry(0, "0F0", 0, 1),
        entry(1, "1F0", 2, 3),
        entry(1, "1B0", 3, 5),
        entry(1, "1W0", 5, 6),
        entry(0, "0BW0", 7, 9),
    ]
    text = chrome_trace({"run": timeline}, microseconds_per_unit=1000)
    starts, ends = events_of(text, "s"), events_of(text, "f")
    assert [event["id"] for event in starts] == [event["id"] for event in ends]
    slices = {(e["tid"], e["ts"]): e["name"] for e in events_of(text)}

    def source(event: dict[str, Any]) -> str:
        """The slice that an arrow's start lies in."""
        found = [
            e["name"]
            for e in events_of(text)
            if e["tid"] == event["tid"] and e["ts"] <= event["ts"] < e["ts"] + e["dur"]
        ]
        return str(found[0])

    links = {
        (source(start), slices[end["tid"], end["ts"]])
        for start, end in zip(starts, ends, strict=True)
    }
    assert links == {
        ("r0/0_F_0", "r1/1_F_0"),
        ("r1/1_F_0", "r1/1_B_0"),
        ("r1/1_B_0", "r1/1_W_0"),
        ("r0/0_F_0", "r0/0_BW_0"),
        ("r1/1_B_0", "r0/0_BW_0"),
    }


def test_counters_follow_the_activations_in_flight() -> None:
    timeline = [entry(0, "0F0", 0, 1), entry(0, "0F1", 1, 2), entry(0, "0BW0", 2, 4)]
    events = events_of(chrome_trace({"run": timeline}, microseconds_per_unit=10), "C")
    assert [(event["ts"], event["args"]["in flight"]) for event in events] == [
        (0, 1),
        (10, 2),
        (40, 1),
    ]


def test_each_timeline_may_have_a_unit_of_its_own() -> None:
    timelines = {"predicted": [entry(0, "0F0", 0, 1)], "measured": [entry(0, "0F0", 0, 0.5)]}
    scale = {"predicted": 1000.0, "measured": 1e6}
    events = events_of(chrome_trace(timelines, microseconds_per_unit=scale))
    assert [event["dur"] for event in events] == [1000, 0.5e6]


def test_arrows_of_different_timelines_are_different() -> None:
    report = simulate(build_schedule("1f1b", 2, 3))
    text = chrome_trace({"predicted": report.timeline, "measured": report.timeline})
    ids = [event["id"] for event in events_of(text, "s")]
    assert len(ids) == len(set(ids)) == 2 * (3 + 3 * 2 + 3)  # boundary F, own F, boundary B


def test_a_big_timeline_goes_without_arrows_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_LINKED", 3)
    timeline = [entry(0, f"0F{m}", m, m + 1) for m in range(4)]
    text = chrome_trace({"big": timeline})
    assert events_of(text, "C") == []
    assert "4 computations" in json.loads(text)["otherData"]["notes"]

from __future__ import annotations

import json
from typing import Any

from ppframe.schedule import Action, build_schedule, lower
from ppframe.simulator import TimelineEntry, chrome_trace, simulate


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

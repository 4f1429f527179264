from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppframe.errors import ScheduleError, ScheduleSyntaxError
from ppframe.schedule import (
    Action,
    ActionKind,
    Compute,
    Exchange,
    Overlap,
    Reduce,
    Transfer,
)
from ppframe.schedule.action import parts, shorten
from tests.strategies import quick

F, B, W, BW = ActionKind.F, ActionKind.B, ActionKind.W, ActionKind.BW
COMPUTE = [F, B, W, BW]
TRANSFER = [ActionKind.SEND_F, ActionKind.RECV_F, ActionKind.SEND_B, ActionKind.RECV_B]
INDEX = st.integers(0, 10**9 - 1)

computes = st.builds(Compute, INDEX, st.sampled_from(COMPUTE), INDEX)
transfers = st.builds(Transfer, INDEX, st.sampled_from(TRANSFER), INDEX)
exchanges = st.one_of(
    st.builds(
        Exchange,
        st.builds(Transfer, INDEX, st.just(ActionKind.SEND_F), INDEX),
        st.builds(Transfer, INDEX, st.just(ActionKind.RECV_B), INDEX),
    ),
    st.builds(
        Exchange,
        st.builds(Transfer, INDEX, st.just(ActionKind.SEND_B), INDEX),
        st.builds(Transfer, INDEX, st.just(ActionKind.RECV_F), INDEX),
    ),
)
actions = st.one_of(
    computes, transfers, st.builds(Reduce, INDEX), exchanges, st.builds(Overlap, computes, computes)
)


@quick
@given(actions)
def test_text_round_trips(action: Action) -> None:
    assert Action.parse(str(action)) == action
    assert type(Action.parse(str(action))) is type(action)


@quick
@given(actions)
def test_copies_are_equal_and_hash_alike(action: Action) -> None:
    for copied in (copy.copy(action), copy.deepcopy(action), pickle.loads(pickle.dumps(action))):
        assert copied == action
        assert hash(copied) == hash(action)
        assert type(copied) is type(action)


@pytest.mark.parametrize(
    ("text", "kind", "stage"),
    [
        ("2F0", F, 2),
        ("0B3", B, 0),
        ("1W7", W, 1),
        ("10BW12", BW, 10),
        ("3SEND_F1", ActionKind.SEND_F, 3),
        ("3RECV_F1", ActionKind.RECV_F, 3),
        ("3SEND_B1", ActionKind.SEND_B, 3),
        ("3RECV_B11", ActionKind.RECV_B, 3),
        ("0REDUCE", ActionKind.REDUCE, 0),
        ("2SEND_F3_2RECV_B1", ActionKind.SEND_F_RECV_B, 2),
        ("12SEND_B13_12RECV_F14", ActionKind.SEND_B_RECV_F, 12),
        ("(0F1;3BW0)", ActionKind.OVERLAP, 0),
    ],
)
def test_every_kind_prints_as_it_is_read(text: str, kind: ActionKind, stage: int) -> None:
    action = Action.parse(text)
    assert str(action) == repr(action) == text
    assert (action.kind, action.stage) == (kind, stage)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "F0", "0F", "0BW", "0", "F", "0X0", "0f0", "0F0garbage", "x0F0", "0F0 ", " 0F0"),
        *("-1F0", "0F-1", "+0F0", "0F0.0", "00F0", "0F00", "01F0", "0F1e3", "٣F0", "0F³"),
        *("0REDUCE0", "0SEND_F", "0SEND0", "0SEND_X0", "0I0", "0UNSHARD", "0FF0", "0BWB0"),
        *("1000000000F0", "0F1000000000", "0F" + "9" * 5000),
        *("2SEND_F3_", "2SEND_F3_2SEND_B1", "2SEND_F3_2RECV_F1", "2SEND_F3__2RECV_B1"),
        *("2RECV_B1_2SEND_F3", "2SEND_F3_2RECV_B1_2RECV_B1", "2SEND_F_RECV_B3"),
        *("(0F1;3BW0", "0F1;3BW0", "(0F1)", "(0F1;3BW0;1F1)", "(0F1;)", "(0F1;3SEND_F0)", "()"),
        *("((0F1;3BW0);0F2)", "0F0\n", "0F0,0F1", "0F0;0F1", "None"),
    ],
)
def test_what_is_not_exactly_one_action_is_rejected(text: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Action.parse(text)
    assert len(str(caught.value)) < 400


def test_syntax_error_holds_the_text() -> None:
    with pytest.raises(ScheduleSyntaxError, match="must be a stage, a kind and a microbatch") as at:
        Action.parse("0BW")
    assert (at.value.action, at.value.line, at.value.column) == ("0BW", 1, 1)


def test_the_base_gives_the_class_that_fits() -> None:
    assert type(Action(2, F, 0)) is Compute
    assert type(Action(2, ActionKind.SEND_F, 0)) is Transfer
    assert type(Action(2, ActionKind.REDUCE)) is Reduce
    assert isinstance(Action(2, F, 0), Action)


@pytest.mark.parametrize(
    ("stage", "kind", "microbatch"),
    [
        (0, F, None),
        (0, ActionKind.SEND_F, None),
        (0, ActionKind.REDUCE, 1),
        (0, ActionKind.OVERLAP, 0),
        (0, ActionKind.SEND_F_RECV_B, 0),
        (-1, F, 0),
        (0, F, -1),
        (0.0, F, 0),
        (True, F, 0),
        ("0", F, 0),
    ],
)
def test_fields_that_do_not_go_together_are_rejected(
    stage: int, kind: ActionKind, microbatch: int | None
) -> None:
    with pytest.raises(ScheduleError, match="must"):
        Action(stage, kind, microbatch)


def test_classes_take_their_own_kinds_only() -> None:
    with pytest.raises(ScheduleError, match="F, B, W or BW"):
        Compute(0, ActionKind.SEND_F, 0)
    with pytest.raises(ScheduleError, match="SEND_F, RECV_F, SEND_B or RECV_B"):
        Transfer(0, F, 0)
    with pytest.raises(ScheduleError, match="whole number"):
        Reduce(-1)


def test_actions_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Compute(0, F, 0).stage = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Compute(0, F, 0).extra = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("end", "other"),
    [("1SEND_F4", "2RECV_F4"), ("2SEND_B4", "1RECV_B4")],
)
def test_the_other_end_of_a_message_is_on_the_neighbour_stage(end: str, other: str) -> None:
    first, second = Action.parse(end), Action.parse(other)
    assert isinstance(first, Transfer)
    assert isinstance(second, Transfer)
    assert (first.other_end, second.other_end) == (second, first)
    assert (first.is_send, second.is_send) == (True, False)


def test_the_mirror_of_an_exchange_receives_what_it_sends() -> None:
    exchange = Action.parse("2SEND_F3_2RECV_B1")
    assert isinstance(exchange, Exchange)
    assert str(exchange.mirror) == "3SEND_B1_3RECV_F3"
    assert exchange.mirror.mirror == exchange


def test_an_exchange_goes_both_ways() -> None:
    send, receive = Action.parse("2SEND_F3"), Action.parse("2RECV_F1")
    with pytest.raises(ScheduleError, match="SEND_F with RECV_B"):
        Exchange(send, receive)  # type: ignore[arg-type]


def test_a_pair_has_two_parts_and_anything_else_one() -> None:
    pair, single = Action.parse("(0F1;3BW0)"), Action.parse("0F1")
    assert [str(part) for part in parts(pair)] == ["0F1", "3BW0"]
    assert parts(single) == (single,)


def test_long_texts_are_shortened_in_messages() -> None:
    assert shorten("x" * 50) == "x" * 40 + "…"
    assert shorten("x" * 40) == "x" * 40


def test_an_action_of_the_base_alone_has_no_fields() -> None:
    bare = object.__new__(Action)
    for field in ("stage", "kind"):
        with pytest.raises(NotImplementedError):
            getattr(bare, field)


class Whole:
    """A whole number of another library."""

    def __index__(self) -> int:
        return 7


def test_whole_numbers_of_other_libraries_become_plain_ones() -> None:
    action = Compute(Whole(), F, 0)  # type: ignore[arg-type]
    assert type(action.stage) is int
    assert str(action) == "7F0"

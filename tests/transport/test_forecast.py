from hypothesis import given
from hypothesis import strategies as st

from ppframe.transport.forecast import Book, Forecast

BOUNDARY = (0, 1)


class Sized:
    """A layout, as far as a forecast looks at one."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.spec = capacity


def test_a_forecast_rests_on_messages_so_far_back():
    forecast = Forecast(ahead=3)
    layouts = [Sized(8 * n) for n in range(6)]
    foretold = []
    for layout in layouts:
        foretold.append(forecast.next(BOUNDARY).layout)
        forecast.note(BOUNDARY, layout)
    assert foretold == [None, None, None, *layouts[:3]]


def test_boundaries_are_foretold_apart():
    forecast = Forecast(ahead=1)
    one, other = Sized(64), Sized(128)
    for boundary, layout in (((0, 1), one), ((2, 3), other), ((0, 1), one)):
        forecast.next(boundary)
        forecast.note(boundary, layout)
    assert forecast.next((2, 3)) == (other, 128)


def test_buffers_grow_at_once_and_shrink_late():
    forecast = Forecast(ahead=1)
    capacities = []
    for layout in [Sized(640), *[Sized(64)] * 65]:
        capacities.append(forecast.next(BOUNDARY).capacity)
        forecast.note(BOUNDARY, layout)
    assert capacities == [0] + [640] * 64 + [64]


@given(
    ahead=st.integers(1, 5),
    messages=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=40),
    paces=st.lists(st.integers(0, 4), max_size=80),
)
def test_both_sides_foretell_the_same_at_any_pace(ahead, messages, paces):
    layouts = [Sized(64 * n) for n in range(4)]
    sender, receiver = Forecast(ahead), Forecast(ahead)
    foretold = []
    for stage, size in messages:
        foretold.append(sender.next((stage, stage + 1)))
        sender.note((stage, stage + 1), layouts[size])
    posted = []
    for taken, (stage, size) in enumerate(messages):
        pace = max(paces[taken] if taken < len(paces) else ahead, 1)
        while len(posted) < min(len(messages), taken + min(pace, ahead)):
            boundary = messages[len(posted)][0], messages[len(posted)][0] + 1
            posted.append(receiver.next(boundary))
        receiver.note((stage, stage + 1), layouts[size])
    assert posted == foretold


def test_a_book_forgets_the_oldest():
    book = Book(size=2)
    layouts = [Sized(n) for n in (1, 2, 3)]
    assert [book.enter(layout) for layout in layouts] == [1, 2, 1]
    assert [book.number_of(layout) for layout in layouts] == [None, 2, 1]
    assert book[1] is layouts[2]

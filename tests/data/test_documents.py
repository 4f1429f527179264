from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ppframe.data.documents import by_hash, split_by_document, split_by_position
from ppframe.errors import ConfigError

NAMES = [f"pkg/module_{number}.py" for number in range(40)]
DOCUMENTS = {name: name.encode() for name in NAMES}


def held_out(documents: dict[str, bytes], fraction: float) -> set[str]:
    _, validation = split_by_document(documents, validation_fraction=fraction)
    return set(validation.decode().split("\n\n"))


def test_order_by_hash_is_that_of_the_command_b2sum():
    names = [f"pkg/{letter}.py" for letter in "abcd"]  # digests begin 1c89, 9731, e569, 7192
    assert by_hash(names) == ["pkg/a.py", "pkg/d.py", "pkg/b.py", "pkg/c.py"]


def test_order_by_hash_of_some_is_their_order_among_all():
    some = NAMES[::3]
    assert by_hash(reversed(some)) == [name for name in by_hash(NAMES) if name in some]


def test_no_document_is_in_both_texts_and_none_is_lost():
    train, validation = split_by_document(DOCUMENTS, validation_fraction=0.25)
    left, right = train.decode().split("\n\n"), validation.decode().split("\n\n")
    assert len(right) == 10
    assert sorted(left + right) == sorted(NAMES)
    assert left == sorted(left)


def test_a_new_document_moves_at_most_one_other():
    before = held_out(DOCUMENTS, 0.25)
    after = held_out({**DOCUMENTS, "pkg/new.py": b"pkg/new.py"}, 0.25)
    assert len(before - after) <= 1


def test_the_order_of_the_mapping_does_not_matter():
    backwards = dict(reversed(DOCUMENTS.items()))
    expected = split_by_document(DOCUMENTS, validation_fraction=0.1)
    assert split_by_document(backwards, validation_fraction=0.1) == expected


@given(
    count=st.integers(2, 12),
    fraction=st.floats(0, 1, exclude_min=True, exclude_max=True),
)
def test_both_texts_always_get_a_document(count, fraction):
    documents = {name: b"x" for name in NAMES[:count]}
    assert all(split_by_document(documents, validation_fraction=fraction))


def test_a_single_text_is_cut_near_its_end():
    assert split_by_position(b"0123456789", validation_fraction=0.2) == (b"01234567", b"89")
    assert split_by_position(b"0123456789", validation_fraction=0.01) == (b"012345678", b"9")


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_a_fraction_that_leaves_one_side_empty_is_refused(fraction):
    with pytest.raises(ConfigError, match="between 0 and 1") as caught:
        split_by_document(DOCUMENTS, validation_fraction=fraction)
    assert caught.value.path == "data.validation_fraction"
    with pytest.raises(ConfigError, match="between 0 and 1"):
        split_by_position(b"0123", validation_fraction=fraction)

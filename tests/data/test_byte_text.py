from __future__ import annotations

import itertools
import math

import pytest
import torch

from ppframe.data import Batch, ByteText, unigram_entropy
from ppframe.errors import ConfigError

TRAIN = bytes(range(200))
VALIDATION = bytes(range(100, 150))


def dataset(seq_len: int = 8) -> ByteText:
    return ByteText(TRAIN, VALIDATION, seq_len=seq_len, source="numbers")


def first_batches(seed: int, count: int, start_step: int = 0) -> list[Batch]:
    batches = dataset().train_batches(4, seed, start_step=start_step)
    return list(itertools.islice(batches, count))


def same(left, right) -> bool:
    return torch.equal(left.inputs, right.inputs) and torch.equal(left.targets, right.targets)


def test_targets_are_the_bytes_that_follow():
    batch = first_batches(seed=0, count=1)[0]
    assert batch.inputs.shape == batch.targets.shape == (4, 8)
    assert batch.inputs.dtype == batch.targets.dtype == torch.int64
    assert torch.equal(batch.targets, batch.inputs + 1)


def test_a_batch_depends_on_seed_and_step_alone():
    whole = first_batches(seed=3, count=6)
    resumed = first_batches(seed=3, count=2, start_step=4)
    assert all(map(same, whole[4:], resumed))
    assert not same(whole[0], whole[1])
    assert not same(whole[0], first_batches(seed=4, count=1)[0])


def test_batches_neither_use_nor_move_the_global_generator():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    batch = first_batches(seed=0, count=1)[0]
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert same(batch, first_batches(seed=0, count=1)[0])


def test_every_window_of_the_training_text_can_be_drawn():
    batches = ByteText(b"abcd", b"abcd", seq_len=3, source="").train_batches(2, 0)
    assert next(batches).targets.tolist() == [[98, 99, 100]] * 2
    batches = ByteText(b"abcde", b"abcd", seq_len=3, source="").train_batches(50, 0)
    assert set(next(batches).inputs[:, 0].tolist()) == {ord("a"), ord("b")}


def test_validation_batches_are_the_same_each_time_and_span_the_text():
    data = dataset()
    first, second = (list(data.validation_batches(3, 2)) for _ in range(2))
    assert all(map(same, first, second))
    assert [batch.inputs.shape for batch in first] == [(3, 8), (3, 8)]
    assert first[0].inputs[0, 0] == VALIDATION[0]
    assert first[-1].targets[-1, -1] == VALIDATION[-1]


def test_validation_batches_are_full_even_of_a_short_text():
    batches = list(ByteText(TRAIN, b"abcd", seq_len=3, source="").validation_batches(3, 2))
    assert [batch.targets.tolist() for batch in batches] == [[[98, 99, 100]] * 3] * 2


def test_no_validation_batches_are_none():
    assert list(dataset().validation_batches(3, 0)) == []


@pytest.mark.parametrize(
    ("text", "nats"),
    [
        (b"aaaa", 0.0),
        (b"abab", math.log(2)),
        (bytes(range(256)), math.log(256)),
        (b"aaab", 0.75 * math.log(4 / 3) + 0.25 * math.log(4)),
    ],
)
def test_unigram_entropy_is_in_nats_per_byte(text, nats):
    assert unigram_entropy(torch.tensor(list(text), dtype=torch.uint8)) == pytest.approx(nats)


def test_unigram_entropy_of_a_dataset_counts_both_texts():
    data = ByteText(b"aa", b"bb", seq_len=1, source="")
    assert data.unigram_entropy == pytest.approx(math.log(2))


def test_decode_reads_utf8_and_marks_what_is_none():
    text = "naïve\n"
    assert dataset().decode(list(text.encode())) == text
    assert dataset().decode(torch.tensor([[104, 105, 255]])) == "hi\N{REPLACEMENT CHARACTER}"


def test_describe_names_the_source_and_the_sizes():
    assert dataset().describe() == "numbers: 0.00 MB to train, 0.00 MB to validate"


@pytest.mark.parametrize(
    ("train", "validation", "part"),
    [(b"abc", b"abcd", "training"), (b"abcd", b"abc", "validation")],
)
def test_a_text_without_a_whole_window_is_refused(train, validation, part):
    with pytest.raises(ConfigError, match=f"{part} text of 3 bytes, from here") as caught:
        ByteText(train, validation, seq_len=3, source="here")
    assert caught.value.path == "data.seq_len"


def test_sizes_below_one_are_refused():
    with pytest.raises(ConfigError, match=r"data.seq_len: must be at least 1, but is 0"):
        dataset(seq_len=0)
    with pytest.raises(ConfigError, match=r"pipeline.batch_size: must be at least 1, but is 0"):
        next(dataset().train_batches(0, 0))

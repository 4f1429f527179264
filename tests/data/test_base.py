from __future__ import annotations

import pytest
import torch

from ppframe.data import Dataset, random_stream


def draws(*key: int | str) -> list[int]:
    return torch.randint(1 << 30, (4,), generator=random_stream(*key)).tolist()


def test_a_stream_depends_on_every_part_of_its_key():
    keys = [("train", 0, 0), ("train", 0, 1), ("train", 1, 0), ("validation", 0, 0)]
    assert len({tuple(draws(*key)) for key in keys}) == len(keys)
    assert draws("train", 0, 1) == draws("train", 0, 1)


def test_parts_of_a_key_do_not_run_together():
    assert draws("train", 1, 11) != draws("train", 11, 1)
    assert draws("1", 1) != draws(1, "1")


def test_a_key_takes_seeds_of_any_size_and_sign():
    assert draws(-1) != draws((1 << 64) - 1) != draws(1 << 80)


def test_a_dataset_must_keep_the_whole_contract():
    with pytest.raises(TypeError, match="abstract"):
        Dataset()  # type: ignore[abstract]

import torch
from torch import nn

from ppframe.stage.randomness import ChunkStream, mixed


def drawn(seed, chunk, step, microbatch):
    stream = ChunkStream(seed, chunk, torch.device("cpu"))
    stream.begin_step(step)
    stream.enter(microbatch)
    return tuple(torch.rand(4).tolist())


def test_every_seed_chunk_step_and_microbatch_has_its_own_stream():
    numbers = {
        drawn(seed, chunk, step, microbatch)
        for seed in range(3)
        for chunk in range(3)
        for step in range(3)
        for microbatch in range(3)
    }
    assert len(numbers) == 81


def test_a_stream_can_be_drawn_again():
    first = drawn(5, 2, 7, 1)
    torch.rand(100)
    assert drawn(5, 2, 7, 1) == first


def test_low_bits_are_mixed_as_cpu_generators_use_only_those():
    low = {
        mixed(0, chunk, microbatch) & 0xFFFFFFFF
        for chunk in range(200)
        for microbatch in range(200)
    }
    assert len(low) > 39_990


def test_dropout_draws_from_the_stream():
    drop = nn.Dropout(0.5)
    stream = ChunkStream(0, 0, torch.device("cpu"))
    masks = []
    for _ in range(2):
        stream.enter(3)
        masks.append(drop(torch.ones(64)))
    assert torch.equal(*masks)

import torch

from ppframe.transport import Alone


def test_alone_all_is_what_was_given():
    peers = Alone()
    value = {"loss": torch.ones(1)}
    total = torch.ones(1, dtype=torch.float64)
    assert (peers.rank, peers.size) == (0, 1)
    assert peers.sum(total) is total
    assert peers.broadcast(value, 0) is value
    assert peers.gather(value) == [value]
    peers.barrier()

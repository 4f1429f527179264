from __future__ import annotations

from ppframe.schedule import Action, build_schedule
from ppframe.simulator import TimelineEntry, simulate
from ppframe.simulator.looks import Looks


def looks_of(*ran: tuple[int, str]) -> Looks:
    return Looks.of(TimelineEntry(rank, Action.parse(text), 0, 1) for rank, text in ran)


def test_the_stages_of_a_rank_are_its_chunks_in_ascending_order() -> None:
    looks = Looks.of(simulate(build_schedule("interleaved-1f1b", 2, 2, chunks_per_rank=3)).timeline)
    assert (looks.chunks, looks.chains, looks.count, looks.num_microbatches) == (3, 1, 3, 2)
    assert [looks.chunk(1, stage, 0) for stage in (1, 3, 5)] == [0, 1, 2]
    assert looks.stages(1) == (1, 3, 5)


def test_a_microbatch_that_starts_on_the_higher_rank_takes_the_second_chain() -> None:
    """Each rank has one stage of each chain, so chunk 0 of both, in two looks."""
    looks = looks_of((0, "0F0"), (1, "1F0"), (1, "(0F1;1BW0)"), (0, "1F1"))
    assert [looks.chain(microbatch) for microbatch in (0, 1)] == [0, 1]
    assert (looks.chunks, looks.chains, looks.count) == (1, 2, 2)
    assert looks.look(0, 0, 0) == looks.look(1, 1, 0) == 0
    assert looks.look(1, 0, 1) == looks.look(0, 1, 1) == 1
    assert looks.stages(1) == (1, 0)


def test_nothing_has_one_look() -> None:
    assert (looks_of().count, looks_of().num_microbatches) == (1, 0)

"""Building blocks of V schedules by the slots between neighbouring ranks; the best for a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from ppframe.schedule.cost import Cost
from ppframe.schedule.generators.v_blocks import PERIOD, Block, Lane, v_rows
from ppframe.schedule.generators.v_clock import Clock
from ppframe.schedule.generators.zb_search import Times
from ppframe.schedule.rows import Rows

_LONGEST_GAPS = 5


class Offsets(NamedTuple):
    """A way down the V, back, down and back again, in slots.

    An activation stays for about (down + back) / 6 of the time that it stays in 1F1B.

    Args:
        down: from a rank to the next one, for forwards of the first chunk and backwards of the
            second.
        back: from a rank to the one before, for the other two.
        after_down: slots left free on the last rank between the two forwards.
        at_top: on the first rank between forward and backward.
        before_back: on the last rank between the two backwards.
    """

    down: int
    back: int
    after_down: int = 0
    at_top: int = 0
    before_back: int = 0

    def blocks(self, ranks: int) -> list[Block]:
        """The block of each rank."""
        way_down, way_back = self.down * (ranks - 1), self.back * (ranks - 1)
        turn = way_down + 1 + self.after_down
        top = turn + way_back + 1 + self.at_top
        end = top + way_down + 1 + self.before_back
        return [
            Block(
                self.down * rank,
                turn + self.back * (ranks - 1 - rank),
                top + self.down * rank,
                end + self.back * (ranks - 1 - rank),
            )
            for rank in range(ranks)
        ]


def best_within(ranks: int, microbatches: int, cost: Cost | None, memory_limit: float) -> Rows:
    """Of the blocks that hold no more than a limit, the order of the one with the least span.

    Spans are compared for 2 P microbatches at most; more only lengthen the steady state.

    Args:
        ranks: pipeline ranks (P).
        microbatches: microbatches (M).
        cost: of the 2 P stages; None is one unit for F, B and W each.
        memory_limit: activations of a microbatch on a rank, of both its stages; enough for a block.

    Reference:
        Qi et al., Pipeline Parallelism with Controllable Memory, 2024, arXiv 2405.15362, appendix
        A, which lets the offsets of the ranks differ.
    """
    times, few = Times.of(cost, 2 * ranks), min(microbatches, 2 * ranks)
    spans = []
    for blocks in _within(ranks, 2 * memory_limit / times.most_kept):
        clock = Clock(times, few)
        clock.follow(v_rows(blocks, few))
        spans.append((clock.span, blocks))
    least = min(span for span, _ in spans)
    best = next(blocks for span, blocks in spans if span <= least + times.slack)
    return v_rows(best, microbatches)


def _within(ranks: int, most: float) -> Iterator[list[Block]]:
    """Blocks whose repetitions don't meet, with at most so many actions' activations in flight."""
    gaps = range(_LONGEST_GAPS + 1)
    for down, back, after_down, at_top, before_back in product(
        range(1, 5), (1, 2), gaps, gaps, gaps
    ):
        free = after_down + at_top + before_back
        if back > down or down + back > PERIOD or free > _LONGEST_GAPS or after_down * before_back:
            continue
        blocks = Offsets(down, back, after_down, at_top, before_back).blocks(ranks)
        if not _meet(blocks) and max(_peak(block) for block in blocks) <= most:
            yield blocks


def _meet(blocks: Sequence[Block]) -> bool:
    """Whether an action falls on a slot that another microbatch needs."""
    return any(len({slot % PERIOD for slot in block}) < len(block) for block in blocks)


def _peak(block: Block) -> int:
    stay = block.backward_0 - block.forward_0
    return Lane(block, stay // PERIOD + 4).peak

"""How many microbatches a batch is cut into, and of what sizes."""

from __future__ import annotations

from typing import final

from ppframe.errors import ConfigError
from ppframe.runtime.layout import require_count
from ppframe.runtime.plans import Plans
from ppframe.stage.microbatch import sizes_by_count, sizes_by_limit


@final
class MicrobatchSizes:
    """Cuts batches by size of a microbatch or by their number, whichever was given.

    A short last batch gives fewer microbatches. Where the schedule doesn't take that number, the
    batch is cut into the number that full batches have, with sizes that differ by at most one.

    Args:
        plans: what the schedule takes.
        microbatch_size: samples of a microbatch.
        num_microbatches: microbatches of a batch.

    Raises:
        ConfigError: none or both are given, or they are not positive.
    """

    def __init__(
        self, plans: Plans, microbatch_size: int | None, num_microbatches: int | None
    ) -> None:
        fixed = plans.fixed_microbatches
        if (microbatch_size is None) == (num_microbatches is None) and not (
            microbatch_size is None and fixed is not None
        ):
            given = "neither is" if microbatch_size is None else "both are"
            raise ConfigError(
                f"exactly one of microbatch_size and num_microbatches must be given, but {given}.",
                path="microbatch_size",
            )
        require_count("microbatch_size", microbatch_size)
        require_count("num_microbatches", num_microbatches)
        if fixed is not None and num_microbatches not in (None, fixed):
            raise ConfigError(
                f"must be {fixed}, as the schedule has it, but is {num_microbatches}.",
                path="num_microbatches",
            )
        self._plans = plans
        self._size = microbatch_size
        self._count = num_microbatches if fixed is None else fixed
        if self._count is not None:
            plans.training(self._count)

    def for_step(self, num_samples: int) -> tuple[int, ...]:
        """Sizes of the microbatches of a training batch."""
        if self._size is None:
            assert self._count is not None
            return sizes_by_count(num_samples, self._count)
        sizes = sizes_by_limit(num_samples, self._size)
        if self._count is None:
            self._count = self._plans.nearest(len(sizes))
        if len(sizes) == self._plans.nearest(len(sizes)):
            return sizes
        return sizes_by_count(num_samples, self._count)

    def for_forward(self, num_samples: int) -> tuple[int, ...]:
        """Sizes of the microbatches of a batch without backward; any number will do."""
        if self._size is not None:
            return sizes_by_limit(num_samples, self._size)
        assert self._count is not None
        return sizes_by_count(num_samples, min(self._count, num_samples))

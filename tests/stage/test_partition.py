from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ppframe.errors import PartitionError
from ppframe.stage.partition import partition_modules, smallest_maximum


def counts(modules, num_stages, partition="even"):
    return [len(members) for members in partition_modules(modules, num_stages, partition)]


def test_even_counts_differ_by_at_most_one_and_larger_ones_come_first():
    modules = [nn.Identity() for _ in range(8)]
    assert counts(modules, 3) == [3, 3, 2]
    assert partition_modules(modules, 3) == (range(0, 3), range(3, 6), range(6, 8))


def test_listed_counts_are_taken():
    assert counts([nn.Identity() for _ in range(5)], 3, [1, 3, 1]) == [1, 3, 1]


def test_by_parameters_a_large_module_stands_alone():
    modules = [nn.Linear(100, 100), *(nn.Linear(2, 2) for _ in range(5))]
    assert counts(modules, 2, "parameters") == [1, 5]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(1, 5))
def test_largest_part_is_as_small_as_any_cut_allows(sizes, num_parts):
    num_parts = min(num_parts, len(sizes))

    def largest(cuts):
        edges = [0, *cuts, len(sizes)]
        return max(sum(sizes[a:b]) for a, b in pairwise(edges))

    best = min(largest(cuts) for cuts in combinations(range(1, len(sizes)), num_parts - 1))
    lengths = smallest_maximum(sizes, num_parts)
    assert len(lengths) == num_parts
    assert sum(lengths) == len(sizes)
    assert min(lengths) >= 1
    starts = [sum(lengths[:i]) for i in range(1, num_parts)]
    assert largest(starts) == best


@pytest.mark.parametrize("partition", [[2, 2], [1, 1, 1], [0, 3, 2], [5, -1, 1], "by_size"])
def test_counts_that_do_not_fit_are_refused(partition):
    with pytest.raises(PartitionError, match="partition must be"):
        partition_modules([nn.Identity() for _ in range(5)], 3, partition)


def test_fewer_modules_than_stages_are_refused_with_both_numbers():
    with pytest.raises(PartitionError, match=r"but is 2 \(stages 3\)"):
        partition_modules([nn.Identity(), nn.Identity()], 3)

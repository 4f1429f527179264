from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path

import pytest

from ppframe import registry
from ppframe.errors import ConfigError, DependencyViolation, ScheduleSyntaxError
from ppframe.schedule import (
    Schedule,
    ScheduleFacts,
    Shape,
    build_schedule,
    nearest_microbatches,
    schedule_facts,
)
from ppframe.schedule.generators.facts import schedule_generator
from tests.schedule.drawings import compute
from tests.strategies import GENERATORS


def test_the_known_generators() -> None:
    assert set(GENERATORS) >= {
        "gpipe", "1f1b", "interleaved-1f1b", "looped-bfs", "dora-dfs", "dora"
    }  # fmt: skip


@pytest.mark.parametrize("spelt", ["dora-dfs", "dora_dfs", "DORA-DFS"])
def test_dash_and_underscore_are_the_same(spelt: str) -> None:
    assert build_schedule(spelt, ranks=2, microbatches=2).name == "dora-dfs"


@pytest.mark.parametrize(
    ("name", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved-1f1b", 2), ("looped-bfs", 2),
                         ("dora-dfs", 2), ("dora", 2)],
)  # fmt: skip
def test_without_chunks_per_rank_a_schedule_has_its_own(name: str, chunks: int) -> None:
    assert build_schedule(name, ranks=3, microbatches=4).chunks_per_rank == chunks
    facts = schedule_facts(name)
    assert facts is not None
    assert facts.chunks_per_rank == chunks


def test_an_unknown_name_lists_the_known_ones_nearest_first() -> None:
    with pytest.raises(ConfigError, match="nearest first: dora-dfs"):
        build_schedule("dora-df", ranks=2, microbatches=2)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ConfigError, match="option of schedule `1f1b` must be a known name") as at:
        build_schedule("1f1b", ranks=2, microbatches=2, waves=3)
    assert at.value.path == "schedule.waves"


@pytest.mark.parametrize(
    ("ranks", "microbatches", "chunks", "path"),
    [
        (0, 4, 1, "ranks"),
        (-1, 4, 1, "ranks"),
        (2, 0, 1, "microbatches"),
        (2, 4, 0, "chunks_per_rank"),
        (2.0, 4, 1, "ranks"),
        (2, "4", 1, "microbatches"),
        (2, 4, 2, "chunks_per_rank"),
        (2, 4, True, "chunks_per_rank"),
    ],
)
def test_numbers_that_a_schedule_does_not_take_are_refused(
    ranks: int, microbatches: int, chunks: int, path: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        build_schedule("1f1b", ranks, microbatches, chunks_per_rank=chunks)
    assert caught.value.path == path


def test_chunks_beyond_the_limit_say_what_to_use() -> None:
    with pytest.raises(ConfigError, match=r"must be 1 for `gpipe`, but is 2 .* Use 1, or another"):
        build_schedule("gpipe", ranks=2, microbatches=4, chunks_per_rank=2)


def facts(**options: object) -> ScheduleFacts:
    return ScheduleFacts(summary="s", placement="loop", reference="r", **options)  # type: ignore[arg-type]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of its own, so that what a test enters is gone after it."""
    copied = {kind: dict(table) for kind, table in registry._builders.items()}
    monkeypatch.setattr(registry, "_builders", copied)


@pytest.mark.usefixtures("table")
def test_microbatches_that_are_not_taken_are_refused_with_the_nearest_that_works() -> None:
    even = facts(takes_microbatches=lambda shape: shape.microbatches % 4 == 0)

    @schedule_generator("only-fours", even)
    def only_fours(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
        return build_schedule("gpipe", ranks, microbatches)

    assert only_fours(2, 8).num_microbatches == 8
    assert nearest_microbatches("only-fours", 2, 9) == 8
    assert nearest_microbatches("only-fours", 2, 10) == 12
    assert nearest_microbatches("only-fours", 2, 1) == 4
    with pytest.raises(ConfigError, match="The nearest that works is 8") as caught:
        build_schedule("only-fours", ranks=2, microbatches=7)
    assert caught.value.path == "microbatches"


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("ranks", "nearest"), [(3, 4), (7, 8), (1, 2)])
def test_ranks_that_are_not_taken_are_refused_with_the_nearest_that_works(
    ranks: int, nearest: int
) -> None:
    @schedule_generator("even-ranks", facts(takes_ranks=lambda ranks: ranks % 2 == 0))
    def even_ranks(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
        return build_schedule("gpipe", ranks, microbatches)

    assert even_ranks(nearest, 3).ranks == nearest
    for build in (even_ranks, partial(nearest_microbatches, "even-ranks")):
        with pytest.raises(ConfigError, match=f"The nearest that works is {nearest}") as caught:
            build(ranks, 3)
        assert caught.value.path == "ranks"


@pytest.mark.usefixtures("table")
def test_a_generator_that_takes_nothing_says_so_instead_of_searching_for_ever() -> None:
    @schedule_generator("nothing", facts(takes_microbatches=lambda shape: shape.ranks > 2))
    def nothing(ranks: int, microbatches: int, chunks_per_rank: int = 1) -> Schedule:
        return build_schedule("gpipe", ranks, microbatches)

    with pytest.raises(ConfigError, match="must be a number that `nothing` takes"):
        build_schedule("nothing", ranks=2, microbatches=7)
    with pytest.raises(ConfigError, match="must be a number that `nothing` takes"):
        nearest_microbatches("nothing", ranks=2, microbatches=7)
    assert nearest_microbatches("nothing", ranks=3, microbatches=7) == 7


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("options", "chunks", "phrase"),
    [
        ({"min_chunks": 2, "chunks_per_rank": 2}, 1, "must be at least 2 for `limited`, but is 1"),
        ({"min_chunks": 2, "max_chunks": 4}, 5, "must be from 2 to 4 for `limited`, but is 5"),
    ],
)
def test_limits_on_chunks_are_named(options: dict[str, int], chunks: int, phrase: str) -> None:
    @schedule_generator("limited", facts(**options))
    def limited(ranks: int, microbatches: int, chunks_per_rank: int = 2) -> Schedule:
        return build_schedule("dora-dfs", ranks, microbatches, chunks_per_rank=chunks_per_rank)

    with pytest.raises(ConfigError, match=phrase):
        build_schedule("limited", 2, 2, chunks_per_rank=chunks)


@pytest.mark.usefixtures("table")
def test_a_builder_without_facts_takes_what_it_likes() -> None:
    @registry.register("schedule", "plain")
    def plain(ranks: int, microbatches: int, chunks_per_rank: int = 3, *, twist: int = 0) -> object:
        name = "dora-dfs" if twist == 0 else ""
        return name and build_schedule(name, ranks, microbatches, chunks_per_rank=chunks_per_rank)

    assert schedule_facts("plain") is None
    assert build_schedule("plain", ranks=2, microbatches=2).chunks_per_rank == 3
    assert nearest_microbatches("plain", ranks=2, microbatches=5) == 5
    with pytest.raises(ConfigError, match="must build a Schedule, but builds str"):
        build_schedule("plain", ranks=2, microbatches=2, twist=1)


@pytest.mark.parametrize("name", GENERATORS)
def test_parameters_of_a_builder_are_what_it_is_given_and_its_options(name: str) -> None:
    parameters = inspect.signature(registry.builder("schedule", name)).parameters
    assert list(parameters)[:3] == ["ranks", "microbatches", "chunks_per_rank"]
    assert all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def test_a_shape_says_its_numbers() -> None:
    assert str(Shape(4, 2, 8)) == "ranks 4, chunks per rank 2, microbatches 8"


@pytest.fixture
def file(tmp_path: Path) -> str:
    schedule = build_schedule("dora", ranks=2, microbatches=4)
    schedule.to_csv(tmp_path / "mine.csv")
    return str(tmp_path / "mine.csv")


def test_from_csv_is_the_file(file: str) -> None:
    schedule = build_schedule("from-csv", ranks=2, microbatches=4, path=file)
    assert schedule == build_schedule("dora", ranks=2, microbatches=4)
    assert schedule.name == "mine"
    assert build_schedule("from_csv", 2, 4, chunks_per_rank=2, path=file) == schedule


def test_from_csv_reads_torch_letters(tmp_path: Path) -> None:
    schedule = build_schedule("dora", ranks=2, microbatches=4)
    schedule.to_csv(tmp_path / "t.csv", dialect="torch")
    path = str(tmp_path / "t.csv")
    assert build_schedule("from-csv", 2, 4, path=path, dialect="torch") == schedule


@pytest.mark.parametrize(
    ("ranks", "microbatches", "chunks", "path"),
    [(3, 4, None, "ranks"), (2, 5, None, "microbatches"), (2, 4, 1, "chunks_per_rank")],
)
def test_from_csv_is_for_the_numbers_of_the_file(
    file: str, ranks: int, microbatches: int, chunks: int | None, path: str
) -> None:
    with pytest.raises(ConfigError, match=r"as in `.*mine.csv`") as caught:
        build_schedule("from-csv", ranks, microbatches, chunks_per_rank=chunks, path=file)
    assert caught.value.path == path


def test_from_csv_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file") as missing:
        build_schedule("from-csv", 1, 1, path=str(tmp_path / "none.csv"))
    assert missing.value.path == "schedule.path"
    (tmp_path / "bad.csv").write_text("0F0,0BWx")
    with pytest.raises(ScheduleSyntaxError):
        build_schedule("from-csv", 1, 1, path=str(tmp_path / "bad.csv"))
    compute("0BW0 0F0").to_csv(tmp_path / "illegal.csv")
    with pytest.raises(DependencyViolation):
        build_schedule("from-csv", 1, 1, path=str(tmp_path / "illegal.csv"))


def test_from_csv_needs_a_path() -> None:
    with pytest.raises(ConfigError, match="path") as caught:
        build_schedule("from-csv", ranks=1, microbatches=1)
    assert caught.value.path == "schedule.path"


@pytest.mark.parametrize("cost", [1, "1", [1, 2], {"forward": 1}, True])
def test_a_cost_must_be_one(cost):
    with pytest.raises(ConfigError, match="must be a Cost") as error:
        build_schedule("zb-1p", 2, 4, cost=cost)
    assert error.value.path == "schedule.cost"


@pytest.mark.parametrize("limit", ["1", [4], True, {}])
def test_a_limit_of_memory_must_be_a_number(limit):
    with pytest.raises(ConfigError, match="must be a number") as error:
        build_schedule("zb-1p", 2, 4, memory_limit=limit)
    assert error.value.path == "schedule.memory_limit"

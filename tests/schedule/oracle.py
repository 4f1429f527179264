"""What verify must say, found in the most naive way: run the lists, look at everything each time.

It restates the rule on purpose, in the words of SCHEDULES' conventions, and shares no code with the
package beyond the classes.
"""

from __future__ import annotations

from ppframe.schedule import LoweredSchedule, Schedule


def runs_to_its_end(schedule: Schedule | LoweredSchedule) -> bool:
    """Whether the ranks, each taking its list in order, all come to the end of it."""
    lists = [[str(action) for action in row] for row in schedule.actions]
    there = tuple(schedule.placement)
    back = tuple(len(lists) - 1 - rank for rank in there)
    chains = (*schedule.chains, *(0,) * (schedule.num_microbatches - len(schedule.chains)))
    owners, done = [(there, back)[chain] for chain in chains], set[str]()
    is_lowered = isinstance(schedule, LoweredSchedule)
    while any(_move(rank, lists, owners, done, is_lowered) for rank in range(len(lists))):
        pass
    return not any(lists)


def _move(
    rank: int,
    lists: list[list[str]],
    all_owners: list[tuple[int, ...]],
    done: set[str],
    is_lowered: bool,
) -> bool:
    """Run the next action of a rank, if it can run; a message when both ranks are at it."""
    if not lists[rank]:
        return False
    pair = lists[rank][0].strip("()").split(";")
    mate, owners = _mate(pair[0]), all_owners[_split(pair[0])[2]]
    peer = rank if mate is None else owners[_split(mate)[0]]
    if mate is not None and (peer == rank or lists[peer][:1] != [mate]):
        return False
    for makes in pair if mate is None or "SEND" in pair[0] else [mate]:
        needs = _needs(makes, all_owners[_split(makes)[2]], is_lowered)
        if not all(_done(need, done) for need in needs):
            return False
    del lists[rank][0]
    done |= {*pair} | ({lists[peer].pop(0)} if mate is not None else set())
    return True


def _split(action: str) -> tuple[int, str, int]:
    kind = action.strip("0123456789")
    stage, microbatch = action.split(kind)
    return int(stage), kind, int(microbatch)


def _mate(action: str) -> str | None:
    stage, kind, microbatch = _split(action)
    match kind:
        case "SEND_F":
            return f"{stage + 1}RECV_F{microbatch}"
        case "RECV_F":
            return f"{stage - 1}SEND_F{microbatch}"
        case "SEND_B":
            return f"{stage - 1}RECV_B{microbatch}"
        case "RECV_B":
            return f"{stage + 1}SEND_B{microbatch}"
    return None


def _needs(action: str, owners: tuple[int, ...], is_lowered: bool) -> list[str]:
    stage, kind, m = _split(action)
    last = len(owners) - 1

    def by_message(boundary: int) -> bool:
        return is_lowered and owners[boundary] != owners[boundary + 1]

    if kind == "F" and stage > 0:
        return [f"{stage}RECV_F{m}" if by_message(stage - 1) else f"{stage - 1}F{m}"]
    if kind in ("B", "BW"):
        needs = [f"{stage}F{m}"]
        if stage < last:
            needs.append(f"{stage}RECV_B{m}" if by_message(stage) else f"{stage + 1}B*{m}")
        return needs
    if kind == "W":
        return [f"{stage}B{m}"]
    if kind == "SEND_F":
        return [f"{stage}F{m}"]
    if kind == "SEND_B":
        return [f"{stage}B*{m}"]
    return []


def _done(need: str, done: set[str]) -> bool:
    if "*" in need:
        return need.replace("*", "") in done or need.replace("*", "W") in done
    return need in done

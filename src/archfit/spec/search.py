"""The one search by halves: where something that only rises reaches a goal."""

from collections.abc import Callable


def bisect_rising(rising: Callable[[float], float], goal: float, low: float, high: float) -> float:
    """Where a rising function reaches the goal, to the last bit; `high` if it stays below."""
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if rising(middle) < goal else (low, middle)
    return high


def first_whole(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first of low..high that holds, where all after it do, too; `high` if none before does."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low

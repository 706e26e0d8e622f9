"""CPU time of pairs that are measured alternately, so that other work on the machine affects both."""

from __future__ import annotations

import resource
import time
from statistics import median
from typing import Any, Callable, List


def cpu() -> float:
    """The CPU time that this process and its children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(it.ru_utime + it.ru_stime for it in used)


def measure(
    name: str, ours: Callable[[], Any], theirs: Callable[[], Any], repeat: int = 1, rounds: int = 15
) -> None:
    """Print the fastest round of each, and the ratios of all rounds: minimum, median and maximum."""
    times: List[List[float]] = [[], []]
    elapsed: List[List[float]] = [[], []]
    for _ in range(rounds):
        for index, run in enumerate([ours, theirs]):
            began, clock = cpu(), time.perf_counter()
            for _ in range(repeat):
                run()
            times[index].append((cpu() - began) / repeat)
            elapsed[index].append((time.perf_counter() - clock) / repeat)
    for kind, (mine, other) in [("CPU", times), ("elapsed", elapsed)]:
        ratios = [theirs / ours for ours, theirs in zip(mine, other)]
        spread = f"{min(ratios):.2f} {median(ratios):.2f} {max(ratios):.2f}"
        best = f"{min(mine) * 1e3:.4f} ms, {min(other) * 1e3:.4f} ms"
        print(f"{name}: {kind} {best}, {min(other) / min(mine):.2f}x ({spread})", flush=True)

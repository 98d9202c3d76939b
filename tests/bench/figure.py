"""Measured figures with units and targets, and the table that shows them."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from rich.console import Console
from rich.table import Table

Bound = Literal["at most", "at least"]


class Target(msgspec.Struct, frozen=True):
    """A bound on a value."""

    bound: Bound
    value: float

    def holds(self, value: float) -> bool:
        """Return whether ``value`` is within the bound."""
        return value <= self.value if self.bound == "at most" else value >= self.value

    def __str__(self) -> str:
        sign = "≤" if self.bound == "at most" else "≥"
        return f"{sign} {render(self.value)}"


def at_most(value: float) -> Target:
    """Return an upper bound for a cost."""
    return Target("at most", value)


def at_least(value: float) -> Target:
    """Return a lower bound for a speed."""
    return Target("at least", value)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table; times are CPU time unless called wall.

    ``value`` and ``peer`` are medians where there are samples, along with 99th percentiles and
    median wall times. ``ratio`` is how many times better than the peer.
    """

    area: str
    name: str
    unit: str
    value: float
    p99: float | None = None
    wall: float | None = None
    peer: float | None = None
    peer_p99: float | None = None
    peer_wall: float | None = None
    ratio: float | None = None
    targets: dict[str, Target] = {}
    """What ``value``, ``p99`` and ``ratio`` are held to, by these names."""
    note: str = ""

    def beside(self, peer: float | None) -> "Figure":
        """Return the figure with the peer's cost; no target without it, or if our clock stood."""
        if peer is None or not self.value:
            targets = {name: target for name, target in self.targets.items() if name != "ratio"}
            return msgspec.structs.replace(self, targets=targets)
        return msgspec.structs.replace(self, peer=peer, ratio=peer / self.value)

    @property
    def holds(self) -> bool | None:
        """Whether every target is met; None without targets."""
        if not self.targets:
            return None
        values = {name: getattr(self, name) for name in self.targets}
        return all(
            values[name] is not None and target.holds(values[name])
            for name, target in self.targets.items()
        )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that ``share`` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def render(value: float | None) -> str:
    """Return a number with three significant digits, large ones as integers."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


_COLUMNS = ("", "p50", "p99", "wall", "peer", "p99", "wall", "unit", "ratio", "target", "holds")


def print_figures(figures: Iterable[Figure], console: Console) -> None:
    """Print all figures as one table."""
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for column in (*table.columns[1:7], table.columns[8]):
        column.justify = "right"
    area = ""
    for figure in figures:
        if figure.area != area:
            area = figure.area
            table.add_row(f"[bold]{area}[/bold]")
        table.add_row(f"  {figure.name}", *_cells(figure))
        if figure.note:
            table.add_row(f"    [dim]{figure.note}[/dim]")
    console.print(table)


def _cells(figure: Figure) -> list[str]:
    numbers = [figure.value, figure.p99, figure.wall]
    numbers += [figure.peer, figure.peer_p99, figure.peer_wall]
    targets = (
        f"{'' if name == 'value' else name + ' '}{target}"
        for name, target in figure.targets.items()
    )
    return [
        *map(render, numbers),
        figure.unit,
        f"{figure.ratio:.3g}x" if figure.ratio is not None else "",
        ", ".join(targets),
        {True: "yes", False: "NO", None: ""}[figure.holds],
    ]

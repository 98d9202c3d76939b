"""Compares the actions of two classifiers by type.

``python -m tests.ingest.derive.action.compared MINE THEIRS`` takes two files of classified traces; ``MINE`` may
also be recorded traces, which tonlake then classifies. A file of classified traces is what
``tonlake classify`` prints (a JSON object a line, or the same compressed), or one JSON object
from ``trace_key`` to the rest of such a line. ``--show N`` prints so many differences of each type.
"""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tonlake.ingest.command.action import classify_recording
from tonlake.ingest.derive.recording.trace import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Shown = dict[str, Any]

SETS = frozenset({"tx_hashes", "accounts", "vault_excesses", "ancestor_type"})
"""Lists whose order means nothing; that of the last two is arbitrary at TON Center."""

EMPTY = "value_extra_currencies"
"""A column that recordings hold as an empty object or not at all, which is the same."""

OUTCOMES = ("equal", "different", "only mine", "only theirs")


class Difference(msgspec.Struct, frozen=True):
    """One action that differs: the differing columns, or none if one side does not have it."""

    trace_key: str
    type: str
    outcome: str
    columns: tuple[str, ...] = ()
    mine: Shown | None = None
    theirs: Shown | None = None

    def __str__(self) -> str:
        """Return it as lines to read."""
        if self.mine is None or self.theirs is None:
            shown = self.mine or self.theirs
            return f"{self.outcome}: {self.trace_key}\n  {msgspec.json.encode(shown).decode()}"
        lines = [f"{self.outcome}: {self.trace_key}"]
        for name in self.columns:
            lines.append(f"  {name}\n    mine   {self.mine.get(name)}")
            lines.append(f"    theirs {self.theirs.get(name)}")
        return "\n".join(lines)


class Comparison:
    """Counts of equal and unequal actions by type, the differences and unequal states."""

    def __init__(self) -> None:
        """Begin without any."""
        self.counts: Counter[tuple[str, str]] = Counter()
        self.differences: list[Difference] = []
        self.states: list[str] = []

    def add(self, key: str, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
        """Compare the actions of one trace."""
        if mine.get("state") != theirs.get("state"):
            self.states.append(f"{key}: mine {mine.get('state')}, theirs {theirs.get('state')}")
        left = {each["action_id"]: each for each in mine.get("actions", ())}
        for their in theirs.get("actions", ()):
            my = left.pop(their["action_id"], None)
            columns = () if my is None else tuple(sorted(list_differences(my, their)))
            if my is not None and not columns:
                self.counts[their["type"], "equal"] += 1
                continue
            outcome = "only theirs" if my is None else "different"
            self._note(Difference(key, their["type"], outcome, columns, my, their))
        for my in left.values():
            self._note(Difference(key, my["type"], "only mine", mine=my))

    def _note(self, difference: Difference) -> None:
        self.counts[difference.type, difference.outcome] += 1
        self.differences.append(difference)

    def total(self, outcome: str) -> int:
        """Return the number of actions with an outcome."""
        return sum(count for (_, each), count in self.counts.items() if each == outcome)

    @property
    def share(self) -> float:
        """Share of their actions that equal ours."""
        theirs = self.total("equal") + self.total("different") + self.total("only theirs")
        return self.total("equal") / theirs if theirs else 1.0

    def table(self) -> Iterator[str]:
        """Yield a line for each type, the totals last."""
        yield f"{'type':34}" + "".join(f"{name:>13}" for name in OUTCOMES)
        for kind in sorted({kind for kind, _ in self.counts}):
            yield _line(kind, [self.counts[kind, name] for name in OUTCOMES])
        yield _line("all", [self.total(name) for name in OUTCOMES]) + f"  {self.share:.3%}"
        yield f"traces of another state: {len(self.states)}"


def _line(name: str, counts: Iterable[int]) -> str:
    return f"{name:34}" + "".join(f"{count:13}" for count in counts)


def compare(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Comparison:
    """Compare classified traces, by ``trace_key``; a trace missing on one side has no actions."""
    found = Comparison()
    for key in theirs.keys() | mine.keys():
        found.add(key, mine.get(key, {}), theirs.get(key, {}))
    found.differences.sort(key=lambda each: (each.type, each.outcome, each.columns))
    return found


def list_differences(mine: Shown, theirs: Shown) -> set[str]:
    """Return the columns in which two actions differ."""
    names = mine.keys() | theirs.keys()
    return {name for name in names if not equal(mine.get(name), theirs.get(name), name)}


def equal(left: Any, right: Any, name: str = "") -> bool:
    """Compare JSON; a null may be missing, and large numbers of theirs are not exact."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        both_exact = isinstance(left, int) and isinstance(right, int)
        return left == right if both_exact else math.isclose(left, right, rel_tol=1e-9)
    if isinstance(left, dict) and isinstance(right, dict):
        names = left.keys() | right.keys()
        return all(equal(left.get(each), right.get(each), each) for each in names)
    if name in SETS:
        left, right = (sorted(each or (), key=msgspec.json.encode) for each in (left, right))
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right or (name == EMPTY and not left and not right))


def read_classified(path: Path) -> dict[str, Any]:
    """Return classified traces of a file by ``trace_key``; recorded traces are classified now."""
    if path.suffix == ".json":
        found: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        return found
    lines = read_lines(path)
    first = msgspec.json.decode(next(iter(lines), b"{}"))
    source = read_lines(path) if "actions" in first else classify_recording(path)
    return {line["trace_key"]: line for line in map(msgspec.json.decode, source)}


def main() -> int:
    """Print the comparison of two files; return 1 if an action differs."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("mine", type=Path)
    parser.add_argument("theirs", type=Path)
    parser.add_argument("--show", type=int, default=0, help="differences printed of each type")
    parser.add_argument("--type", help="print differences of this type alone")
    options = parser.parse_args()
    found = compare(read_classified(options.mine), read_classified(options.theirs))
    shown: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    for each in found.differences:
        group = each.type, each.outcome, each.columns
        shown[group] += 1
        if shown[group] <= options.show and options.type in {None, each.type}:
            click.echo(f"{each.type}, {each}")
    for line in found.table():
        click.echo(line)
    for (kind, outcome, columns), count in sorted(shown.items()):
        click.echo(f"{count:6} {kind} {outcome} {', '.join(columns)}")
    return 1 if found.differences or found.states else 0


if __name__ == "__main__":
    sys.exit(main())

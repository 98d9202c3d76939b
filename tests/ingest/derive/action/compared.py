"""Compares the actions of two classifiers by type.

A file of classified traces is what ``tonlake classify`` prints (a JSON object a line, or the same
compressed), or one JSON object from ``trace_key`` to the rest of such a line.
"""

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tonlake.ingest.command.action import classify_recording
from tonlake.ingest.derive.action.recording import read_lines

Shown = dict[str, Any]

SETS = frozenset({"tx_hashes", "accounts", "vault_excesses", "ancestor_type"})
"""Lists whose order means nothing; that of the last two is arbitrary at TON Center."""

EMPTY = "value_extra_currencies"
"""A column that recordings hold as an empty object or not at all, which is the same."""


class Difference(msgspec.Struct, frozen=True):
    """One action that differs: the differing columns, or none if one side does not have it."""

    trace_key: str
    type: str
    outcome: str
    columns: tuple[str, ...] = ()


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
            self._note(Difference(key, their["type"], outcome, columns))
        for my in left.values():
            self._note(Difference(key, my["type"], "only mine"))

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

"""Compares the actions of two classifiers.

A file of classified traces is what ``tonlake classify`` prints: a JSON object a line, or the same
compressed.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tonlake.ingest.command.action import classify_recording, read_lines

Shown = dict[str, Any]

SETS = frozenset({"tx_hashes", "accounts", "vault_excesses", "ancestor_type"})
"""Lists whose order means nothing; that of the last two is arbitrary at TON Center."""

EMPTY = "value_extra_currencies"
"""A column that recordings hold as an empty object or not at all, which is the same."""


class Comparison(NamedTuple):
    """The share of their actions that equal ours; the others, and the columns that differ."""

    share: float
    differences: list[tuple[str, str, list[str]]]


def compare(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Comparison:
    """Compare classified traces, by ``trace_key``; a trace that we lack has no actions."""
    count, differences = 0, []
    for key, answer in theirs.items():
        ours = {each["action_id"]: each for each in mine.get(key, {}).get("actions", ())}
        for their in answer.get("actions", ()):
            count += 1
            my = ours.get(their["action_id"])
            columns = {"action_id"} if my is None else list_differences(my, their)
            if columns:
                differences.append((key, their["type"], sorted(columns)))
    return Comparison(1 - len(differences) / max(1, count), differences)


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
    lines = read_lines(path)
    first = msgspec.json.decode(next(iter(lines), b"{}"))
    source = read_lines(path) if "actions" in first else classify_recording(path)
    return {line["trace_key"]: line for line in map(msgspec.json.decode, source)}

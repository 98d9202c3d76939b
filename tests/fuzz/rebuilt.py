"""Fuzzes both rebuilders of transaction bags with damaged rows: the extension's bag is right."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tonlake.ingest.blocks import McBundle
from tonlake.ingest.decode import native
from tonlake.ingest.decode.block.block import decode_in_python
from tonlake.ingest.decode.block.recipe import rebuild_transaction
from tonlake.ingest.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from random import Random

    import pyarrow as pa

    from tonlake.ingest.blocks import RawBlock

Row = dict[str, Any]

_ODD = (
    *(None, True, False, 0, 1, -1, 255, 256, 1 << 15, 1 << 31, -1 << 31, 1 << 32, 1 << 63, 1 << 70),
    *(b"", b"\x00", bytes(32), b"\xff" * 32, bytes(33), "", "x", "\ud800", "std", "none", "extern"),
    *("var", "active", "frozen", "unchanged", "deleted", "nonexist", "uninit", "ok", "int", 1.5),
    *("ord", "tick_tock", "storage", "ext_in", "ext_out", "no_gas", "suspended", "negfunds"),
)

_LEFT_ALONE = frozenset({"hash", "direction", "msg_index"})
"""Errors name a transaction by its hash, and messages come in order."""


def list_rows(tables: Mapping[str, pa.Table]) -> Iterator[tuple[Row, list[Row]]]:
    """Yield the row of each transaction that has a recipe, and those of its messages in order."""
    lines: dict[bytes, list[Row]] = {}
    for line in tables["messages"].to_pylist():
        lines.setdefault(line["tx_hash"], []).append(line)
    for row in tables["transactions"].to_pylist():
        if row["recipe"] is not None:
            yield row, lines.get(row["hash"], [])


def spoil_rows(row: Row, lines: list[Row], choices: Random) -> tuple[Row, list[Row]]:
    """Change one to three values: to another column's, to an odd one, or by a bit."""
    row, lines = dict(row), [dict(line) for line in lines]
    for _ in range(choices.choice((1, 1, 1, 2, 3))):
        spoiled = choices.choice((row, *lines, *lines))
        name = choices.choice([name for name in spoiled if name not in _LEFT_ALONE])
        spoiled[name] = _spoil(spoiled[name], choices)
    if not choices.randrange(16):
        del lines[choices.randrange(len(lines) + 1) :]
    return row, lines


def _spoil(value: object, choices: Random) -> object:
    if isinstance(value, bool) or choices.randrange(2):
        return choices.choice(_ODD)
    if isinstance(value, int):
        return value + choices.choice((1, -1, 1 << 8, 1 << 32, -1 << 32))
    if isinstance(value, bytes) and value:
        place, spoiled = choices.randrange(len(value)), bytearray(value)
        spoiled[place] ^= 1 << choices.randrange(8)
        return bytes(spoiled[: choices.choice((None, place))])
    return choices.choice(_ODD)


def compare_rows(row: Row, lines: list[Row]) -> str:
    """Build the bag by both, and return which did; raises AssertionError on a disagreement."""
    mine = native.rebuild_bag(row, lines)
    expected = _refer(row, lines)
    assert mine is None or mine == expected, (row, lines)
    if expected is None:
        return "made by none"
    return "made by the reference" if mine is None else "made by both"


def _refer(row: Row, lines: list[Row]) -> bytes | None:
    """Return the reference's result."""
    extension, native._extension = native._extension, None
    try:
        return rebuild_transaction(row, lines)
    except DecodeError:
        return None
    finally:
        native._extension = extension


class RebuildRun:
    """Cases on rows; ``outcomes`` counts their results."""

    def __init__(self, blocks: Iterable[RawBlock], choices: Random) -> None:
        """Take the transactions of blocks."""
        self.outcomes: Counter[str] = Counter()
        tables = decode_in_python([McBundle(1, (raw,)) for raw in blocks])
        self._seeds = list(list_rows(tables))
        self._choices = choices

    def step(self) -> None:
        """Run one case; raises AssertionError on a disagreement, with the rows."""
        row, lines = spoil_rows(*self._choices.choice(self._seeds), self._choices)
        self.outcomes[f"rows, {compare_rows(row, lines)}"] += 1

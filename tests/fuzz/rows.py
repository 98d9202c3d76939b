"""Fuzzes the reader of look-up records with damaged segments: only errors or wrong values.

``make fuzz`` runs this with the extension built with AddressSanitizer and
UndefinedBehaviorSanitizer: any finding ends the process.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.lake.chain import Chain, commit_chain
from tonlake.api.v3.resource.transaction import find_record_writer
from tonlake.lake.errors import LakeCorrupt
from tonlake.lake.index.builder.compose import Composer
from tonlake.lake.index.builder.gather import Source
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.index.segment.file import SegmentFile
from tonlake.lake.index.segment.native import NATIVE
from tonlake.lake.index.segment.segment import Segment
from tonlake.lake.log.state import read_state
from tonlake.lake.schema import MESSAGES, TRACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.lake.index.segment.segment import Filter

REFUSALS = (LakeCorrupt, ValueError, IndexError, KeyError, TypeError, OverflowError)
MAX_ROWS = 60
FILTERS = (
    ("created_lt", 0, 1 << 40),
    ("opcode", None, None),
    ("destination", bytes(32), b"\x80" * 32),
    ("direction", "out", "out"),
)


def compose(lake: Path) -> bytes:
    """Return one segment with the masterchain blocks 1..12 of a lake, and synthetic traces."""
    rows = Source(lake, read_state(lake).files, (1, 12)).read_all()
    stream = io.BytesIO()
    composer = Composer(stream)
    composer.add_part(rows)
    composer.finish((1, 12), make_traces(rows["transactions"]))
    return stream.getvalue()


def make_traces(transactions: pa.Table) -> pa.Table:
    """Return a trace for every third transaction, and one whose root is missing."""
    roots = transactions.select(["hash", "in_msg_hash", "lt", "now"]).to_pylist()[::3]
    roots.append({"hash": b"\xff" * 32, "in_msg_hash": b"\xee" * 32, "lt": 1 << 60, "now": 5})
    traces = [
        {
            "trace_id": root["hash"],
            "external_hash": root["in_msg_hash"],
            "external_hash_norm": None if number % 2 else root["hash"],
            "mc_seqno_start": number,
            "mc_seqno_end": number + 1,
            "start_lt": root["lt"],
            "end_lt": root["lt"] + 1000 * number,
            "start_utime": root["now"],
            "end_utime": root["now"] - number,
            "state": "complete",
            "transactions": number,
            "messages": 1,
            "pending_messages": 0,
        }
        for number, root in enumerate(roots)
    ]
    return pa.Table.from_pylist(traces, schema=TRACES.arrow)


def damage(whole: bytes, choices: Random) -> bytes:
    """Change 1 to 20 bytes: to any value, to the limits of a number's range, or by one bit."""
    data = bytearray(whole)
    for _ in range(choices.choice((1, 1, 3, 20))):
        place = choices.randrange(len(data))
        flipped = data[place] ^ 1 << choices.randrange(8)
        data[place] = choices.choice((choices.randrange(256), 0, 127, 128, 255, flipped))
    return bytes(data)


def read_record(segment: Segment, row: int) -> None:
    """Build objects from all values of a record."""
    (record,) = segment.read_records([row])
    for part in (record.row, *record.messages, record.before or (), record.after or ()):
        list(part)


def write_record(segment: Segment, row: int) -> None:
    """Write a record as JSON without such objects."""
    write = find_record_writer("hex")
    if write is not None:
        write(segment.read_records([row]))


def read_members(segment: Segment, row: int) -> None:
    """Read the transactions of a row's trace."""
    (trace_id,) = segment.traces.traces_of([row])
    if trace_id is not None:
        list(map(list, segment.list_trace(trace_id, 0, 1 << 62)))


def read_choice(segment: Segment, row: int, one: Filter) -> None:
    """Read a row's messages through a filter."""
    list(map(list, segment.choose_lines([row], [one])))


def read_trace(segment: Segment, number: int) -> None:
    """Read a complete trace."""
    list(map(list, segment._source.read_traces([number])))


def read_ends(segment: Segment, row: int) -> None:
    """Read the other ends of a row's messages."""
    segment.find_other_ends(segment.read_records([row])[0].messages)


def read_newest(segment: Segment, number: int) -> None:
    """Read the newest state of an account."""
    for state in segment.newest_states([segment.account_of(number)]):
        list(state or ())


def read_all(data: bytes) -> Counter[str]:
    """Read all numbers, records, lines and states of a segment, and count the refusals."""
    refused: Counter[str] = Counter()
    try:
        file = SegmentFile(data, "damaged")
        segment = Segment(file)
        rows, accounts = len(segment.lt), len(segment.balance)
    except REFUSALS:
        return Counter(("open",))

    def check(name: str, read: Callable[..., object], *inputs: Any) -> None:
        try:
            read(*inputs)
        except REFUSALS:
            refused[name] += 1

    read_numbers(file)
    for row in range(min(rows, MAX_ROWS)):
        check("record", read_record, segment, row)
        check("written", write_record, segment, row)
        for place in range(2):
            check("line", segment.read_lines, [(row, place)])
            check("columns", segment.read_columns, [(row, place)], MESSAGES.names)
        for one in FILTERS:
            check("choice", read_choice, segment, row, one)
        check("trace", read_trace, segment, row)
        check("members", read_members, segment, row)
        check("linked", segment.traces.traces_of, [row])
        check("linked", segment.traces.parents_of, [row])
        check("ends", read_ends, segment, row)
    for number in range(min(accounts, MAX_ROWS)):
        check("state", read_newest, segment, number)
    return refused


def read_numbers(file: SegmentFile) -> None:
    """Read the last numbers of each packed array, and look for one."""
    for array in file.arrays.values():
        if not isinstance(array, memoryview):
            array[-MAX_ROWS:]
            array.find(1 << 40)


def make_segment(folder: Path) -> bytes:
    """Return the segment to damage: the same every time."""
    commit_chain(folder / "lake", Chain(8), 1, 12)
    rebuild_index(folder / "lake")
    return compose(folder / "lake")


def main() -> None:
    """Read the arguments and fuzz."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole = make_segment(Path(folder))
    choices = Random(arguments.seed)  # noqa: S311 - repeatable, no secret
    refused: Counter[str] = Counter()
    for _ in range(arguments.cases):
        refused += read_all(damage(whole, choices))
    print(f"{arguments.cases:,} segments, 0 findings, refused: {dict(refused)} ({NATIVE.__file__})")  # noqa: T201


if __name__ == "__main__":
    main()

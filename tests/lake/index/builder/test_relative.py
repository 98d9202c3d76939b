"""Numbers relative to those of the transaction: what is read is what was numbered."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tonlake.lake.index.builder.relative import relate
from tonlake.lake.index.segment import segment
from tonlake.lake.index.segment.declared import MESSAGE_COLUMNS
from tonlake.lake.index.segment.rows import Pool, places_of
from tonlake.lake.schema import TABLES

HASHES, NUMBERS = st.integers(0, 20).map(lambda n: bytes([n]) * 32), st.integers(0, 9)
ROW = {"lt": NUMBERS, "now": NUMBERS, "account": HASHES, "account_state_hash_after": HASHES}
LINE = dict.fromkeys(("source", "destination", "body_hash", "hash_norm"), st.none() | HASHES)
LINES = st.fixed_dictionaries({"msg_hash": HASHES, **LINE}) | st.fixed_dictionaries(
    {"msg_hash": HASHES, **LINE, "created_lt": NUMBERS, "created_at": NUMBERS}
)


@given(st.lists(st.tuples(st.fixed_dictionaries(ROW), st.lists(LINES, max_size=4)), min_size=1))
def test_relative_numbers_are_read_as_the_hashes_that_were_numbered(drawn: list[Any]) -> None:
    rows = pa.Table.from_pylist([row for row, _ in drawn], TABLES["transactions"].arrow)
    lines = [line for _, own in drawn for line in own]
    messages = pa.Table.from_pylist(lines, TABLES["messages"].arrow).select(MESSAGE_COLUMNS)
    owners = pa.array([at for at, (_, own) in enumerate(drawn) for _ in own], pa.int32())
    pool = Pool()
    rows, kept = pool.number([rows, messages.append_column("row", owners)])
    columns = kept.to_pydict() | {
        name: values.to_pylist() for name, values in relate(kept, rows).items()
    }
    found = list(map(list, zip(*map(columns.__getitem__, MESSAGE_COLUMNS), strict=True)))
    of_rows = zip(*(rows[name].take(owners).to_pylist() for name in ROW), strict=True)
    for line, of_row in zip(found, of_rows, strict=True):
        segment._fill_lines([line], *of_row)
        for at in places_of("messages", MESSAGE_COLUMNS, "hash"):
            line[at] = None if line[at] is None else pool.values[line[at]].as_py()
    assert [dict(zip(MESSAGE_COLUMNS, line, strict=True)) for line in found] == messages.to_pylist()

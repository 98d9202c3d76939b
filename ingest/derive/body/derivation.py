"""Decoded bodies as files of the lake, one for the messages of each commit.

A row depends on its body and block alone: a commit replaces no files, and the rows do not depend on
how blocks are grouped into commits.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.body.body import Decoded, decode_message_body
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Scope
from tonlake.ingest.spread import HERE, Spread
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, Place, list_files, read_place
from tonlake.lake.log.state import DataFile, LogState
from tonlake.lake.schema import MESSAGE_BODIES, MESSAGES

COLUMNS = ("body_hash", "kind", "mc_seqno", "body")
"""Columns of messages from which bodies are decoded."""
_EXTERNAL_IN = "ext_in"
_DISTINCT = ["body_hash", "external_in"]
_BODIES_AT_ONCE = 5_000
_FEW_MESSAGES = 5_000
"""Up to this number, decoding takes less time than passing the messages to workers."""


def derive_bodies(
    state: LogState,
    rows: Mapping[str, pa.Table],
    place: Place,
    earlier: Sequence[NewFile] = (),
    *,
    spread: Spread = HERE,
) -> Derivation:
    """Return the file of decoded bodies of a commit's messages: the stage ``bodies``."""
    del state, earlier
    messages = rows.get(MESSAGES.name, MESSAGES.empty).select(COLUMNS)
    if spread.count == 1 or messages.num_rows < _FEW_MESSAGES:
        bodies = decode_bodies(messages)
    else:
        bodies = pa.concat_tables(spread.map(_decode_part, _cut_by_block(messages, spread.count)))
    return Derivation([NewFile(MESSAGE_BODIES.name, place, bodies)], frozenset())


class _Part(NamedTuple):
    """The messages of a commit in the masterchain blocks from ``start`` to before ``end``."""

    messages: pa.Table
    start: int
    end: int


def _cut_by_block(messages: pa.Table, count: int) -> Iterator[_Part]:
    """Yield ``count`` parts; all messages of a masterchain block are in the same one."""
    first, last = pc.min_max(messages["mc_seqno"]).as_py().values()
    cuts = [first + (last + 1 - first) * at // count for at in range(count + 1)]
    for start, end in pairwise(cuts):
        yield _Part(messages, start, end)


def _decode_part(part: _Part) -> pa.Table:
    seqnos = part.messages["mc_seqno"]
    is_mine = pc.and_(pc.greater_equal(seqnos, part.start), pc.less(seqnos, part.end))
    return decode_bodies(part.messages.filter(is_mine))


def rederive_bodies(
    lake_dir: Path, state: LogState, _settings: IngestSections, scope: Scope
) -> Derivation | None:
    """Return the files of bodies to derive in a scope; None if no range needs one.

    Raises:
        LakeCorrupt: a file of messages is damaged.
    """
    messages, bodies = (
        _list_by_place(state, MESSAGES.name),
        _list_by_place(state, MESSAGE_BODIES.name),
    )
    todo = sorted(
        place
        for place in messages
        if scope.covers(place) and (scope.everything or place not in bodies)
    )
    if not todo:
        return None

    def derive() -> Iterator[NewFile]:
        for done, place in enumerate(todo, 1):
            rows = decode_bodies(read_rows(lake_dir, messages[place], COLUMNS))
            yield NewFile(MESSAGE_BODIES.name, place, rows)
            scope.on_range(done, len(todo))

    return Derivation(derive(), frozenset(bodies[place].path for place in todo if place in bodies))


def _list_by_place(state: LogState, table: str) -> dict[Place, DataFile]:
    return {read_place(file.path): file for file in list_files(state, table)}


def decode_bodies(messages: pa.Table) -> pa.Table:
    """Return the rows of ``message_bodies``: one for each body in each masterchain block."""
    keys = _list_keys(messages)
    if not keys.num_rows:
        return MESSAGE_BODIES.empty
    distinct = keys.group_by(_DISTINCT, use_threads=False).aggregate([("row_min", "min")])
    found: list[Decoded] = []
    for start in range(0, distinct.num_rows, _BODIES_AT_ONCE):
        part = distinct.slice(start, _BODIES_AT_ONCE)
        bodies = messages["body"].take(part["row_min_min"]).to_pylist()
        found += [
            decode_message_body(body, external_in=external_in)
            for body, external_in in zip(bodies, part["external_in"].to_pylist(), strict=True)
        ]
    places = pc.index_in(_join(keys), _join(distinct).combine_chunks())
    columns = {name: keys[name] for name in MESSAGE_BODIES.key}
    for name, values in (
        ("decoded_opcode", [each.own_name for each in found]),
        ("decoded", [_write(each) for each in found]),
    ):
        columns[name] = pa.array(values, MESSAGE_BODIES.arrow.field(name).type).take(places)
    return pa.table(columns, schema=MESSAGE_BODIES.arrow)


def _write(found: Decoded) -> str | None:
    """Return the object of a body; it names the limit that was met, if any."""
    if found.limit is None:
        return found.json
    start = '{"@type":"undecoded"' if found.json is None else found.json[:-1]
    return f'{start},"limit":{msgspec.json.encode(found.limit).decode()}}}'


def _list_keys(messages: pa.Table) -> pa.Table:
    """Return the keys of the rows, each with its first row in ``messages``."""
    keyed = pa.table(
        {
            "body_hash": messages["body_hash"],
            "external_in": pc.equal(messages["kind"], _EXTERNAL_IN),
            "mc_seqno": messages["mc_seqno"],
            "row": pa.arange(0, messages.num_rows),
        }
    ).filter(pc.is_valid(messages["body"]))
    return keyed.group_by(MESSAGE_BODIES.key, use_threads=False).aggregate([("row", "min")])


def _join(rows: pa.Table) -> pa.ChunkedArray:
    """Return hash and kind of bodies as one value."""
    kinds = pc.if_else(rows["external_in"], b"1", b"0")
    return pc.binary_join_element_wise(rows["body_hash"].cast(pa.binary()), kinds, b"")

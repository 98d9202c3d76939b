"""Decoded bodies as files of the lake, one for the messages of each commit.

A row depends on its body and block alone: a commit replaces no files, and the rows do not depend on
how blocks are grouped into commits.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.body.body import Decoded, decode_message_body
from tonlake.ingest.settings import IngestSections
from tonlake.ingest.span import Scope
from tonlake.ingest.spread import HERE, Spread
from tonlake.lake.file.rows import iter_tuples, keep_rows, list_values, read_rows
from tonlake.lake.log.place import Derivation, NewFile, Place, list_files, read_place
from tonlake.lake.log.state import DataFile, LogState
from tonlake.lake.schema import MESSAGE_BODIES, MESSAGES

COLUMNS = ("body_hash", "kind", "mc_seqno", "body")
"""Columns of messages from which bodies are decoded."""
_EXTERNAL_IN = pa.scalar("ext_in", pa.string())
_BODIES_AT_ONCE = 2_500
"""Up to this number, decoding takes less time than passing the bodies to workers."""


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
    bodies = decode_bodies(messages, spread)
    return Derivation([NewFile(MESSAGE_BODIES.name, place, bodies)], frozenset())


def rederive_bodies(
    lake_dir: Path, state: LogState, _settings: IngestSections, scope: Scope
) -> Derivation | None:
    """Return the files of bodies to derive in a scope, or None. Raises LakeCorrupt."""
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


def decode_bodies(messages: pa.Table, spread: Spread = HERE) -> pa.Table:
    """Return the rows of ``message_bodies``: one for each body in each masterchain block."""
    kinds = pc.equal(messages["kind"], _EXTERNAL_IN)
    rows = keep_rows(messages.append_column("external_in", kinds), pc.is_valid(messages["body"]))
    if not rows.num_rows:
        return MESSAGE_BODIES.empty
    firsts: dict[tuple[bytes, bool, int], int] = {}
    for at, key in enumerate(iter_tuples(rows, ("body_hash", "external_in", "mc_seqno"))):
        firsts.setdefault(key, at)
    keys = rows if len(firsts) == rows.num_rows else rows.take([*firsts.values()])
    numbers: dict[tuple[bytes, bool], int] = {}
    places = [numbers.setdefault(key[:2], len(numbers)) for key in firsts]
    bodies = dict(zip(reversed(places), reversed(list_values(keys["body"])), strict=True))
    todo = [(bodies[number], is_external) for (_hash, is_external), number in numbers.items()]
    parts = [todo[at : at + _BODIES_AT_ONCE] for at in range(0, len(todo), _BODIES_AT_ONCE)]
    decoded = [*chain.from_iterable((spread if len(parts) > 1 else HERE).map(_decode_part, parts))]
    columns = {name: keys[name] for name in MESSAGE_BODIES.key}
    for at, name in enumerate(("decoded_opcode", "decoded")):
        values = [decoded[place][at] for place in places]
        columns[name] = pa.array(values, MESSAGE_BODIES.arrow.field(name).type)
    return pa.table([columns[name] for name in MESSAGE_BODIES.names], schema=MESSAGE_BODIES.arrow)


def _decode_part(part: Sequence[tuple[bytes, bool]]) -> list[tuple[str | None, str | None]]:
    """Return the name and the object of each body."""
    found = [decode_message_body(body, external_in=external_in) for body, external_in in part]
    return [(each.own_name, _write(each)) for each in found]


def _write(found: Decoded) -> str | None:
    """Return the object of a body; it names the limit that was met, if any."""
    if found.limit is None:
        return found.json
    start = '{"@type":"undecoded"' if found.json is None else found.json[:-1]
    return f'{start},"limit":{msgspec.json.encode(found.limit).decode()}}}'

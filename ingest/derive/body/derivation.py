"""Decoded bodies as files of the lake: one for the messages of each commit.

A row follows from its body and block alone: a commit replaces nothing, and the rows do not depend
on how blocks are cut into commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.body.encoded import Encoded, encode_body
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, list_files, read_place
from tonlake.lake.schema import MESSAGE_BODIES, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tonlake.ingest.settings import IngestSections
    from tonlake.ingest.span import Scope
    from tonlake.lake.log.place import Place
    from tonlake.lake.log.state import DataFile, LogState

COLUMNS = ("body_hash", "kind", "mc_seqno", "body")
"""Columns of messages that the decoded bodies follow from."""
_EXTERNAL_IN = "ext_in"


def derive_bodies(
    state: LogState,
    rows: Mapping[str, pa.Table],
    place: Place,
    earlier: Sequence[NewFile] = (),
) -> Derivation:
    """Return the file of the bodies in the messages of a commit: the stage ``bodies``."""
    del state, earlier
    bodies = decode_bodies(rows.get(MESSAGES.name, MESSAGES.empty))
    return Derivation([NewFile(MESSAGE_BODIES.name, place, bodies)], frozenset())


def rederive_bodies(
    lake_dir: Path, state: LogState, _settings: IngestSections, scope: Scope
) -> Derivation | None:
    """Return the files of bodies of ranges that have none; None if every range has one.

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
    keys, bodies = _find_distinct(messages.select(COLUMNS))
    known: dict[tuple[bytes, bool], Encoded] = {}
    found: list[Encoded] = []
    hashes, external_in = keys["body_hash"].to_pylist(), keys["external_in"].to_pylist()
    for key, body in zip(zip(hashes, external_in, strict=True), bodies.to_pylist(), strict=True):
        if key not in known:
            known[key] = encode_body(body, external_in=key[1])
        found.append(known[key])
    columns = {
        **{name: keys[name] for name in MESSAGE_BODIES.key},
        "decoded_opcode": [name for name, _json in found],
        "decoded": [json for _name, json in found],
    }
    return pa.table(columns, schema=MESSAGE_BODIES.arrow)


def _find_distinct(messages: pa.Table) -> tuple[pa.Table, pa.ChunkedArray]:
    """Return the keys of the rows to come, and the bag of cells of each."""
    present = messages.filter(pc.is_valid(messages["body"]))
    keyed = pa.table(
        {
            "body_hash": present["body_hash"],
            "external_in": pc.equal(present["kind"], _EXTERNAL_IN),
            "mc_seqno": present["mc_seqno"],
            "row": pa.array(range(present.num_rows), pa.int64()),
        }
    )
    keys = keyed.group_by(MESSAGE_BODIES.key).aggregate([("row", "min")])
    return keys, present["body"].take(keys["row_min"])

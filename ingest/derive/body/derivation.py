"""Decoded bodies as files of the lake: one for the messages of each commit.

A row follows from its body alone, so that a commit replaces nothing, and files of different
commits agree about the bodies that both have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tonlake.ingest.derive.body.encoded import encode_body
from tonlake.lake.log.place import Derivation, NewFile
from tonlake.lake.schema import MESSAGE_BODIES, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tonlake.lake.log.place import Place
    from tonlake.lake.log.state import LogState

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


def decode_bodies(messages: pa.Table) -> pa.Table:
    """Return a row of ``message_bodies`` for each body that stands in rows of ``messages``."""
    distinct, bodies = _find_distinct(messages.select(COLUMNS))
    external_in = distinct["external_in"]
    found = [
        encode_body(body, external_in=is_external)
        for body, is_external in zip(bodies.to_pylist(), external_in.to_pylist(), strict=True)
    ]
    columns = {
        "body_hash": distinct["body_hash"],
        "external_in": external_in,
        "mc_seqno": distinct["mc_seqno_min"],
        "decoded_opcode": [name for name, _json in found],
        "decoded": [json for _name, json in found],
    }
    return pa.table(columns, schema=MESSAGE_BODIES.arrow)


def _find_distinct(messages: pa.Table) -> tuple[pa.Table, pa.ChunkedArray]:
    """Return the different bodies with the first block of each, and their bags of cells."""
    present = messages.filter(pc.is_valid(messages["body"]))
    keyed = pa.table(
        {
            "body_hash": present["body_hash"],
            "external_in": pc.equal(present["kind"], _EXTERNAL_IN),
            "mc_seqno": present["mc_seqno"],
            "row": pa.array(range(present.num_rows), pa.int64()),
        }
    )
    grouped = keyed.group_by(["body_hash", "external_in"]).aggregate(
        [("mc_seqno", "min"), ("row", "min")]
    )
    return grouped, present["body"].take(grouped["row_min"])

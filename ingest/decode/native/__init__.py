"""Decodes blocks to Arrow tables in C, with the same rows as the Python decoder.

The extension ``_core`` (the C files here) is optional. It declines blocks that are damaged, rare or
too large; these go one by one to the Python reference, which decides about them and raises the
errors. Arrays of the extension become Arrow tables without a copy. ``TONLAKE_NATIVE=0`` disables
the extension.
"""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from tonlake.ingest.blocks import BlockId, McBundle, RawBlock
from tonlake.ingest.decode.cell.packed import Loaded
from tonlake.ingest.decode.rows import keep_first_cells
from tonlake.lake.account import MASTERCHAIN
from tonlake.lake.native import load_extension
from tonlake.lake.schema import DECODED_TABLES, Table

Tables = dict[str, pa.Table]
Reference = Callable[[Sequence[McBundle], Collection[BlockId]], Tables]


class _Filled:
    """The Arrow PyCapsule interface of an array: https://arrow.apache.org/docs/format/CDataInterface."""

    __slots__ = ("_capsule", "_schema")

    def __init__(self, schema: pa.Schema, capsule: object) -> None:
        self._schema = schema
        self._capsule = capsule

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return the schema and the array, both in capsules; ``requested_schema`` is ignored."""
        return self._schema.__arrow_c_schema__(), self._capsule


def make_table(table: Table, rows: int, capsule: object) -> pa.Table:
    """Return the table of an array of the extension; ``capsule`` may be None for no rows."""
    if not rows:
        return table.empty
    schema = table.arrow
    return pa.Table.from_batches([pa.record_batch(_Filled(schema, capsule))], schema=schema)


__all__ = ["decode_branch", "decode_bundles", "decode_natively", "describe", "hash_root", "is_used"]

_SEED_BITS = 64
_KEY_BITS = 256


def _load() -> tuple[Any, str]:
    core, reason = load_extension("tonlake.ingest.decode._core")
    if core is None:
        return None, reason
    columns = {
        table.name: tuple((column.name, column.type) for column in table.columns)
        for table in DECODED_TABLES
    }
    if dict(core.layout()) != columns:
        return None, "the extension was built for other tables; reinstall it"
    return core, ""


_extension, _reason = _load()


def hash_root(data: bytes) -> bytes | None:
    """Return the root hash of a bag after verifying the hashes that its Merkle cells store."""
    found: bytes | None = None if _extension is None else _extension.root_hash(data)
    return found


def read_tops(
    data: bytes, *, with_extra: bool = False
) -> tuple[int, tuple[tuple[tuple[Any, ...], int], ...], bytes | None] | None:
    """Return the last key block before a masterchain block, and the shard tops it names.

    A top is the fields of its ``BlockId``, and the masterchain block that commits it. The bag of
    McBlockExtra is the third. None for a key block, or one that is declined.
    """
    return None if _extension is None else _extension.tops(data, with_extra)


def read_proof(data: bytes, block_id: BlockId) -> tuple[Any, ...] | None:
    """Return the signatures in the proof of a block, whose form is right; see ``proof`` in C."""
    return None if _extension is None else _extension.proof(data, *astuple(block_id))


def is_used() -> bool:
    """Return whether the extension decodes blocks."""
    return _extension is not None


def describe() -> str:
    """Describe the decoder: native, or python (why)."""
    return "native" if _extension is not None else f"python ({_reason})"


def decode_bundles(bundles: Sequence[McBundle], reference: Reference) -> Tables:
    """Decode bundles with the extension, and blocks that it declines with ``reference``."""
    blocks = [(raw, bundle.mc_seqno) for bundle in bundles for raw in bundle.blocks]
    versions = {key: version for bundle in bundles for key, version in bundle.versions.items()}
    parts: list[Tables] = []
    while blocks or not parts:
        try:
            count, tables = decode_natively(blocks, versions)
        except OverflowError:  # a column of 2 GiB, or an impossible block id
            return reference(bundles, ())
        parts.append(tables)
        for raw, mc_seqno in blocks[count : count + 1]:
            bundle = McBundle(mc_seqno, (raw,), versions=versions)
            parts.append(reference((bundle,), _list_tops(parts, mc_seqno)))
        blocks = blocks[count + 1 :]
    return parts[0] if len(parts) == 1 else _join(parts)


def _list_tops(parts: Sequence[Tables], mc_seqno: int) -> set[BlockId]:
    """Return the shard blocks named by a masterchain block that was decoded before."""
    tops = (part["shard_blocks"] for part in parts)
    rows = (row for table in tops for row in table.to_pylist() if row["mc_seqno"] == mc_seqno)
    return {
        BlockId(*(row[name] for name in BlockId.__struct_fields__))
        for row in rows
        if row["workchain"] != MASTERCHAIN
    }


def decode_natively(
    blocks: Sequence[tuple[RawBlock, int]],
    versions: Mapping[int, int] = MappingProxyType({}),
    *,
    all_named: bool = False,
) -> tuple[int, Tables]:
    """Decode blocks up to the first that is declined; return their number and tables."""
    items = [(raw.data, *astuple(raw.id), mc_seqno) for raw, mc_seqno in blocks]
    # Hash tables are seeded, so that a crafted block cannot cause collisions.
    count, tables = _extension.decode(
        items, secrets.randbits(_SEED_BITS), all_named, tuple(versions.items())
    )
    named = zip(DECODED_TABLES, tables, strict=True)
    return count, {table.name: make_table(table, rows, columns) for table, (rows, columns) in named}


def decode_branch(
    loaded: Loaded,
    key: int,
    bits_left: int,
    at: tuple[int, ...],
    skip: Collection[bytes],
    *,
    only_active: bool,
) -> tuple[int, Tables] | None:
    """Return the number of accounts in a branch of a whole state, and their rows.

    None if the extension declines or is missing. ``key`` is the prefix before the label of the
    branch's first cell, and ``bits_left`` bits follow it. ``at`` is workchain, shard, seqno,
    masterchain seqno and time of the block that the state follows.
    """
    if _extension is None:
        return None
    try:
        found = _extension.decode_branch(
            tuple(loaded.handles),
            tuple(loaded.packed),
            loaded.width,
            (key << bits_left).to_bytes(_KEY_BITS // 8, "big"),
            _KEY_BITS - bits_left,
            at,
            b"".join(sorted(skip)),
            only_active,
            secrets.randbits(_SEED_BITS),
        )
    except OverflowError:  # a column of 2 GiB
        return None
    if found is None:
        return None
    accounts, tables = found
    named = zip(DECODED_TABLES, tables, strict=True)
    return accounts, {
        table.name: make_table(table, rows, columns) for table, (rows, columns) in named if rows
    }


def _join(parts: Sequence[Mapping[str, pa.Table]]) -> Tables:
    """Join and sort the tables of consecutive blocks; of equal state cells the first is kept."""
    joined: Tables = {}
    for table in DECODED_TABLES:
        rows = pa.concat_tables([part[table.name] for part in parts])
        order = pc.sort_indices(rows, sort_keys=[(column, "ascending") for column in table.sort])
        joined[table.name] = rows.take(order).combine_chunks()
    joined["state_cells"] = keep_first_cells(joined["state_cells"])
    return joined

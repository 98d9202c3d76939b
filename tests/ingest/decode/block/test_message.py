"""Messages: every kind of info, address, StateInit and body, written field by field."""

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingest.decode.block.samples import (
    Columns,
    Fields,
    store_address,
    store_content,
    store_state_init,
)
from tests.ingest.updates import end_proof
from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, append_cell
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import CellUnderflow, DecodeError
from tonlake.lake.schema import MESSAGES

NAMES = MESSAGES.names[MESSAGES.names.index("msg_hash") :]


def decode(tree: CellTree, cell: int, global_version: int | None = None) -> Columns:
    return dict(zip(NAMES, MessageDecoder(tree, global_version).decode(cell), strict=True))


def _store_int_info(to: Fields, *, is_new: bool) -> None:
    to.builder.store_bit(0)
    for name in ("ihr_disabled", "bounce", "bounced"):
        to.flag(name)
    for end in ("source", "destination"):
        store_address(to, end)
    to.currencies("value", "value_extra_currencies")
    to.grams("extra_flags" if is_new else "ihr_fee")
    if is_new:
        to.columns["ihr_fee"] = 0
    to.grams("fwd_fee")
    to.uint("created_lt", 64)
    to.uint("created_at", 32)


def _store_ext_info(to: Fields, kind: str) -> None:
    to.builder.store_uint(2 if kind == "ext_in" else 3, 2)
    for end in ("source", "destination"):
        store_address(to, end)
    hidden = "source" if kind == "ext_in" else "destination"
    for name in (hidden, f"{hidden}_workchain"):
        to.columns.pop(name, None)
    if kind == "ext_in":
        to.grams("import_fee")
    else:
        to.uint("created_lt", 64)
        to.uint("created_at", 32)


def _store_part(to: Fields, part: CellBuilder, names: tuple[str, str]) -> int:
    """Store Either X ^X and the columns of it; return the cell that X is, stored or not."""
    cell = part.end()
    if to.draw(st.booleans()) and part.bits < 120:
        to.builder.store_bit(0).store_slice(to.tree.slice(cell))
    else:
        to.builder.store_bit(1).store_ref(cell)
    to.columns[names[0]] = to.tree.hash(cell)
    to.columns[names[1]] = serialize_boc(to.tree, [cell])
    return cell


@st.composite
def messages(draw: st.DrawFn) -> tuple[CellTree, int, Columns, int | None]:
    """A message of any kind, its columns, and the global version it was written under."""
    tree = CellTree()
    to = Fields(draw, tree)
    kind = draw(st.sampled_from(["int", "ext_in", "ext_out"]))
    version = draw(st.sampled_from([None, 11, 12, 13]))
    if kind == "int":
        _store_int_info(to, is_new=(version or 0) >= 12)
    else:
        _store_ext_info(to, kind)
    if to.flag():
        _store_part(to, store_state_init(draw, tree), ("init_state_hash", "init_state"))
    part = store_content(draw, tree, max_bits=100)
    content = _store_part(to, part, ("body_hash", "body"))
    value, bits = tree.bits(content)
    if bits >= 32:
        to.columns["opcode"] = (value >> (bits - 32) ^ 1 << 31) - (1 << 31)
    cell = to.builder.end()
    return tree, cell, to.columns | {"kind": kind, "msg_hash": tree.hash(cell)}, version


@settings(max_examples=200, deadline=None)
@given(messages())
def test_every_kind_of_message(sample: tuple[CellTree, int, Columns, int | None]) -> None:
    tree, cell, columns, version = sample
    found = decode(tree, cell, version)
    norm = found.pop("hash_norm")
    assert (norm is not None) == (columns["kind"] == "ext_in")
    assert found == dict.fromkeys(found) | columns
    again = parse_boc(serialize_boc(tree, [cell]))
    assert decode(again, 0, version) == found | {"hash_norm": norm}


def _external(tree: CellTree, *, fee: int, inline: bool, init: bool, source_bits: int) -> int:
    """One logical external message in several encodings."""
    builder = CellBuilder(tree).store_uint(2, 2)
    if source_bits:
        builder.store_uint(1, 2).store_uint(source_bits, 9).store_uint(1, source_bits)
    else:
        builder.store_uint(0, 2)
    builder.store_uint(0b100, 3).store_int(-1, 8).store_bytes(b"\x33" * 32).store_coins(fee)
    builder.store_uint(0b10_00000 if init else 0, 7 if init else 1)
    body = CellBuilder(tree).store_uint(0xDEADBEEF, 32).store_ref(append_cell(tree, 1, 1, ()))
    cell = body.end()
    if inline:
        return builder.store_bit(0).store_slice(tree.slice(cell)).end()
    return builder.store_bit(1).store_ref(cell).end()


def test_the_normal_form_is_the_same_for_every_encoding(tree: CellTree) -> None:
    normal = _external(tree, fee=0, inline=False, init=False, source_bits=0)
    others = [
        _external(tree, fee=fee, inline=inline, init=init, source_bits=source_bits)
        for fee in (0, 10**9)
        for inline in (False, True)
        for init in (False, True)
        for source_bits in (0, 13)
    ]
    assert len({tree.hash(cell) for cell in others}) == 16
    for cell in others:
        assert decode(tree, cell)["hash_norm"] == tree.hash(normal)


def _store_plain(tree: CellTree, rest: CellBuilder) -> int:
    """An internal message between two plain addresses, ended by ``rest``."""
    builder = CellBuilder(tree).store_uint(0, 4)
    for _ in range(2):
        builder.store_uint(0b100, 3).store_uint(0, 8 + 256)
    builder.store_uint(0, 4 + 1 + 4 + 4 + 64 + 32)
    return builder.store_slice(tree.slice(rest.end())).end()


def test_an_exotic_body_stays_as_it_is(tree: CellTree) -> None:
    library = CellBuilder(tree).store_uint(2, 8).store_bytes(b"\x07" * 32).end(exotic=True)
    proof = end_proof(tree, append_cell(tree, 5, 40, ()))
    for body in (library, proof):
        found = decode(tree, _store_plain(tree, CellBuilder(tree).store_uint(1, 2).store_ref(body)))
        assert found["body_hash"] == tree.hash(body)
        assert found["body"] == serialize_boc(tree, [body])
        assert found["opcode"] is None


def test_an_empty_body_is_an_empty_cell(tree: CellTree) -> None:
    found = decode(tree, _store_plain(tree, CellBuilder(tree).store_uint(0, 2)))
    assert found["body"].hex() == "b5ee9c72010101010002000000"
    assert found["body_hash"] == sha256(b"\x00\x00").digest()
    assert found["opcode"] is None


@pytest.mark.parametrize("import_fee", [(1 << 63) - 1, 1 << 63, (1 << 120) - 1])
def test_import_fees_beyond_int64_are_left_out(tree: CellTree, import_fee: int) -> None:
    cell = _external(tree, fee=import_fee, inline=True, init=False, source_bits=0)
    expected = import_fee if import_fee < 1 << 63 else None
    assert decode(tree, cell)["import_fee"] == expected


@pytest.mark.parametrize("depth", [0, 31])
def test_anycast_of_a_depth_that_cannot_be_is_refused(tree: CellTree, depth: int) -> None:
    builder = CellBuilder(tree).store_uint(2, 2).store_uint(0, 2).store_uint(0b101, 3)
    builder.store_uint(depth, 5).store_uint(0, depth + 264 + 4 + 2)
    with pytest.raises(DecodeError, match="anycast"):
        decode(tree, builder.end())


def _cuts() -> list[Any]:
    tree = CellTree()
    cell = _store_plain(tree, CellBuilder(tree).store_uint(0, 2))
    value, bits = tree.bits(cell)
    return [(value >> (bits - length), length) for length in range(0, bits, 3)]


@pytest.mark.parametrize(("value", "bits"), _cuts())
def test_a_message_cut_short_is_refused(tree: CellTree, value: int, bits: int) -> None:
    with pytest.raises(CellUnderflow):
        decode(tree, append_cell(tree, value, bits, ()))


@pytest.mark.parametrize(
    "rest",
    [
        (0b11, 2),  # StateInit in a reference
        (0b01, 2),  # body in a reference
        (0b10_00100, 7),  # code of an inline StateInit
    ],
)
def test_a_missing_reference_is_refused(tree: CellTree, rest: tuple[int, int]) -> None:
    cell = _store_plain(tree, CellBuilder(tree).store_uint(*rest).store_uint(0, 1))
    with pytest.raises(CellUnderflow):
        decode(tree, cell)

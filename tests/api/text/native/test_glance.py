"""The peeked opcode equals that of the parsed bag, or is None."""

from hypothesis import given
from hypothesis import strategies as st

from tests.api.text.native.glance import peek_opcode
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc


@given(st.integers(0, 300), st.integers(0, (1 << 300) - 1), st.integers(0, 4), st.booleans())
def test_a_glance_agrees_with_the_cells(bits: int, value: int, kids: int, crc32c: bool) -> None:  # noqa: FBT001 - Hypothesis
    builder = CellBuilder()
    builder.store_uint(value >> 300 - bits, bits)
    for number in range(kids):
        kid = CellBuilder(builder.tree)
        kid.store_uint(number, 8)
        builder.store_ref(kid.end())
    boc = serialize_boc(builder.tree, [builder.end()], crc32c=crc32c)
    seen = peek_opcode(boc)
    tree = parse_boc(boc)
    start = tree.slice(tree.roots[0])
    assert seen == (start.load_uint(32) if bits >= 32 else None)


@given(st.binary(max_size=40))
def test_any_bytes_are_glanced_at(data: bytes) -> None:
    for boc in (data, bytes.fromhex("b5ee9c72") + data):
        seen = peek_opcode(boc)
        assert seen is None or 0 <= seen < 1 << 32


def test_a_body_with_room_for_a_signed_request_takes_more_than_a_glance() -> None:
    for bits, opcode in ((536, 7), (543, 7), (544, None), (1023, None)):
        cell = CellBuilder().store_uint(7, 32).store_uint(0, bits - 32)
        assert peek_opcode(serialize_boc(cell.tree, [cell.end()])) == opcode


def test_several_roots_and_exotic_ones_take_more_than_a_glance() -> None:
    builder = CellBuilder()
    builder.store_uint(2, 8).store_uint(7, 256)
    exotic = builder.end(exotic=True)
    assert peek_opcode(serialize_boc(builder.tree, [exotic])) is None
    plain = CellBuilder(builder.tree)
    plain.store_uint(1, 64)
    root = plain.end()
    assert peek_opcode(serialize_boc(builder.tree, [root])) == 0
    assert peek_opcode(serialize_boc(builder.tree, [root, exotic])) is None

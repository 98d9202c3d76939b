"""Codecs of simple types: values that they hold, and values and bits that they refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import encode, read
from tests.ingest.derive.body.values import values
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.body import codec as codecs
from tonlake.ingest.derive.body.composite import (
    Either,
    Hashmap,
    Maybe,
    MaybeHashmap,
    Reference,
    Wrapped,
)
from tonlake.ingest.derive.body.function import MAX_LEVELS
from tonlake.ingest.derive.body.grammar import parse_scheme
from tonlake.ingest.derive.body.record import Rest
from tonlake.ingest.derive.body.scheme import ADDRESS, Scheme
from tonlake.ingest.errors import BocError, BodyError, BodyLimit, CellUnderflow

SIMPLE = [
    codecs.Unsigned(1),
    codecs.Unsigned(256),
    codecs.Signed(8),
    codecs.Signed(128),
    codecs.Flag(),
    codecs.Bits(0),
    codecs.Bits(3),
    codecs.Bits(256),
    codecs.VarUnsigned(16),
    codecs.VarUnsigned(32),
    codecs.VarUnsigned(16, is_signed=True),
    ADDRESS,
    codecs.SnakeText(),
    codecs.SnakeBytes(),
    codecs.ShortText(),
    codecs.ChunkedText(),
    Maybe(codecs.Unsigned(8)),
    Either(codecs.Unsigned(8), Wrapped(codecs.Signed(8))),
    Hashmap(9, codecs.Unsigned(8)),
    MaybeHashmap(267, codecs.Unsigned(1)),
]


def store(codec: codecs.Codec, value: codecs.Value) -> CellBuilder:
    target = CellBuilder()
    encode(codec, value, target)
    return target


def load(codec: codecs.Codec, target: CellBuilder) -> codecs.Value:
    """Read one value from a cell, which must be used up."""
    source = target.tree.slice(target.end())
    value: codecs.Value = read(codec, source)
    assert (source.bits_left, source.refs_left) == (0, 0)
    return value


@pytest.mark.parametrize("codec", SIMPLE, ids=lambda codec: type(codec).__name__)
def test_values_go_there_and_back(codec: codecs.Codec) -> None:
    @given(values(codec))
    def check(value: codecs.Value) -> None:
        assert load(codec, store(codec, value)) == value

    check()


@pytest.mark.parametrize(
    ("bits", "number", "text"),
    [(0, 0, ""), (4, 10, "A"), (8, 10, "0A"), (1, 1, "C_"), (3, 5, "B_"), (5, 0, "04_")],
)
def test_bits_are_written_as_ton_writes_them(bits: int, number: int, text: str) -> None:
    assert codecs.show_bits(number, bits) == text
    assert load(codecs.Bits(bits), store(codecs.Bits(bits), text)) == text


def test_the_longest_number_is_read() -> None:
    target = CellBuilder().store_uint(31, 5).store_uint(0, 31 * 8)
    assert load(codecs.VarUnsigned(32), target) == {"@type": "var_uint", "len": "31", "value": "0"}
    target, signed = CellBuilder().store_uint(1, 4).store_uint(0xFE, 8), {"@type": "var_int"}
    assert load(codecs.VarUnsigned(16, is_signed=True), target) == signed | {
        "len": "1",
        "value": "-2",
    }


@pytest.mark.parametrize(
    "codec",
    [codecs.Unsigned(8), codecs.Flag(), codecs.Bits(4), codecs.ShortText()],
)
def test_a_cell_that_ends_too_early_is_rejected(codec: codecs.Codec) -> None:
    empty = CellBuilder()
    with pytest.raises(CellUnderflow):
        load(codec, empty)


@pytest.mark.parametrize("length", [0, 126, 127, 128, 254, 255, 1000])
def test_text_fills_cell_after_cell(length: int) -> None:
    text = "x" * length
    assert load(codecs.SnakeText(), store(codecs.SnakeText(), text)) == text
    chunks = max(1, -(-(length + 1) // 126))
    value: codecs.Value = {"@type": "text", "chunks": str(chunks), "text": text}
    assert load(codecs.ChunkedText(), store(codecs.ChunkedText(), value)) == value


def test_a_chain_of_text_is_bounded() -> None:
    tree = CellBuilder().tree
    child = CellBuilder(tree).store_uint(97, 8).end()
    for _ in range(700):
        child = CellBuilder(tree).store_uint(97, 8).store_ref(child).end()
    work = codecs.Work(tree, {})
    for _ in range(2):
        assert codecs.SnakeText().decode(tree.slice(child), work) == f'"{"a" * 701}"'
    with pytest.raises(BodyLimit, match="too often"):
        codecs.SnakeText().decode(tree.slice(child), work)


def test_levels_are_limited() -> None:
    codec: codecs.Codec = codecs.Unsigned(8)
    target = CellBuilder().store_uint(7, 8)
    for _ in range(MAX_LEVELS):
        codec = Reference(codec)
        target = CellBuilder(target.tree).store_ref(target.end())
    assert load(codec, target) == "7"
    with pytest.raises(BodyLimit, match="more than 48 levels"):
        load(Reference(codec), CellBuilder(target.tree).store_ref(target.end()))


TABLE = """
flagged$0 flags:uint8 first:flags?uint8 third:flags.2?uint8 = Flagged;
tagged$10 a:uint4 = Flagged;
short$_ a:uint8 = Rival;
long$_ a:uint8 b:uint8 = Rival;
holder#00000001 list:Rival = InternalBody;
outer#00000003 inner:^[ a:uint8 ] = InternalBody;
"""
SCHEME = Scheme(parse_scheme(TABLE))


@pytest.mark.parametrize(
    ("flags", "bits", "expected"),
    [
        (0, b"\x00", {}),
        (1, b"\x01\x07", {"first": "7"}),
        (4, b"\x04\x07\x09", {"first": "7", "third": "9"}),
    ],
)
def test_fields_on_a_condition(flags: int, bits: bytes, expected: dict[str, codecs.Value]) -> None:
    union = SCHEME.union("Flagged")
    value: codecs.Value = {"@type": "flagged", "flags": str(flags), **expected}
    assert load(union, CellBuilder().store_bit(0).store_bytes(bits)) == value
    assert load(union, store(union, value)) == value


def test_rivals_differ_in_the_rest_of_the_cell() -> None:
    union = SCHEME.union("Rival")
    assert load(union, CellBuilder().store_bytes(b"\x01")) == {"@type": "short", "a": "1"}
    assert load(union, CellBuilder().store_bytes(b"\x01\x02")) == {
        "@type": "long",
        "a": "1",
        "b": "2",
    }
    source = CellBuilder().store_bytes(b"\x01\x02\x03")
    inline = source.tree.slice(source.end())
    assert read(union, inline) == {"@type": "short", "a": "1"}
    assert inline.bits_left == 16
    with pytest.raises(BodyError, match="no constructor of the type fits"):
        load(union, CellBuilder().store_bit(0))


@pytest.mark.parametrize(
    ("codec", "bits", "children", "complaint"),
    [
        (ADDRESS, "", [], "no constructor"),
        (ADDRESS, "10100000" + "0" * 300, [], "condition on numbers"),
        (ADDRESS, "10111111" + "0" * 300, [], "31 where at most 30"),
        (codecs.VarUnsigned(6), "111" + "0" * 56, [], "7 bytes where fewer than 6"),
        (
            codecs.ChunkedText(),
            f"{2:08b}{1:08b}{97:08b}",
            [f"{1:08b}" + "0" * 16],
            "followed by data",
        ),
        (codecs.SnakeText(), "", ["", ""], "not part of a snake text"),
        (Hashmap(8, codecs.Flag()), "0" + "1" * 9 + "0" + "0" * 9, [], "label of 9 bits where 8"),
        (Hashmap(8, codecs.Flag()), "101001000000000", [], "label of 9 bits where 8"),
        (Hashmap(8, codecs.Flag()), "1101001", [], "label of 9 bits where 8"),
        (SCHEME.union("Flagged"), "11", [], "no constructor of the type fits"),
        (SCHEME.layouts[3][0], "", ["0" * 9], "data after its value"),
    ],
)
def test_bits_that_are_no_value_are_rejected(
    codec: codecs.Codec, bits: str, children: list[str], complaint: str
) -> None:
    target = CellBuilder().store_uint(int(bits or "0", 2), len(bits))
    for child in children:
        cell = CellBuilder(target.tree).store_uint(int(child or "0", 2), len(child))
        target.store_ref(cell.end())
    with pytest.raises((BocError, BodyError), match=complaint):
        load(codec, target)


@given(st.binary(max_size=100))
def test_raw_cells_are_planted_with_their_children(data: bytes) -> None:
    inner = CellBuilder()
    child = CellBuilder(inner.tree).store_bytes(data).end()
    shared = CellBuilder(inner.tree).store_ref(child).store_ref(child).end()
    root = inner.store_bytes(data).store_ref(shared).store_ref(child).end()
    shown = read(Rest(), inner.tree.slice(root))
    planted = store(Rest(), shown)
    assert read(Rest(), planted.tree.slice(planted.end())) == shown

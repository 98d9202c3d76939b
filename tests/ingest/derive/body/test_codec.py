"""Codecs of simple types: values that they hold, and values and bits that they refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import encode, read
from tests.ingest.derive.body.values import values
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.derive.body.codec import (
    MAX_LEVELS,
    Address,
    Bits,
    ChunkedText,
    Codec,
    Flag,
    ShortText,
    Signed,
    SnakeBytes,
    SnakeText,
    Unsigned,
    Value,
    VarUnsigned,
    Work,
    show_bits,
)
from tonlake.ingest.derive.body.composite import (
    Either,
    Hashmap,
    Maybe,
    MaybeHashmap,
    Reference,
    Wrapped,
)
from tonlake.ingest.derive.body.grammar import parse_scheme
from tonlake.ingest.derive.body.record import Rest
from tonlake.ingest.derive.body.scheme import Scheme
from tonlake.ingest.errors import BodyError, BodyLimit, CellUnderflow

SIMPLE = [
    Unsigned(1),
    Unsigned(256),
    Signed(8),
    Signed(128),
    Flag(),
    Bits(0),
    Bits(3),
    Bits(256),
    VarUnsigned(16),
    VarUnsigned(32),
    Address(),
    SnakeText(),
    SnakeBytes(),
    ShortText(),
    ChunkedText(),
    Maybe(Unsigned(8)),
    Either(Unsigned(8), Wrapped(Signed(8))),
    Hashmap(9, Unsigned(8)),
    MaybeHashmap(267, Unsigned(1)),
]


def store(codec: Codec, value: Value) -> CellBuilder:
    """Store one value into a new cell."""
    target = CellBuilder()
    encode(codec, value, target)
    return target


def load(codec: Codec, target: CellBuilder) -> Value:
    """Read one value from a cell, which must be used up."""
    source = target.tree.slice(target.end())
    value: Value = read(codec, source)
    assert (source.bits_left, source.refs_left) == (0, 0)
    return value


@pytest.mark.parametrize("codec", SIMPLE, ids=lambda codec: type(codec).__name__)
def test_values_go_there_and_back(codec: Codec) -> None:
    @given(values(codec))
    def check(value: Value) -> None:
        assert load(codec, store(codec, value)) == value

    check()


@pytest.mark.parametrize(
    ("bits", "number", "text"),
    [(0, 0, ""), (4, 10, "A"), (8, 10, "0A"), (1, 1, "C_"), (3, 5, "B_"), (5, 0, "04_")],
)
def test_bits_are_written_as_ton_writes_them(bits: int, number: int, text: str) -> None:
    assert show_bits(number, bits) == text
    assert load(Bits(bits), store(Bits(bits), text)) == text


@pytest.mark.parametrize("depth", [0, 31])
def test_an_anycast_has_1_to_30_bits(depth: int) -> None:
    source = CellBuilder().store_uint(0b101, 3).store_uint(depth, 5).store_uint(0, 300)
    with pytest.raises(BodyError, match="anycast"):
        load(Address(), source)


def test_a_number_longer_than_its_type_is_rejected() -> None:
    target = CellBuilder().store_uint(31, 5).store_uint(0, 31 * 8)
    assert load(VarUnsigned(32), target) == {"@type": "var_uint", "len": "31", "value": "0"}
    target = CellBuilder().store_uint(7, 3).store_uint(0, 56)
    with pytest.raises(BodyError, match="7 bytes where fewer than 6"):
        load(VarUnsigned(6), target)


@pytest.mark.parametrize("codec", [Unsigned(8), Flag(), Bits(4), Address(), ShortText()])
def test_a_cell_that_ends_too_early_is_rejected(codec: Codec) -> None:
    empty = CellBuilder()
    with pytest.raises(CellUnderflow):
        load(codec, empty)


@pytest.mark.parametrize("length", [0, 126, 127, 128, 254, 255, 1000])
def test_text_fills_cell_after_cell(length: int) -> None:
    text = "x" * length
    assert load(SnakeText(), store(SnakeText(), text)) == text
    chunks = max(1, -(-(length + 1) // 126))
    value: Value = {"@type": "text", "chunks": str(chunks), "text": text}
    assert load(ChunkedText(), store(ChunkedText(), value)) == value


def test_a_chunk_with_trailing_data_is_rejected() -> None:
    target = CellBuilder().store_uint(2, 8).store_uint(1, 8).store_bytes(b"a")
    last = CellBuilder(target.tree).store_uint(1, 8).store_bytes(b"bc").end()
    with pytest.raises(BodyError, match="followed by data"):
        load(ChunkedText(), target.store_ref(last))


def test_a_text_with_two_children_is_rejected() -> None:
    target = CellBuilder()
    child = CellBuilder(target.tree).end()
    with pytest.raises(BodyError, match="not part of a snake text"):
        load(SnakeText(), target.store_ref(child).store_ref(child))


def test_a_chain_of_text_is_bounded() -> None:
    tree = CellBuilder().tree
    child = CellBuilder(tree).store_uint(97, 8).end()
    for _ in range(1000):
        child = CellBuilder(tree).store_uint(97, 8).store_ref(child).end()
    work = Work(tree, {})
    for _ in range(2):
        assert SnakeText().decode(tree.slice(child), work) == f'"{"a" * 1001}"'
    with pytest.raises(BodyLimit, match="too often"):
        SnakeText().decode(tree.slice(child), work)


@pytest.mark.parametrize("label", ["0" + "1" * 9 + "0" + "0" * 9, "101001000000000", "1101001"])
def test_a_label_longer_than_the_key_is_rejected(label: str) -> None:
    target = CellBuilder().store_uint(int(label, 2), len(label))
    with pytest.raises(BodyError, match="label of 9 bits where 8"):
        load(Hashmap(8, Flag()), target)


def test_levels_are_limited() -> None:
    codec: Codec = Unsigned(8)
    target = CellBuilder().store_uint(7, 8)
    for _ in range(MAX_LEVELS):
        codec = Reference(codec)
        target = CellBuilder(target.tree).store_ref(target.end())
    assert load(codec, target) == "7"
    with pytest.raises(BodyLimit, match="more than 48 levels"):
        load(Reference(codec), CellBuilder(target.tree).store_ref(target.end()))


def test_raw_bytes_are_limited() -> None:
    work = Work(CellBuilder().tree, {})
    work.spend(4096)
    with pytest.raises(BodyLimit, match="shows its cells too often"):
        work.spend(1)
    assert work.limit == "the body shows its cells too often"


TABLE = """
flagged$0 flags:uint8 first:flags?uint8 third:flags.2?uint8 = Flagged;
tagged$10 a:uint4 = Flagged;
short$_ a:uint8 = Rival;
long$_ a:uint8 b:uint8 = Rival;
holder#00000001 list:Rival = InternalBody;
asker#00000002 list:missing?uint8 = InternalBody;
outer#00000003 inner:^[ a:uint8 ] = InternalBody;
"""


@pytest.mark.parametrize(
    ("flags", "bits", "expected"),
    [
        (0, b"\x00", {}),
        (1, b"\x01\x07", {"first": "7"}),
        (4, b"\x04\x07\x09", {"first": "7", "third": "9"}),
    ],
)
def test_fields_on_a_condition(flags: int, bits: bytes, expected: dict[str, Value]) -> None:
    union = Scheme(parse_scheme(TABLE)).union("Flagged")
    value: Value = {"@type": "flagged", "flags": str(flags), **expected}
    assert load(union, CellBuilder().store_bit(0).store_bytes(bits)) == value
    assert load(union, store(union, value)) == value


def test_a_tag_without_a_constructor_is_rejected() -> None:
    union = Scheme(parse_scheme(TABLE)).union("Flagged")
    with pytest.raises(BodyError, match="no constructor of the type has this tag"):
        load(union, CellBuilder().store_uint(0b11, 2))


def test_rivals_differ_in_the_rest_of_the_cell() -> None:
    union = Scheme(parse_scheme(TABLE)).union("Rival")
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


def test_a_condition_on_a_missing_field_is_rejected() -> None:
    record = Scheme(parse_scheme(TABLE)).layouts[2][0]
    with pytest.raises(BodyError, match="depends on missing"):
        load(record, CellBuilder().store_uint(0, 8))


def test_a_child_that_is_not_consumed_is_rejected() -> None:
    record = Scheme(parse_scheme(TABLE)).layouts[3][0]
    target = CellBuilder()
    child = CellBuilder(target.tree).store_uint(0, 9).end()
    with pytest.raises(BodyError, match="data after its value"):
        load(record, target.store_ref(child))


@given(st.binary(max_size=100))
def test_raw_cells_are_planted_with_their_children(data: bytes) -> None:
    inner = CellBuilder()
    child = CellBuilder(inner.tree).store_bytes(data).end()
    shared = CellBuilder(inner.tree).store_ref(child).store_ref(child).end()
    root = inner.store_bytes(data).store_ref(shared).store_ref(child).end()
    shown = read(Rest(), inner.tree.slice(root))
    planted = store(Rest(), shown)
    assert read(Rest(), planted.tree.slice(planted.end())) == shown

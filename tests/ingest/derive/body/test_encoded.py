"""The native decoder of bodies against the codecs: equal JSON, or declined."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import encode
from tests.ingest.derive.body.recordings import read_messages
from tests.ingest.derive.body.values import records
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body import encoded
from tonlake.ingest.derive.body.codec import MAX_LEVELS
from tonlake.ingest.derive.body.encoded import (
    NOTHING,
    encode_body,
    encode_by_codecs,
)
from tonlake.ingest.derive.body.native import NATIVE
from tonlake.ingest.derive.body.scheme import OPCODE_BITS, load_scheme
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")

OPCODES = sorted(load_scheme().layouts)
RECORDS = [
    (opcode, index)
    for opcode, layouts in sorted(load_scheme().layouts.items())
    for index in range(len(layouts))
]
PLENTY = settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def is_declined(bag: bytes) -> bool:
    with_wallets = True
    return NATIVE.decode(encoded._make_decoder(), bag, with_wallets) is None


def check(bag: bytes) -> None:
    for external_in in (False, True):
        reference = encode_by_codecs(bag, external_in=external_in)
        assert encode_body(bag, external_in=external_in) == reference


def test_recorded_bodies_are_decoded_natively(shared: Path) -> None:
    declined = 0
    messages = read_messages(shared)
    for message in messages:
        tree = parse_boc(b64decode(message.body))
        bag = serialize_boc(tree, tree.roots)
        check(bag)
        declined += is_declined(bag)
    assert len(messages) > 60
    assert declined < len(messages) / 20


@PLENTY
@given(
    which=st.sampled_from(RECORDS),
    data=st.data(),
    spare=st.integers(0, 9),
    cut=st.integers(0, 40) | st.just(0),
)
def test_bodies_of_all_layouts(
    *, which: tuple[int, int], data: st.DataObject, spare: int, cut: int
) -> None:
    """Bodies that follow a layout, some with a remainder, some too short."""
    opcode, index = which
    record = load_scheme().layouts[opcode][index]
    target = CellBuilder().store_uint(opcode, OPCODE_BITS)
    try:
        encode(record, data.draw(records(record)), target)
        if spare < 9:
            target.store_uint(0, spare)
        cell = target.end()
    except (BocError, NotImplementedError):
        reject()
    source = target.tree.slice(cell)
    bits = max(0, source.bits_left - cut)
    short = CellBuilder(target.tree).store_uint(source.load_uint(bits), bits)
    for child in target.tree.refs(cell):
        short.store_ref(child)
    check(serialize_boc(target.tree, [short.end()]))


@PLENTY
@given(
    opcode=st.sampled_from(OPCODES) | st.integers(0, (1 << 32) - 1),
    signed=st.booleans(),
    cells=st.lists(
        st.tuples(
            st.binary(max_size=60), st.integers(0, 7), st.lists(st.integers(0, 9), max_size=4)
        ),
        min_size=1,
        max_size=10,
    ),
)
def test_garbage(*, opcode: int, signed: bool, cells: list[tuple[bytes, int, list[int]]]) -> None:
    """Any cells after an opcode: nothing raises, nothing differs."""
    tree = CellBuilder().tree
    made: list[int] = []
    for number, (data, bits, links) in enumerate(cells):
        cell = CellBuilder(tree)
        if number == len(cells) - 1:
            cell.store_uint(0, 512 * signed).store_uint(opcode, OPCODE_BITS)
        cell.store_bytes(data).store_uint((1 << bits) - 1, bits)
        for link in links if made else ():
            cell.store_ref(made[link % len(made)])
        made.append(cell.end())
    check(serialize_boc(tree, [made[-1]]))


@PLENTY
@given(opcode=st.sampled_from(OPCODES), tail=st.binary(max_size=120), text=st.text(max_size=80))
def test_numbers_and_texts(*, opcode: int, tail: bytes, text: str) -> None:
    for rest in (tail, text.encode()[:120]):
        for first in (opcode, 0):
            cell = CellBuilder().store_uint(first, OPCODE_BITS).store_bytes(rest)
            check(serialize_boc(cell.tree, [cell.end()]))


@PLENTY
@given(
    data=st.binary(max_size=200), flips=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 255)))
)
def test_damaged_bags(data: bytes, flips: list[tuple[int, int]]) -> None:
    child = CellBuilder().store_bytes(data[:100])
    body = CellBuilder(child.tree).store_uint(0x474F86CF, 32).store_uint(1, 64)
    bag = bytearray(serialize_boc(child.tree, [body.store_maybe_ref(child.end()).end()]))
    for place, byte in flips:
        bag[place % len(bag)] = byte
    for damaged in (data, bytes(bag), bytes(bag[: len(data)])):
        check(damaged)


def test_an_invalid_bag_yields_nothing() -> None:
    assert encode_body(b"", external_in=False) == NOTHING
    assert encode_body(b"junk" * 9, external_in=True) == NOTHING


@pytest.mark.parametrize("levels", [MAX_LEVELS - 2, MAX_LEVELS + 2])
def test_deep_lists_of_actions(levels: int) -> None:
    tree = CellBuilder().tree
    out = CellBuilder(tree).end()
    for number in range(levels):
        kept = CellBuilder(tree).store_uint(number, 32).end()
        node = CellBuilder(tree).store_ref(out).store_uint(0xAD4DE08E, 32)
        out = node.store_ref(kept).end()
    body = CellBuilder(tree).store_uint(0x6578746E, 32).store_uint(1, 64)
    bag = serialize_boc(tree, [body.store_maybe_ref(out).store_bit(0).end()])
    check(bag)
    assert (encode_body(bag, external_in=False).json is None) == (levels > MAX_LEVELS)


def test_raw_cells_of_any_order() -> None:
    """Shared, equal and many cells below a raw one are written as by the node."""
    tree = CellBuilder().tree
    leaf = CellBuilder(tree).store_uint(1, 8).end()
    twin = CellBuilder(tree).store_uint(1, 8).end()
    for kids in ((leaf, leaf), (leaf, twin), tuple(chain(tree, 60))):
        payload = CellBuilder(tree).store_uint(7, 3)
        for kid in kids:
            payload.store_ref(kid)
        forward = CellBuilder(tree).store_uint(0x474F86CF, 32).store_uint(0, 64)
        bag = serialize_boc(tree, [forward.store_maybe_ref(payload.end()).end()])
        assert not is_declined(bag)
        check(bag)


@PLENTY
@given(
    links=st.lists(st.lists(st.integers(1, 40), max_size=4), min_size=1, max_size=400),
    kinds=st.integers(1, 400),
    is_rest=st.booleans(),
)
def test_raw_cells_of_any_shape(*, links: list[list[int]], kinds: int, is_rest: bool) -> None:
    tree = CellBuilder().tree
    made: list[int] = []
    for number, back in enumerate(links):
        cell = CellBuilder(tree).store_uint(number % kinds, 11)
        for kid in {max(0, len(made) - step) for step in back} if made else ():
            cell.store_ref(made[kid])
        made.append(cell.end())
    body = CellBuilder(tree).store_uint(0xFFFFFFFF if is_rest else 0x474F86CF, 32)
    body.store_uint(1, 64)
    if is_rest:
        body.store_ref(made[-1])
    else:
        body.store_maybe_ref(made[-1])
    check(serialize_boc(tree, [body.end()]))


def chain(tree: object, length: int) -> list[int]:
    """Build a chain of different cells; return its first."""
    cell: int | None = None
    for number in range(length):
        made = CellBuilder(tree).store_uint(number, 16)  # type: ignore[arg-type]
        if cell is not None:
            made.store_ref(cell)
        cell = made.end()
    return [] if cell is None else [cell]


def test_numbers_of_any_width_and_sign() -> None:
    for bits in (256, 257, 1, 8, 64, 65, 160):
        for number in {0, 1, (1 << bits) - 1, 1 << (bits - 1), (1 << bits) // 3}:
            cell = CellBuilder().store_uint(0x6E24728D, 32).store_uint(number, bits)
            check(serialize_boc(cell.tree, [cell.end()]))
    shown = CellBuilder().store_uint(0x1596920C, 32).store_int(-(1 << 63), 64)
    bag = serialize_boc(shown.tree, [shown.end()])
    check(bag)
    text = encode_body(bag, external_in=False).json
    assert text is not None
    assert json.loads(text)["query_id"] == str(-(1 << 63))

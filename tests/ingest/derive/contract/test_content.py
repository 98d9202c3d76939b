"""Token content: every written form is read back, and garbage is never an error."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.derive.body.encode import store_snake
from tests.ingest.derive.contract.content import build_content, store_chunks, store_snake_value
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.standard import (
    CHUNKED,
    KEYS,
    MAX_CELLS,
    OFF_CHAIN,
    read_content,
)

TEXTS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=300)


@given(values=st.dictionaries(st.sampled_from(KEYS), TEXTS), chunk_bytes=st.integers(0, 130))
def test_content_on_the_chain(values: dict[str, str], chunk_bytes: int) -> None:
    tree = CellTree()
    cells = {}
    for name, text in values.items():
        builder = CellBuilder(tree)
        if chunk_bytes:
            store_chunks(builder, text.encode(), chunk_bytes)
        else:
            store_snake_value(builder, text.encode())
        cells[name] = builder.end()
    expected = {
        name: base64.b64encode(text.encode()).decode() if name == "image_data" else text
        for name, text in values.items()
    }
    read = read_content(tree, build_content(tree, cells))
    assert read == expected
    assert list(read or ()) == [name for name in KEYS if name in values]


@given(uri=TEXTS)
def test_content_off_the_chain(uri: str) -> None:
    builder = CellBuilder().store_uint(OFF_CHAIN, 8)
    store_snake(uri.encode(), builder)
    assert read_content(builder.tree, builder.end()) == {"uri": uri}


def test_values_that_follow_no_layout_are_left_out() -> None:
    tree = CellTree()
    good, bad = CellBuilder(tree), CellBuilder(tree).store_uint(2, 8)
    store_snake_value(good, b"a\0b")
    no_text = CellBuilder(tree).store_uint(0, 8).store_uint(0xFF, 8)
    cells = {"name": good.end(), "symbol": bad.end(), "image": no_text.end()}
    others = {"colour": CellBuilder(tree).store_uint(0, 8).end()}
    assert read_content(tree, build_content(tree, cells | others)) == {"name": "ab"}


@given(bits=st.integers(0, 200), value=st.integers(0, 2**200 - 1), refs=st.integers(0, 4))
def test_garbage_yields_nothing_or_text(bits: int, value: int, refs: int) -> None:
    builder = CellBuilder().store_uint(value & ((1 << bits) - 1), bits)
    for number in range(refs):
        builder.store_ref(CellBuilder(builder.tree).store_uint(number, 8).end())
    read = read_content(builder.tree, builder.end())
    assert read is None or set(read) <= set(KEYS)


def test_a_chain_of_text_that_never_ends_is_rejected() -> None:
    """The cells of a value are limited; here a few cells represent more than that."""
    builder = CellBuilder().store_uint(0, 8)
    for _ in range(1000):
        builder = CellBuilder(builder.tree).store_ref(builder.end())
    top = CellBuilder(builder.tree).store_uint(OFF_CHAIN, 8).store_ref(builder.end()).end()
    assert read_content(builder.tree, top) == {"uri": ""}


def test_chunks_represented_by_a_few_cells_are_rejected() -> None:
    tree = CellTree()
    text = CellBuilder(tree).store_bytes(b"a").end()
    for _ in range(MAX_CELLS // 256):
        text = CellBuilder(tree).store_bytes(b"a").store_ref(text).end()
    node = CellBuilder(tree).store_uint(0, 2).store_ref(text).end()
    for _ in range(7):
        node = CellBuilder(tree).store_uint(0, 2).store_ref(node).store_ref(node).end()
    # 256 chunks of equal text: keys of 32 bits, of which the first 24 are 0.
    root = CellBuilder(tree).store_uint(0b110, 3).store_uint(24, 6).store_ref(node).store_ref(node)
    chunks = CellBuilder(tree).store_uint(CHUNKED, 8).store_bit(1).store_ref(root.end()).end()
    few = CellBuilder(tree)
    store_chunks(few, b"good", 2)
    cells = {"name": chunks, "symbol": few.end()}
    assert read_content(tree, build_content(tree, cells)) == {"symbol": "good"}

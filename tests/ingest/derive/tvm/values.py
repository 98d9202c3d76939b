"""Randomly drawn stack values, and their normal form."""

from typing import Any

from hypothesis import strategies as st

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.call import TvmBuilder, TvmCell, TvmSlice

LOW, HIGH = -(1 << 256), (1 << 256) - 1
INTEGERS = st.integers(LOW, HIGH) | st.sampled_from([LOW, HIGH, 0, -1, 1 << 63, 1 << 64])


@st.composite
def bags(draw: st.DrawFn) -> bytes:
    """Draw a cell over up to four others, as a canonical bag with checksum."""
    builder = CellBuilder()
    sizes = draw(st.lists(st.integers(0, 1023), max_size=4))
    kids = [_store(draw, CellBuilder(builder.tree), size).end() for size in sizes]
    _store(draw, builder, draw(st.integers(0, 1023)))
    for kid in kids:
        builder.store_ref(kid)
    return serialize_boc(builder.tree, [builder.end()], crc32c=True)


def _store(draw: st.DrawFn, builder: CellBuilder, bits: int) -> CellBuilder:
    return builder.store_uint(draw(st.integers(0, (1 << bits) - 1)), bits)


def _nest(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=5).map(tuple) | st.lists(inner, min_size=1, max_size=5)
        ),
        max_leaves=12,
    )


WRITTEN = st.none() | INTEGERS | bags().map(TvmCell) | bags().map(TvmSlice)
SHOWN = _nest(WRITTEN)
"""Values that have a written form: all but those with a builder."""

VALUES = _nest(WRITTEN | bags().map(TvmBuilder))


def normalize(value: Any) -> Any:
    """Return a value as it is read: a pair that ends in null, or in a list, is itself a list."""
    if isinstance(value, list):
        return [normalize(item) for item in value]
    if not isinstance(value, tuple):
        return value
    items = tuple(normalize(item) for item in value)
    if len(items) == 2 and (items[1] is None or isinstance(items[1], list)):
        return [items[0], *(items[1] or ())]
    return items

"""Values of the TVM's stack as cells. TL-B: VmStackValue, VmTuple.

vm_stk_null#00, vm_stk_tinyint#01 value:int64, vm_stk_int#0201_ value:int257, vm_stk_cell#03,
vm_stk_slice#04 cell:^Cell st_bits:(## 10) end_bits:(## 10) st_ref:(#<= 4) end_ref:(#<= 4),
vm_stk_tuple#07 len:(## 16) data:(VmTuple len); a list is the pairs that it stands for.
"""

from __future__ import annotations

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder, graft
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.tvm.stack import INTEGER_BITS, StackValue, TvmCell, TvmSlice

_TINY_BITS = 64


def serialize_value(value: StackValue) -> bytes:
    """Return a value of the stack as bag: VmStackValue.

    Raises:
        TypeError: it has no form outside of the machine that is needed here.
    """
    tree = CellTree()
    return serialize_boc(tree, [_append_value(tree, value)])


def _append_value(tree: CellTree, value: StackValue) -> int:
    builder = CellBuilder(tree)
    if value is None:
        return builder.store_uint(0, 8).end()
    if isinstance(value, int):
        if -(1 << _TINY_BITS - 1) <= value < 1 << _TINY_BITS - 1:
            return builder.store_uint(1, 8).store_int(value, _TINY_BITS).end()
        return builder.store_uint(0x0200 >> 1, 15).store_int(value, INTEGER_BITS).end()
    if isinstance(value, tuple):
        return _append_tuple(tree, value)
    if isinstance(value, list):
        pairs: StackValue = None
        for item in reversed(value):
            pairs = (item, pairs)
        return _append_value(tree, pairs)
    return _append_cell(tree, value)


def _append_cell(tree: CellTree, value: StackValue) -> int:
    """Append a cell or a slice."""
    builder = CellBuilder(tree)
    if isinstance(value, TvmCell):
        return builder.store_uint(3, 8).store_ref(graft(tree, parse_boc(value.boc))).end()
    if isinstance(value, TvmSlice):
        cell = graft(tree, parse_boc(value.boc))
        builder.store_uint(4, 8).store_uint(0, 10).store_uint(tree.bit_length(cell), 10)
        builder.store_uint(0, 3).store_uint(len(tree.refs(cell)), 3)
        return builder.store_ref(cell).end()
    raise TypeError(f"{type(value).__name__} is not written as a cell here")


def _append_tuple(tree: CellTree, items: tuple[StackValue, ...]) -> int:
    """Append a tuple: its last item, and a reference to those before it."""
    builder = CellBuilder(tree).store_uint(7, 8).store_uint(len(items), 16)
    values = [_append_value(tree, item) for item in items]
    for kid in _chain(tree, values):
        builder.store_ref(kid)
    return builder.end()


def _chain(tree: CellTree, values: list[int]) -> list[int]:
    """Return the references of VmTuple: head (VmTupleRef), then tail."""
    head: list[int] = []
    for place, value in enumerate(values):
        if place > 1:  # vm_tupref_any: the tuple so far in a cell of its own
            builder = CellBuilder(tree)
            for kid in head:
                builder.store_ref(kid)
            head = [builder.end()]
        head = [*head, value]
    return head

"""Writes TL-B hash maps with every form of label, unlike a node's shortest one."""

from collections.abc import Callable, Mapping

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree


def store_hashmap(
    builder: CellBuilder, entries: Mapping[int, Callable[[CellBuilder], object]], key_bits: int
) -> None:
    """Store ``Hashmap n X`` inline; the values store themselves behind their labels."""
    keys = sorted(entries)
    length = key_bits - (keys[0] ^ keys[-1]).bit_length()
    _store_label(builder, keys[0] >> (key_bits - length), length, key_bits)
    if length == key_bits:
        entries[keys[0]](builder)
        return
    left = key_bits - length - 1
    for bit in (0, 1):
        half = {
            key & ((1 << left) - 1): fill for key, fill in entries.items() if key >> left & 1 == bit
        }
        builder.store_ref(build_hashmap(builder.tree, half, left))


def build_hashmap(
    tree: CellTree, entries: Mapping[int, Callable[[CellBuilder], object]], key_bits: int
) -> int:
    """Return the root cell of a non-empty ``Hashmap n X``."""
    builder = CellBuilder(tree)
    store_hashmap(builder, entries, key_bits)
    return builder.end()


def build_currencies(tree: CellTree, amounts: Mapping[int, int]) -> int:
    """Return the root cell of non-empty ``HashmapE 32 (VarUInteger 32)``: extra currencies."""
    entries = {
        key: lambda to, amount=amount: to.store_var_uint(amount, 5)
        for key, amount in amounts.items()
    }
    return build_hashmap(tree, entries, 32)


def _store_label(builder: CellBuilder, label: int, length: int, left: int) -> None:
    """Store HmLabel: hml_same for equal bits, hml_short up to 3 bits, hml_long above."""
    if length and label in (0, (1 << length) - 1):
        builder.store_uint(0b11, 2).store_bit(label & 1)
        builder.store_uint(length, left.bit_length())
    elif length <= 3:
        builder.store_uint((1 << length + 1) - 2, length + 2).store_uint(label, length)
    else:
        builder.store_uint(0b10, 2).store_uint(length, left.bit_length())
        builder.store_uint(label, length)

"""Checks whether the cells of a transaction follow from its rows, and rebuilds them from the rows.

The recipe of a transaction has a byte of flags for each of its messages, the in message first, with
facts that are not in the message rows: 1 the StateInit is in a reference, 2 the body is, 4 there is
an external address. The external addresses follow: each is its number of bits in two bytes, then
these bits, right-aligned in as many bytes as they need. A recipe exists only if every cell, encoded
from the rows (module ``encode``), equals the original bit by bit; otherwise the row has the bag of
cells.
"""

from __future__ import annotations

from functools import cache, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.ingest.decode.block.encode import (
    NAMED,
    Bits,
    encode_description,
    encode_info,
    encode_root,
    join_bits,
)
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import append_cell, graft, pack_head
from tonlake.ingest.decode.cell.dictionary import build_hashmap
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.decode.native import rebuild_bag
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.schema import MESSAGES, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_INIT_IN_REF, _BODY_IN_REF, _EXTERNAL_ADDRESS = 1, 2, 4

OUT_KEY_BITS = 15
_EXOTIC_BIT = 8
_FORK_REFS = 2
_HASH_UPDATE_TAG = b"\x72"
_DAMAGE = (BocError, ValueError, TypeError, KeyError, OverflowError, AttributeError)
"""Errors caused by values that no valid row has."""


class Layout(NamedTuple):
    """The facts of a message cell that are not in its row; ``external`` is an addr_extern."""

    init_in_ref: int
    body_in_ref: int
    external: Bits | None


def _slice_names(names: tuple[str, ...], first: str, last: str) -> tuple[str, ...]:
    return names[names.index(first) : names.index(last) + 1]


_ROOT = (
    *("account", "lt", "prev_trans_hash", "prev_trans_lt", "now"),
    *("orig_status", "end_status", "outmsg_cnt", "total_fees"),
)
_DESCRIPTION = _slice_names(TRANSACTIONS.names, "descr", "split_info_sibling_addr")
_CREDIT_EXTRA = _DESCRIPTION.index("credit_extra_currencies")
_INFO = _slice_names(MESSAGES.names, "kind", "import_fee")


def write_recipe(layouts: Sequence[Layout | None]) -> bytes | None:
    """Return the recipe for messages with these layouts; None if a message has no layout."""
    known = [layout for layout in layouts if layout is not None]
    if len(known) < len(layouts):
        return None
    flags = bytes(
        [
            init_in_ref * _INIT_IN_REF
            | body_in_ref * _BODY_IN_REF
            | (external is not None) * _EXTERNAL_ADDRESS
            for init_in_ref, body_in_ref, external in known
        ]
    )
    externals = [external for _, _, external in known if external is not None]
    if not externals:
        return flags
    return flags + b"".join(
        bits.to_bytes(2, "big") + value.to_bytes((bits + 7) // 8, "big")
        for value, bits in externals
    )


def read_recipe(recipe: bytes, count: int) -> list[Layout]:
    """Return the layouts of ``count`` messages.

    Raises:
        DecodeError: the recipe belongs to another number of messages.
    """
    layouts = []
    at = count
    for flags in recipe[:count]:
        external = None
        if flags & _EXTERNAL_ADDRESS:
            bits = int.from_bytes(recipe[at : at + 2], "big")
            start, at = at + 2, at + 2 + (bits + 7) // 8
            external = int.from_bytes(recipe[start:at], "big"), bits
        layouts.append(Layout(flags & _INIT_IN_REF, flags & _BODY_IN_REF, external))
    if at != len(recipe):
        raise DecodeError(f"its recipe is not for {count} messages")
    return layouts


def is_root_usual(tree: CellTree, cell: int, columns: Sequence[Any]) -> bool:
    """Return whether the root cell of a transaction can be encoded from its columns.

    ``columns`` are those of ``encode_root``.
    """
    return tree.cells[cell] == encode_root(columns)


def is_description_usual(tree: CellTree, cell: int, columns: Sequence[Any]) -> bool:
    """Return whether a description and its phases can be encoded from their columns."""
    if columns[0] not in NAMED or columns[_CREDIT_EXTRA] is not None:
        return False
    cells = [tree.cells[each] for each in (cell, *tree.links[cell])]
    return cells == encode_description(columns)


def list_usual_messages(tree: CellTree, cell: int, out_count: int) -> list[int] | None:
    """Return the messages, the in message first; None if the cells above them are unusual."""
    cells, links = tree.cells, tree.links
    children = links[cell]
    has_out = out_count > 0
    has_in = len(children) - has_out
    if has_in not in (0, 1) or cells[cell] != _encode_holder(has_in, int(has_out)):
        return None
    found = list(children[:has_in])
    todo = [children[-1]] if has_out else []
    for head in _list_map_heads(out_count):
        node = todo.pop()
        if cells[node] != head:
            return None
        if head[0] == _FORK_REFS:
            todo += links[node][::-1]
        else:
            found.append(links[node][0])
    return found


@cache
def _encode_holder(has_in: int, has_out: int) -> bytes:
    """Return the head of ``^[in_msg:(Maybe ^Message) out_msgs:(HashmapE 15 ^Message)]``."""
    return pack_head(has_in + has_out, has_in << 1 | has_out, 2)


@lru_cache(maxsize=256)
def _list_map_heads(count: int) -> tuple[bytes, ...]:
    """Return the heads of ``HashmapE 15 ^Message`` with ``count`` entries, parents first.

    A leaf has one reference, its message, which is left out; a fork has two.
    """
    if not count:
        return ()
    tree = CellTree()
    empty = append_cell(tree, 0, 0, ())
    todo = [build_hashmap(tree, [(key, empty) for key in range(count)], OUT_KEY_BITS)]
    heads = []
    while todo:
        node = todo.pop()
        heads.append(tree.cells[node])
        if heads[-1][0] == _FORK_REFS:
            todo += tree.links[node][::-1]
    return tuple(heads)


def rebuild_transaction(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the bag of a transaction's cells, rebuilt from its row and its message rows.

    All columns are required, with ``recipe`` not NULL; messages may be in any order.

    Raises:
        DecodeError: the rows do not yield a transaction with the row's hash.
    """
    try:
        placed = sorted(messages, key=itemgetter("direction", "msg_index"))
        bag = rebuild_bag(row, placed)
        if bag is not None:
            return bag
        tree, root = _rebuild(row, placed)
        found = tree.hash(root)
    except _DAMAGE as error:
        raise DecodeError(
            f"transaction {row['hash'].hex()}: its rows are damaged: {error}"
        ) from error
    if found != row["hash"]:
        raise DecodeError(
            f"transaction {row['hash'].hex()}: its rows yield {found.hex()} instead; "
            "tonlake verify finds damaged files"
        )
    return serialize_boc(tree, (root,))


def restore_bags(rows: Iterable[dict[str, Any]], messages: Iterable[Mapping[str, Any]]) -> None:
    """Fill in ``boc`` of each row of ``transactions`` that has a recipe instead.

    Raises:
        DecodeError: rows do not yield their transaction.
    """
    by_transaction: dict[bytes, list[Mapping[str, Any]]] = {}
    for message in messages:
        by_transaction.setdefault(message["tx_hash"], []).append(message)
    for row in rows:
        if row["recipe"] is not None:
            row["boc"] = rebuild_transaction(row, by_transaction.get(row["hash"], []))


def _rebuild(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> tuple[CellTree, int]:
    layouts = read_recipe(row["recipe"], len(messages))
    tree = CellTree()
    cells = [
        _rebuild_message(tree, message, layout)
        for message, layout in zip(messages, layouts, strict=True)
    ]
    outs = list(enumerate(cells[len(cells) - row["outmsg_cnt"] :])) if row["outmsg_cnt"] else []
    children = cells[: len(cells) - len(outs)]
    if outs:
        children = [*children, build_hashmap(tree, outs, OUT_KEY_BITS)]
    holder = tree.append(_encode_holder(len(children) - bool(outs), bool(outs)), tuple(children))
    states = row["account_state_hash_before"] + row["account_state_hash_after"]
    update = tree.append(b"\x00\x82" + _HASH_UPDATE_TAG + states)
    described, *phases = encode_description([row[name] for name in _DESCRIPTION])
    below = tuple(tree.append(phase) for phase in phases)
    head = encode_root([row[name] for name in _ROOT])
    return tree, tree.append(head, (holder, update, tree.append(described, below)))


def _rebuild_message(tree: CellTree, message: Mapping[str, Any], layout: Layout) -> int:
    info = encode_info([message[name] for name in _INFO], layout.external)
    if info is None:
        raise DecodeError("a message does not follow from its row")
    parts = [info]
    children: list[int] = []
    if message["init_state"] is None:
        parts.append((0, 1))
    else:
        parts.append((1, 1))
        parts += _place_content(tree, message["init_state"], layout.init_in_ref, children)
    parts += _place_content(tree, message["body"], layout.body_in_ref, children)
    return append_cell(tree, *join_bits(*parts), tuple(children))


def _place_content(tree: CellTree, boc: bytes, in_ref: int, children: list[int]) -> list[Bits]:
    """Return the bits of ``Either X ^X``; references are added to ``children``."""
    cell = graft(tree, parse_boc(boc))
    if in_ref:
        children.append(cell)
        return [(1, 1)]
    children += tree.links[cell]
    return [(0, 1), tree.bits(cell)]

"""Checks hashes of the data set's bags of cells, and turns them into rows.

A hash that differs from that of the cells means that the row cannot be trusted.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from tonlake.ingest.decode.block.config import read_params
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import pack_head
from tonlake.ingest.decode.cell.record import pack_cell
from tonlake.ingest.decode.native import hash_root
from tonlake.ingest.errors import BocError, DecodeError
from tonlake.lake.account import MASTERCHAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tonlake.ingest.decode.cell.tree import CellTree
    from tonlake.ingest.decode.rows import Row

CONFIG_ACCOUNT = (MASTERCHAIN, bytes([0x55]) * 32)
"""The configuration contract of every network."""

_HASHED = (("body_hash", "body"), ("init_state_hash", "init_state"))


def check_messages(rows: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return what is wrong with messages by masterchain block: the first of each.

    ``rows`` have hashes and bags of bodies and StateInits, ``msg_hash`` and ``mc_seqno``.
    """
    found: dict[int, str] = {}
    for row in rows:
        for hash_name, name in _HASHED:
            flaw = None if row[name] is None else _find_flaw(row[name], row[hash_name])
            if flaw is not None and row["mc_seqno"] not in found:
                what = f"message {row['msg_hash'].hex()}: its {name}"
                found[row["mc_seqno"]] = f"{what} {flaw}"
    return found


def _find_flaw(bag: bytes, expected: bytes | None) -> str | None:
    """Return how a bag differs from the hash of its root."""
    found = hash_root(bag)
    if found is None:
        try:
            tree = parse_boc(bag)
            found = tree.hash(tree.roots[0])
        except BocError as error:
            return f"is not a bag of cells ({error})"
    return None if found == expected else f"has the hash {found.hex()}, not that of its row"


class StateReader:
    """Collects the cells of code and data; what was collected before is not parsed again."""

    def __init__(self) -> None:
        """Start without cells."""
        self._roots: set[bytes] = set()

    def read(self, row: Mapping[str, Any]) -> list[Row]:
        """Return the rows of ``state_cells`` of an account state.

        Raises:
            DecodeError: a bag is not one, or has another hash than the row.
        """
        found: list[Row] = []
        for name in ("code", "data"):
            expected, bag = row[f"{name}_hash"], row[f"{name}_boc"]
            if bag is not None and expected not in self._roots:
                tree = _parse(bag, expected, f"account {row['account'].hex()}: its {name}")
                found += _list_cells(tree, row["mc_seqno"])
                self._roots.add(expected)
        return found


def list_params(
    states: Iterable[Mapping[str, Any]], key_blocks: Collection[int], *, is_known: bool
) -> list[Row]:
    """Return rows of ``config_params``: of key blocks, the zero state and, unless known, the first.

    The configuration is the first reference of the configuration contract's data. Its states are
    in order of masterchain blocks, and their bags are verified.
    """
    found: list[Row] = []
    for row in states:
        if (row["workchain"], row["account"]) != CONFIG_ACCOUNT or row["data_boc"] is None:
            continue
        mc_seqno = row["mc_seqno"]
        if not mc_seqno or mc_seqno in key_blocks or not (is_known or found):
            tree = parse_boc(row["data_boc"])
            root = tree.refs(tree.roots[0])[0]
            found += read_params(tree, root, mc_seqno, row["utime"])
    return found


def _parse(bag: bytes, expected: bytes, what: str) -> CellTree:
    try:
        tree = parse_boc(bag)
    except BocError as error:
        raise DecodeError(f"{what} is not a bag of cells ({error})") from error
    found = tree.hash(tree.roots[0])
    if found != expected:
        raise DecodeError(f"{what} has the hash {found.hex()}, not that of its row")
    return tree


def _list_cells(tree: CellTree, mc_seqno: int) -> list[Row]:
    tree.hash_all(range(tree.count))
    return [(tree.hash(cell), mc_seqno, *pack_cell(tree, cell)) for cell in range(tree.count)]


def normalize(workchain: int, account: bytes, body: bytes) -> bytes:
    """Return the hash of an external message to an account in its normal form (TEP-467).

    ext_in_msg_info$10, src addr_none$00, import_fee 0, no init, body in a reference.
    """
    tree = parse_boc(body)
    root = tree.roots[0]
    # addr_std$10 without anycast: 100, workchain, account; then import_fee, init and body.
    address = (0b100 << 8 | workchain & 0xFF) << 256 | int.from_bytes(account, "big")
    head = pack_head(1, (0b1000 << 267 | address) << 6 | 1, 4 + 267 + 6)
    return sha256(head + tree.depth(root).to_bytes(2, "big") + tree.hash(root)).digest()


def normalize_all(rows: Iterable[Mapping[str, Any]], flaws: Collection[int]) -> list[bytes | None]:
    """Return the hash of the normal form of each external-in message; None for all others.

    Messages of masterchain blocks with ``flaws`` are left out, as their bodies may be none.
    """
    return [
        normalize(row["destination_workchain"], row["destination"], row["body"])
        if row["kind"] == "ext_in" and row["body"] is not None and row["mc_seqno"] not in flaws
        else None
        for row in rows
    ]

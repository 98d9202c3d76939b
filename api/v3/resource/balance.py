"""What transactions did to balances: of TON by their messages and fees, of jettons by bodies."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from tonlake.api.text.address import Address, render_raw
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.errors import BocError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tonlake.ingest.decode.cell.slice import CellSlice

Row = dict[str, Any]

INTERNAL_TRANSFER, TRANSFER, BURN = 0x178D4519, 0x0F8A7EA5, 0x595F07BC
BURN_NOTIFICATION = 0x7BDD97DE
_BOUNCED = 0xFFFFFFFF
_OPCODE_BITS, _QUERY_BITS = 32, 64
_SIGNS = {INTERNAL_TRANSFER: 1, TRANSFER: -1, BURN: -1}
_RETURNED = {INTERNAL_TRANSFER, BURN_NOTIFICATION}
"""Messages that a wallet sends when jettons leave it; when one comes back they do, too."""


class JettonWalletOwner(NamedTuple):
    """Whose jettons of what kind a wallet holds, as raw addresses."""

    owner: str
    jetton: str


class Balances(NamedTuple):
    """Changes in nanoton, fees among them, and changes of jettons by owner and master."""

    changes: dict[str, int]
    fees: dict[str, int]
    jettons: dict[str, dict[str, int]]


def sum_balances(
    transactions: Iterable[Row],
    messages: Mapping[bytes, Sequence[Row]],
    wallets: Mapping[Address, JettonWalletOwner],
) -> Balances:
    """Return what transactions did to the balances of their accounts.

    ``changes`` is the balance after minus that before, so fees are in it. ``fees`` is what went to
    validators: the fees of the transaction, and those in front of the messages it sent.

    Args:
        transactions: Rows of ``transactions``.
        messages: Their rows of ``messages`` by transaction hash.
        wallets: The jetton wallets among their accounts.
    """
    changes: dict[str, int] = defaultdict(int)
    fees: dict[str, int] = defaultdict(int)
    jettons: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in transactions:
        account = render_raw(row["workchain"], row["account"])
        own = messages[row["hash"]]
        paid = row["total_fees"] + _sum(own, "out", "fwd_fee") + _sum(own, "out", "ihr_fee")
        received = _sum(own, "in", "value") + _sum(own, "in", "ihr_fee")
        fees[account] += paid
        changes[account] += received - _sum(own, "out", "value") - paid
        wallet = wallets.get(Address(row["workchain"], row["account"]))
        if wallet is not None and not row["aborted"]:
            jettons[wallet.owner][wallet.jetton] += sum(map(read_jettons, own))
    moved = {
        owner: {jetton: amount for jetton, amount in held.items() if amount}
        for owner, held in jettons.items()
    }
    kept = {owner: held for owner, held in moved.items() if held}
    return Balances(dict(changes), dict(fees), kept)


def read_jettons(message: Row) -> int:
    """Return by how much a message that a jetton wallet consumed changes what it holds (TEP-74)."""
    if message["direction"] != "in" or message["body"] is None or message["kind"] != "int":
        return 0
    try:
        tree = parse_boc(message["body"])
        source = tree.slice(tree.roots[0])
        return _read_amount(source)
    except BocError:
        return 0


def _read_amount(source: CellSlice) -> int:
    opcode = source.load_uint(_OPCODE_BITS)
    sign = _SIGNS.get(opcode, 0)
    if opcode == _BOUNCED:
        sign = 1 if source.load_uint(_OPCODE_BITS) in _RETURNED else 0
    if not sign:
        return 0
    source.skip(_QUERY_BITS)
    return sign * source.load_coins()


def _sum(messages: Sequence[Row], direction: str, column: str) -> int:
    return sum(row[column] or 0 for row in messages if row["direction"] == direction)

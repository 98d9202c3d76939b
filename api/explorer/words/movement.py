"""Computes the signed amounts that an action moved to or from an account."""

from typing import Any, NamedTuple

import msgspec

from tonlake.api.explorer.words.form import write_count, write_units
from tonlake.api.explorer.words.names import Names
from tonlake.api.v3.resource.action import Action

IN, OUT, BOTH, NEITHER = "in", "out", "both", "neither"
DIRECTIONS = {IN: "received", OUT: "sent", BOTH: "both", NEITHER: "neither"}
"""Directions of an action as seen from an account, with their labels on pages."""

TON, NFT, EXTRA_CURRENCY = "TON", "NFT", "extra currency"
"""Assets other than jettons; a jetton is identified by the raw address of its master."""


class Move(NamedTuple):
    """Fields of an action's details with sender, receiver, amount and asset of a transfer.

    ``asset`` is TON, NFT (``amount`` is the item), an extra currency (``amount`` maps ids to
    amounts), or the field with a jetton's address, where None means TON.
    """

    giver: str | None
    taker: str | None
    amount: str
    asset: str = TON


_SENT = (Move("source", "destination", "value"),)
_LIQUIDITY = (("amount_1", "asset_1"), ("amount_2", "asset_2"))

MOVES: dict[str, tuple[Move, ...]] = {
    "ton_transfer": _SENT,
    "call_contract": _SENT,
    "contract_deploy": _SENT,
    "extra_currency_transfer": (
        *_SENT,
        Move("source", "destination", "value_extra_currencies", EXTRA_CURRENCY),
    ),
    "jetton_transfer": (Move("sender", "receiver", "amount", "asset"),),
    "jetton_mint": (Move(None, "receiver", "amount", "asset"),),
    "jetton_burn": (Move("owner", None, "amount", "asset"),),
    "jetton_swap": (
        Move("sender", None, "dex_incoming_transfer.amount", "dex_incoming_transfer.asset"),
        Move(None, "sender", "dex_outgoing_transfer.amount", "dex_outgoing_transfer.asset"),
    ),
    "nft_mint": (Move(None, "owner", "nft_item", NFT),),
    "nft_transfer": (Move("old_owner", "new_owner", "nft_item", NFT),),
    "nft_purchase": (
        Move("new_owner", "real_old_owner", "price"),
        Move("real_old_owner", "new_owner", "nft_item", NFT),
    ),
    "dns_purchase": (Move("new_owner", None, "price"), Move(None, "new_owner", "nft_item", NFT)),
    "auction_bid": (Move("bidder", "auction", "amount"),),
    "auction_outbid": (Move("auction_address", "bidder", "amount"),),
    "election_deposit": (Move("stake_holder", None, "amount"),),
    "election_recover": (Move(None, "stake_holder", "amount"),),
    "stake_deposit": (Move("stake_holder", None, "amount", "source_asset"),),
    "subscribe": (Move("subscriber", None, "amount"),),
    "vesting_send_message": (Move("vesting", "destination", "amount"),),
    "dex_deposit_liquidity": tuple(Move("source", None, *each) for each in _LIQUIDITY),
    "dex_withdraw_liquidity": tuple(Move(None, "source", *each) for each in _LIQUIDITY),
}
"""Transfers by action type; other types have neither direction nor amount."""

_MESSAGES = ("ton_transfer", "call_contract")
REPEATED_BY: dict[str, tuple[str, ...]] = {
    "contract_deploy": _MESSAGES,
    "vesting_send_message": (*_MESSAGES, "contract_deploy"),
}
"""Types that show the amount of a message, and the types of actions that may show it, too."""


class Movement(msgspec.Struct, frozen=True):
    """One asset that an account received or sent; ``amount`` in smallest units, None if unknown."""

    gained: bool
    asset: str
    amount: int | None
    item: str | None
    """The NFT item; None for assets with an amount."""

    other: str | None
    """The other party, if the action names one."""


def list_movements(action: Action, account: str) -> list[Movement]:
    """Return the movements of a successful action from or to an account; [] if it failed.

    Args:
        action: The action.
        account: The raw address of the account.
    """
    found: list[Movement] = []
    for move in MOVES.get(action.type, ()) if action.success else ():
        giver, taker = (_read(action.details, name) for name in (move.giver, move.taker))
        if giver == taker:
            continue  # the asset does not move
        if giver == account:
            found += _measure(action.details, move, taker, gained=False)
        if taker == account:
            found += _measure(action.details, move, giver, gained=True)
    return found


def is_repeated(action: Action, other: Action, account: str) -> bool:
    """Return whether another action shows the same amount of the same message.

    An action of a vesting contract includes the transaction that sends the message; a deployment
    includes only the transactions of its message.
    """
    if other.type not in REPEATED_BY.get(action.type, ()):
        return False
    if action.trace_id != other.trace_id:
        return False
    own, others = set(action.transactions), set(other.transactions)
    is_same = own == others if action.type == "contract_deploy" else not own.isdisjoint(others)
    return is_same and list_movements(action, account) == list_movements(other, account)


def name_direction(movements: list[Movement]) -> str:
    """Return whether an account received, sent, did both or neither."""
    signs = {movement.gained for movement in movements}
    if len(signs) == 2:  # noqa: PLR2004 - received and sent
        return BOTH
    return NEITHER if not signs else IN if True in signs else OUT


def write_amount(movement: Movement, names: Names) -> tuple[str, str]:
    """Return the signed amount in units, and the name of the asset."""
    sign = "+" if movement.gained else "-"
    if movement.item is not None:
        return f"{sign}1", f"NFT {names.label(movement.item)}"
    if movement.asset.startswith(EXTRA_CURRENCY):
        return sign + write_count(movement.amount or 0), f"of {movement.asset}"
    jetton = None if movement.asset == TON else movement.asset
    if movement.amount is None:
        return f"{sign}?", names.unit(jetton)
    return sign + write_units(movement.amount, names.digits(jetton)), names.unit(jetton)


def _measure(
    details: dict[str, Any], move: Move, other: str | None, *, gained: bool
) -> list[Movement]:
    if move.asset == EXTRA_CURRENCY:
        amounts: dict[str, Any] = details.get(move.amount) or {}
        return [
            Movement(gained, f"{EXTRA_CURRENCY} {name}", int(amount), None, other)
            for name, amount in amounts.items()
        ]
    value = _read(details, move.amount)
    if move.asset == NFT:
        return [] if value is None else [Movement(gained, NFT, None, value, other)]
    known = value is not None and value.isdecimal()
    if value is None and ("." in move.amount or (other is None and move.amount == "value")):
        return []  # the whole object is missing, or the message is external
    asset = TON if move.asset == TON else _read(details, move.asset) or TON
    return [Movement(gained, asset, int(value or 0) if known else None, None, other)]


def find_field(details: dict[str, Any], path: str) -> object:
    """Return the value at a dotted path; None if any part is missing."""
    found: Any = details
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _read(details: dict[str, Any], path: str | None) -> str | None:
    found = find_field(details, path) if path else None
    return None if found is None else str(found)

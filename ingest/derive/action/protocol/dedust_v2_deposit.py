"""DeDust v2: liquidity that comes side by side into a deposit contract, and then into its pool.

A carrier brings a side to the pool, which credits it to the deposit contract (dc5ddba1); with the
second one that contract joins both to the pool (25251ee0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.block import Block
from tonlake.ingest.derive.action.pattern import built, call, one_of
from tonlake.ingest.derive.action.protocol.dedust_v2 import DEX, PAYOUT, carrier, read_order
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER
from tonlake.ingest.derive.action.protocol.swap import read_incoming
from tonlake.ingest.derive.action.rule import Draft, Rule
from tonlake.ingest.errors import ActionUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.ingest.derive.action.block import Columns
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match, Pattern

DEPOSIT, CREDIT, JOIN = 0xC9A015DA, 0xDC5DDBA1, 0x25251EE0
DEPOSIT_LOG, CREDIT_LIQUIDITY = 0x35DF2E12, 0x855AFCBD
WHOLE, PARTIAL = "dedust_v2_deposit_liquidity", "dedust_v2_deposit_liquidity_partial"
_SERVED, _DATA = "dex_deposit_liquidity", "dex_deposit_liquidity_data"
_SIDE_FIELDS = ("asset", "amount", "user_jetton_wallet_", "target_asset_", "target_amount_")
_MERGED = 2


def _read_target(brought: Block) -> tuple[int, int]:
    """Return what shall be in the pool: deposit#c9a015da x:Coins y:Coins min_liquidity:Coins.

    Raises:
        ActionUnreadable: the order of the carrier is another one.
    """
    order = read_order(brought)
    if order.uint(32) != DEPOSIT:
        raise ActionUnreadable("a side of a deposit came with an order for something else")
    return order.coins(), order.coins()


def _show_side(match: Match) -> tuple[int, Columns]:
    """Return the number of a side, 1 is X, and the columns that are known of it alone.

    TL-B: credit#dc5ddba1 query_id:uint64 is_x:Bool amount:Coins.
    """
    credit, brought = match["credit"].message.arguments().skip(64), match["carrier"]
    number = 1 if credit.bit() else 2
    leg = read_incoming(brought)
    return number, {
        f"asset{number}": leg.asset,
        f"amount{number}": credit.coins(),
        f"user_jetton_wallet_{number}": leg.source_wallet,
        f"target_asset_{number}": leg.asset,
        f"target_amount_{number}": _read_target(brought)[number - 1],
    }


def _draft(match: Match, block_type: str, source: str | None, **more: object) -> Draft:
    """Return the draft of a deposit of which one side is known."""
    number, side = _show_side(match)
    data: Columns = dict.fromkeys(f"{name}{each}" for name in _SIDE_FIELDS for each in (1, 2))
    columns = {
        "source": source,
        "destination": match["credit"].message.source,
        "destination_secondary": match["credit"].message.destination,
        _DATA: data | side | {"dex": DEX, "lp_tokens_minted": None, "vault_excesses": []} | more,
    }
    return Draft(block_type, columns, served=_SERVED, notes={"side": number})


def _make_partial(match: Match, _interfaces: Interfaces) -> Draft:
    """The first side is there."""
    return _draft(match, PARTIAL, read_incoming(match["carrier"]).source)


def _make_whole(match: Match, _interfaces: Interfaces) -> Draft | None:
    """Both sides go into the pool, or back: then the pool does not log them.

    TL-B: join#25251ee0 query_id:uint64 config:^Cell x:Coins y:Coins initiator:MsgAddress;
    log 35df2e12 x_in:Coins y_in:Coins liquidity:Coins ….
    """
    joined = match.block.message.arguments().skip(64)
    joined.ref()
    amounts = joined.coins(), joined.coins()
    initiator, minted, log = joined.address(), None, match.get("log")
    legs = [read_incoming(block) for block in match.all("back")]
    if log is not None:
        logged = log.message.arguments()
        amounts, minted = (logged.coins(), logged.coins()), logged.coins()
    elif not legs:
        return None
    target = _read_target(match["carrier"])
    legs.sort(key=lambda leg: leg.source_wallet is None)  # Jettons come first.
    draft = _draft(
        match,
        WHOLE,
        initiator,
        amount1=amounts[0],
        amount2=amounts[1],
        target_amount_1=target[0],
        target_amount_2=target[1],
        lp_tokens_minted=minted,
        vault_excesses=[
            {"asset": leg.asset, "amount": leg.amount}
            for leg in legs
            if leg.destination == initiator
        ],
    )
    return draft._replace(failed=log is None)


def merge_sides(blocks: Iterable[Block]) -> list[Block]:
    """Put the first side of a deposit into the block of the whole one, if there are just both."""
    found = list(blocks)
    by_contract: dict[str, list[Block]] = {}
    for block in found:
        if block.type in {WHOLE, PARTIAL}:
            by_contract.setdefault(block.columns["destination_secondary"], []).append(block)
    for sides in by_contract.values():
        if len(sides) == _MERGED and {side.type for side in sides} == {WHOLE, PARTIAL}:
            found = [block for block in found if block not in sides]
            found.append(_merge(sides))
    return found


def _merge(sides: list[Block]) -> Block:
    """Return the block of a deposit with what only its first side shows."""
    whole, first = sorted(sides, key=lambda side: side.type == PARTIAL)
    number, own = first.notes["side"], first.columns[_DATA]
    names = [f"{name}{number}" for name in ("asset", "user_jetton_wallet_", "target_asset_")]
    data = whole.columns[_DATA] | {name: own[name] for name in names}
    columns = whole.columns | {_DATA: data}
    block = Block(
        WHOLE, (), columns, served=whole.served, failed=whole.failed, rule="dedust_v2.merge"
    )
    block.merge(sides)
    return block


def _back() -> Pattern:
    return one_of(call(PAYOUT), built(JETTON_TRANSFER)).named("back").maybe


_CARRIER = carrier().named("carrier")

WHOLE_RULE = Rule(
    "dedust_v2.deposit_liquidity",
    call(JOIN)
    .then(call(DEPOSIT_LOG, name="log").maybe, _back(), _back(), call(CREDIT_LIQUIDITY).maybe)
    .after(call(CREDIT, name="credit").after(_CARRIER)),
    _make_whole,
)
PARTIAL_RULE = Rule(
    "dedust_v2.deposit_first_side",
    call(CREDIT, name="credit").with_excesses.after(_CARRIER),
    _make_partial,
)

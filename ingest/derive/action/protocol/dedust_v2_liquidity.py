"""DeDust v2: liquidity that is paid in and taken out, and what a position earned.

A position is a contract of its own beside the pool. Liquidity comes side by side into a deposit
contract (dc5ddba1), which joins it to the pool (25251ee0) when both are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import built, call, one_of
from tonlake.ingest.derive.action.protocol.dedust_v2 import DEX, PAYOUT
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER
from tonlake.ingest.derive.action.protocol.swap import Leg, read_incoming
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.ingest.derive.action.block import Columns
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match, Pattern

WITHDRAW, TAKE_OUT, EXIT, WITHDRAW_LOG = 0x20B5EF89, 0xBC1531A9, 0xF6F6A3AA, 0xC0D77B54
CLAIM_FEES, ASK_FEES, PAY_FEES = 0x5652F1DF, 0x25F19752, 0x29FF1BCF
CLAIM_REWARD, ASK_REWARD, PAY_REWARD = 0x909FDB65, 0x2E0CCCBA, 0x9E17FBBE
_NO_LEG = Leg(None, None, None, None, None, None)


def _pair_legs(amounts: Sequence[int | None], legs: Sequence[Leg]) -> list[Leg]:
    """Return the leg that paid each amount, one without anything where none did."""
    left = list(legs)
    found = []
    for amount in amounts:
        leg = next((leg for leg in left if leg.amount == amount), _NO_LEG)
        if leg is not _NO_LEG:
            left.remove(leg)
        found.append(leg)
    return found


def _show_sides(
    match: Match, amounts: tuple[int | None, int | None], burnt: int | None, *, is_refund: bool
) -> Columns:
    """Return the columns of both sides of a pool that were paid out."""
    legs = _pair_legs(amounts, [read_incoming(block) for block in match.all("leg")])
    data: Columns = {"dex": DEX, "is_refund": is_refund, "lp_tokens_burnt": burnt}
    for number, (amount, leg) in enumerate(zip(amounts, legs, strict=True), start=1):
        data |= {
            f"amount{number}": amount,
            f"asset{number}_out": leg.asset,
            f"user_jetton_wallet_{number}": leg.destination_wallet,
            f"dex_jetton_wallet_{number}": leg.source_wallet,
            f"dex_wallet_{number}": leg.source,
        }
    return data


def _make_withdraw(match: Match, _interfaces: Interfaces) -> Draft | None:
    """Liquidity is taken out; without the log of the pool it failed.

    TL-B: withdraw#20b5ef89 query_id:uint64 liquidity:Coins min_x:Coins min_y:Coins
    auto_claim:Bool; log c0d77b54 liquidity:Coins x_out:Coins y_out:Coins.
    """
    message, log = match["withdraw"].message, match.get("log")
    asked = message.arguments().skip(64)
    burnt = asked.coins()
    asked.coins()
    asked.coins()
    if asked.bit():
        return None
    amounts: tuple[int | None, int | None] = (None, None)
    if log is not None:
        logged = log.message.arguments()
        burnt, amounts = logged.coins(), (logged.coins(), logged.coins())
    columns = {
        "source": message.source,
        "destination": message.destination,
        "dex_withdraw_liquidity_data": _show_sides(match, amounts, burnt, is_refund=log is None),
    }
    return Draft("dex_withdraw_liquidity", columns, failed=log is None)


def _draft_claim(match: Match, action_type: str, amounts: tuple[int, int | None]) -> Draft:
    message = match.block.message
    columns = {
        "source": message.source,
        "destination": message.destination,
        "destination_secondary": match["position"].message.destination,
        "dex_withdraw_liquidity_data": _show_sides(match, amounts, None, is_refund=False),
    }
    return Draft(action_type, columns)


def _make_claim_fees(match: Match, _interfaces: Interfaces) -> Draft:
    """The fees of both sides. TL-B: 29ff1bcf query_id:uint64 x:Coins y:Coins owner:MsgAddress."""
    body = match["order"].message.arguments().skip(64)
    return _draft_claim(match, "dedust_v2_claim_fees", (body.coins(), body.coins()))


def _make_claim_reward(match: Match, _interfaces: Interfaces) -> Draft:
    """A reward. TL-B: 9e17fbbe query_id:uint64 amount:Coins index:uint2 owner:MsgAddress."""
    body = match["order"].message.arguments().skip(64)
    return _draft_claim(match, "dedust_v2_claim_reward", (body.coins(), None))


def _leg() -> Pattern:
    return one_of(call(PAYOUT), built(JETTON_TRANSFER)).named("leg").maybe


WITHDRAW_RULE = Rule(
    "dedust_v2.withdraw_liquidity",
    call(EXIT)
    .then(call(WITHDRAW_LOG, name="log").maybe, _leg(), _leg())
    .after(call(TAKE_OUT).after(call(WITHDRAW, name="withdraw"))),
    _make_withdraw,
)
CLAIM_FEES_RULE = Rule(
    "dedust_v2.claim_fees",
    call(CLAIM_FEES).then(
        call(ASK_FEES, name="position").then(call(PAY_FEES, name="order").then(_leg(), _leg()))
    ),
    _make_claim_fees,
)
CLAIM_REWARD_RULE = Rule(
    "dedust_v2.claim_reward",
    call(CLAIM_REWARD).then(
        call(ASK_REWARD, name="position").then(call(PAY_REWARD, name="order").then(_leg()))
    ),
    _make_claim_reward,
)
RULES = (WITHDRAW_RULE, CLAIM_FEES_RULE, CLAIM_REWARD_RULE)

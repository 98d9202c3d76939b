"""Nominator pools: deposits by the comment "d", withdrawals by the comment "w"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.block import TRANSFER
from tonlake.ingest.derive.action.pattern import built, call
from tonlake.ingest.derive.action.protocol.trade import comment_of
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.block import Block
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

INTERFACE = "NominatorPool"
PROVIDER = "nominator"
PROCESS_REQUESTS = 0x00000002


def _make_deposit(match: Match, interfaces: Interfaces) -> Draft | None:
    """Coins with the comment "d"."""
    message = match.block.message
    if not interfaces.has(message.destination, INTERFACE):
        return None
    columns = {
        "source": message.source,
        "destination": message.destination,
        "amount": message.value,
        "staking_data": {"provider": PROVIDER, "tokens_minted": None},
    }
    return Draft(
        "nominator_pool_deposit", columns, failed=match.block.failed, served="stake_deposit"
    )


def _make_request(match: Match, interfaces: Interfaces) -> Draft | None:
    """The comment "w": paid out at once when the pool has the coins, else later."""
    block, payout = match.block, match.get("payout")
    if not interfaces.has(block.message.destination, INTERFACE):
        return None
    return _draft_withdrawal(block.message.source, block, payout)


def _make_late_payout(match: Match, interfaces: Interfaces) -> Draft | None:
    """A pool pays what was asked for earlier."""
    block, payout = match.block, match["payout"]
    if not interfaces.has(block.message.destination, INTERFACE):
        return None
    return _draft_withdrawal(payout.message.destination, block, payout)


def _draft_withdrawal(nominator: str | None, block: Block, payout: Block | None) -> Draft:
    columns = {
        "source": nominator,
        "destination": block.message.destination,
        "amount": None if payout is None else payout.message.value,
        "staking_data": {"provider": PROVIDER, "ts_nft": None, "tokens_burnt": None},
    }
    return Draft(
        "nominator_pool_withdraw_request",
        columns,
        failed=block.failed,
        served="stake_withdrawal_request" if payout is None else "stake_withdrawal",
    )


_PAYOUT = built(TRANSFER, name="payout")

RULES = (
    Rule(
        "nominator.deposit",
        built(TRANSFER).where(lambda block: comment_of(block) == "d").with_excesses,
        _make_deposit,
    ),
    Rule(
        "nominator.withdraw_request",
        built(TRANSFER).where(lambda block: comment_of(block) == "w").with_excesses,
        _make_request,
    ),
    Rule("nominator.late_payout", call(PROCESS_REQUESTS).then(_PAYOUT), _make_late_payout),
)
"""In the order in which they are tried."""

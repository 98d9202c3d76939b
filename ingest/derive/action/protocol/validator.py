"""Stakes of validators sent to the elector and returned, and nominator pools.

Nominators deposit with the comment "d", and withdraw with the comment "w".
"""

from collections.abc import Sequence

from tonlake.ingest.derive.action.pattern import Match, built, call, comment
from tonlake.ingest.derive.action.rule import TRANSFER, Block, rule

NEW_STAKE, STAKE_ACCEPTED = 0x4E73744B, 0xF374484C
RECOVER_STAKE, STAKE_RETURNED = 0x47657424, 0xF96F7324
ELECTOR = "-1:3333333333333333333333333333333333333333333333333333333333333333"


@rule(
    call(NEW_STAKE).then(call(STAKE_ACCEPTED, name="confirmation").maybe), name="election.deposit"
)
def stake(match: Match) -> Block | None:
    """Draft a stake; it succeeded if the elector confirms it."""
    block = match.block
    if block["destination"] != ELECTOR:
        return None
    columns = block.pick("source", amount="value")
    return Block("election_deposit", columns, failed="confirmation" not in match)


@rule(
    call(RECOVER_STAKE).then(call(STAKE_RETURNED, name="confirmation").maybe),
    name="election.recover",
)
def recover(match: Match) -> Block | None:
    """Draft the recovery of a stake."""
    block = match.block
    if block["destination"] != ELECTOR:
        return None
    columns = block.pick("source") | {"amount": match.column("confirmation", "value")}
    return Block("election_recover", columns, failed="confirmation" not in match)


INTERFACE = "NominatorPool"
PROVIDER = "nominator"
PROCESS_REQUESTS = 0x00000002
_MAX_TRANSFERS = 2


def _draft_withdrawal(
    match: Match,
    nominator: str | None,
    pool: str | None,
    payout: Block | None,
    more: Sequence[Block] = (),
) -> Block:
    columns = {
        "source": nominator,
        "destination": pool,
        "amount": None if payout is None else payout.message.value,
        "staking_data": {"provider": PROVIDER},
    }
    return Block(
        "nominator_pool_withdraw_request",
        columns,
        failed=payout is not match.block and match.block.failed,
        served="stake_withdrawal_request" if payout is None else "stake_withdrawal",
        more=more,
    )


@rule(comment("d").with_excesses, name="nominator.deposit")
def nominate(match: Match) -> Block | None:
    """Draft a deposit: coins with the comment "d"."""
    if not match.interfaces.has(match.block["destination"], INTERFACE):
        return None
    columns = match.block.pick("source", "destination", amount="value")
    columns["staking_data"] = {"provider": PROVIDER}
    return Block(
        "nominator_pool_deposit", columns, failed=match.block.failed, served="stake_deposit"
    )


@rule(comment("w").with_excesses, name="nominator.withdraw_request")
def withdraw_request(match: Match) -> Block | None:
    """Draft a withdrawal request, comment "w": paid at once if the pool has the coins."""
    block = match.block
    if not match.interfaces.has(block["destination"], INTERFACE):
        return None
    back = [after for after in block.following if after.type == TRANSFER]
    if len(back) > _MAX_TRANSFERS:
        back = []
    payout = back[0] if back else None
    if len(back) == 1 and (back[0]["value"] or 0) <= (block["value"] or 0):
        payout = None
    return _draft_withdrawal(match, block["source"], block["destination"], payout, back)


@rule(built(TRANSFER).after(call(PROCESS_REQUESTS).apart), name="nominator.late_payout")
def late_payout(match: Match) -> Block | None:
    """Draft the payout of an earlier request."""
    message = match.block.message
    if not match.interfaces.has(message.source, INTERFACE):
        return None
    return _draft_withdrawal(match, message.destination, message.source, match.block)


NOMINATOR_RULES = (nominate, withdraw_request, late_payout)

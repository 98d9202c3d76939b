"""Tonstakers: liquid staking, where a deposit mints tsTON and burning tsTON withdraws."""

from tonlake.ingest.derive.action.pattern import Match, call, one_of, relay
from tonlake.ingest.derive.action.protocol.jetton import BURN, BURN_NOTIFICATION, INTERNAL, NOTIFY
from tonlake.ingest.derive.action.rule import Block, rule

DEPOSIT, MINT_JETTONS = 0x47D54391, 0x1674B0A0
WITHDRAW_REQUEST, WITHDRAWAL = 0x319B0CDC, 0x0A77535C
NFT_BURN, NFT_BURNT, NFT_PAYOUT = 0xF127FE4E, 0xED58B0B2, 0xDB3B8ABD
START_PAYOUTS = 0x1140A64F
PROVIDER = "liquid_staking"
DEPOSIT_FEE_NANO = 1_000_000_000
"""Value that a deposit carries in addition to the stake."""


def _find_pool(burnt: Block) -> str | None:
    """Return the pool of a burnt item, which ordered the first burn of a chain."""
    block = burnt.previous
    while block is not None and block.opcode in {NFT_BURN, NFT_BURNT, NFT_PAYOUT}:
        block = block.previous
    if block is None:
        return None
    if block.opcode == START_PAYOUTS:
        return block.message.source
    pool: str | None = block["destination"] if block.served == "stake_withdrawal" else None
    return pool


@rule(call(NFT_PAYOUT).after(call(NFT_BURNT, name="burnt").after(call(NFT_BURN))))
def delayed_withdraw(match: Match) -> Block:
    """Draft the payout at the end of a round, for a burnt item.

    TL-B of ed58b0b2: query_id:uint64 amount:Coins owner:MsgAddress ….
    """
    burnt = match["burnt"]
    tokens, owner = burnt.fields().take("coins", "address")
    columns = {
        "source": owner,
        "destination": _find_pool(burnt),
        "amount": match.block["value"],
        "staking_data": {"provider": PROVIDER, "ts_nft": burnt["source"], "tokens_burnt": tokens},
    }
    return Block("tonstakers_withdraw", columns, served="stake_withdrawal")


@rule(
    call(DEPOSIT).then(
        call(MINT_JETTONS).then(call(INTERNAL, name="minted").then(call(NOTIFY).maybe)).maybe
    )
)
def deposit(match: Match) -> Block:
    """Draft a deposit of coins for tsTON; it failed if no wallet received them."""
    block = match.block
    failed = block.failed or "minted" not in match
    tokens = None if failed else match["minted"].fields().coins()
    columns = block.pick("source", "destination") | {
        "amount": (block["value"] or 0) - DEPOSIT_FEE_NANO,
        "asset": match.column("minted", "source"),
        "staking_data": {"provider": PROVIDER, "tokens_minted": tokens},
    }
    return Block("tonstakers_deposit", columns, failed=failed, served="stake_deposit")


@rule(
    relay(
        *(call(BURN), call(BURN_NOTIFICATION, name="notification")),
        call(WITHDRAW_REQUEST, name="request"),
        one_of(call(WITHDRAWAL, name="paid"), call(MINT_JETTONS, name="delayed")),
    )
)
def withdraw(match: Match) -> Block:
    """Draft a withdrawal for burnt tsTON, at once or through an item paid at the end of a round."""
    burn, request, paid = match.block, match["request"], match.get("paid")
    tokens = burn.fields().coins()
    columns = burn.pick("source") | request.pick("destination")
    columns["asset"] = match["notification"]["destination"]
    if paid is not None:
        amount = (paid["value"] or 0) - (request["value"] or 0)
        data = {"provider": PROVIDER, "ts_nft": None, "tokens_burnt": tokens}
        columns |= {"amount": amount, "staking_data": data}
        return Block("tonstakers_withdraw", columns, failed=burn.failed, served="stake_withdrawal")
    deployed = (min(each.deployments) for each in match["delayed"].following if each.deployments)
    item = next(deployed, None)  # created for a later payout
    columns |= burn.pick(source_secondary="destination")
    columns |= {"amount": tokens, "staking_data": {"provider": PROVIDER, "ts_nft": item}}
    return Block(
        "tonstakers_withdraw_request",
        columns,
        failed=burn.failed or item is None,
        served="stake_withdrawal_request",
    )

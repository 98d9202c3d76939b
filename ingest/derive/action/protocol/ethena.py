"""Ethena: staking USDe for tsUSDe, and requests to unstake tsUSDe."""

from __future__ import annotations

from tonlake.ingest.derive.action.pattern import Match, built, call
from tonlake.ingest.derive.action.protocol.jetton import (
    INTERNAL,
    JETTON_TRANSFER,
    MINT,
    NOTIFY,
    TRANSFER,
)
from tonlake.ingest.derive.action.rule import Draft, rule

USDE = "0:086FA2A675F74347B08DD4606A549B8FDB98829CB282BC1949D3B12FBAED9DCC"
TSUSDE = "0:D0E545323C7ACB7102653C073377F7E3C67F122EB94D430A250739F109D4A57D"
RELEASE = 0xB2583ED5
"""Message from the master to the wallet that pays later; its amount is in USDe."""
PROVIDER = "ethena"


@rule(
    "ethena.withdrawal_request",
    call(TRANSFER).then(
        call(INTERNAL, name="internal").then(
            call(NOTIFY).then(call(MINT, name="mint").then(call(RELEASE, name="release")))
        )
    ),
)
def withdrawal_request(match: Match) -> Draft | None:
    """Draft a withdrawal request: tsUSDe return to their master, which releases USDe later.

    TL-B: release#b2583ed5 query_id:uint64 amount:Coins.
    """
    block, internal = match.block, match["internal"]
    mint, release = match["mint"], match["release"]
    wallet = match.interfaces.jetton_wallet(block.message.destination)
    paid = match.interfaces.jetton_wallet(release.message.destination)
    if wallet is None or paid is None:
        return None
    if not wallet.owner == paid.owner == block.message.source:
        return None
    if (wallet.jetton, paid.jetton) != (internal.message.destination, release.message.source):
        return None
    columns = {
        "source": block.message.source,
        "source_secondary": block.message.destination,
        "destination": mint.message.source,
        "asset": wallet.jetton,
        "amount": internal.message.arguments().skip(64).coins(),
        "staking_data": {
            "provider": PROVIDER,
            "tokens_minted": release.message.arguments().skip(64).coins(),
        },
    }
    return Draft("ethena_withdrawal_request", columns, served="stake_withdrawal_request")


@rule(
    "ethena.deposit",
    built(JETTON_TRANSFER)
    .where(lambda block: block["asset"] == USDE)
    .then(built("jetton_mint", name="minted")),
)
def deposit(match: Match) -> Draft | None:
    """Draft a deposit of USDe to the pool, for which tsUSDe are minted."""
    sent, minted = match.block, match["minted"]
    if minted["asset"] != TSUSDE:
        return None
    columns = {
        "source": sent["source"],
        "source_secondary": sent["source_secondary"],
        "destination": sent["destination"],
        "amount": sent["amount"],
        "asset": minted["asset"],
        "asset2": sent["asset"],
        "staking_data": {"provider": PROVIDER, "tokens_minted": minted["amount"]},
    }
    return Draft("ethena_deposit", columns, served="stake_deposit")

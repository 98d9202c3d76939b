"""Ethena: staking USDe for tsUSDe, and requests to unstake tsUSDe."""

from tonlake.ingest.derive.action.pattern import Match, built, call, jettons, relay
from tonlake.ingest.derive.action.protocol.jetton import INTERNAL, MINT, NOTIFY, TRANSFER
from tonlake.ingest.derive.action.rule import Block, rule

USDE = "0:086FA2A675F74347B08DD4606A549B8FDB98829CB282BC1949D3B12FBAED9DCC"
TSUSDE = "0:D0E545323C7ACB7102653C073377F7E3C67F122EB94D430A250739F109D4A57D"
RELEASE = 0xB2583ED5
"""Message from the master to the wallet that pays later; its amount is in USDe."""
PROVIDER = "ethena"


@rule(
    relay(
        *(call(TRANSFER), call(INTERNAL, name="internal"), call(NOTIFY)),
        *(call(MINT, name="mint"), call(RELEASE, name="release")),
    )
)
def withdrawal_request(match: Match) -> Block | None:
    """Draft a withdrawal request: tsUSDe return to their master, which releases USDe later.

    TL-B: release#b2583ed5 query_id:uint64 amount:Coins.
    """
    block, internal = match.block, match["internal"]
    mint, release = match["mint"], match["release"]
    wallet = match.interfaces.jetton_wallet(block["destination"])
    paid = match.interfaces.jetton_wallet(release["destination"])
    if wallet is None or paid is None:
        return None
    expected = (block["source"], internal["destination"]), (block["source"], release["source"])
    if (wallet, paid) != expected:
        return None
    columns = block.pick("source", source_secondary="destination") | {
        "destination": mint["source"],
        "asset": wallet.jetton,
        "amount": internal.fields().coins(),
        "staking_data": {"provider": PROVIDER, "tokens_minted": release.fields().coins()},
    }
    return Block("ethena_withdrawal_request", columns, served="stake_withdrawal_request")


@rule(
    jettons().where(lambda block: block["asset"] == USDE).then(built("jetton_mint", name="minted"))
)
def deposit(match: Match) -> Block | None:
    """Draft a deposit of USDe to the pool, for which tsUSDe are minted."""
    sent, minted = match.block, match["minted"]
    if minted["asset"] != TSUSDE:
        return None
    columns = sent.pick("source", "source_secondary", "destination", "amount", asset2="asset") | {
        "asset": TSUSDE,
        "staking_data": {"provider": PROVIDER, "tokens_minted": minted["amount"]},
    }
    return Block("ethena_deposit", columns, served="stake_deposit")

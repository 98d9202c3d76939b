"""JVault: staking pools of jettons: stakes, rewards, requests to unstake."""

from typing import cast

from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.pattern import Match, built, call, jettons, one_of, repeat
from tonlake.ingest.derive.action.rule import JETTON_TRANSFER, TRANSFER, Block, rule
from tonlake.ingest.errors import IngestError

RECEIVE_JETTONS, CANCEL_STAKE, SET_DATA = 0xD68A4AC1, 0x9EADA1D9, 0x383411EA
REQUEST_UPDATE, UPDATE_REWARDS = 0xF5C5BAA3, 0xAE9307CE
REQUEST_REFERRER, UPDATE_REFERRER = 0x55C35B40, 0x076EE4E0
UNSTAKE, UNSTAKE_REQUEST = 0x499A9262, 0x0168D4B7
CLAIM, SEND_CLAIMED = 0x78D9F109, 0x44BC1FE3
_ADDRESS_BITS = 267


def _draft_unstake(name: str, match: Match, *, failed: bool) -> Block | None:
    block, request = match.block, match.get("request")
    stake_wallet: str | None = block["destination"]
    pool = _read_addresses(match.interfaces, stake_wallet, 0)
    pool_wallet = _read_addresses(match.interfaces, pool, 2, is_pool=True)
    asset = match.interfaces.jetton_of(pool_wallet)
    is_unknown = pool_wallet is not None and asset is None
    if request is not None:
        pool = request["destination"]
    elif pool is None or asset is None:
        return None
    columns = {
        "source": block["source"],
        "source_secondary": stake_wallet,
        "destination": pool,
        "amount": block.fields().coins(),
        "asset": asset,
        "asset2": None if is_unknown else _read_addresses(match.interfaces, stake_wallet, 1),
        "opcode": block.transaction.exit_code if request is None else None,
    }
    return Block(name, columns, failed=failed)


def _read_addresses(
    interfaces: Interfaces, account: str | None, number: int, *, is_pool: bool = False
) -> str | None:
    """Return one of the addresses in the data of a stake wallet or a pool, counted from 0.

    The data of a stake wallet begin with pool, minter and owner; those of a pool with its
    initialisation flag, its item index (32 bits), collection, owner and jetton wallet.
    """
    try:
        body = interfaces.data(account)
        if body is None:
            return None
        addresses = body.skip(1 + 32 if is_pool else 0).take(*["address"] * (number + 1))
    except IngestError:
        return None
    return cast("str | None", addresses[number])


def _read_claimed(block: Block) -> list[str]:
    """Return the requested jetton wallets. TL-B: jettons_to_claim:(HashmapE 267 Bit)."""
    root = block.fields().maybe_ref()
    if root is None:
        return []
    keys = (key for key, _ in iter_hashmap(root.tree, root.cell, _ADDRESS_BITS))
    # A key is addr_std without anycast.
    return [f"{(key >> 256 & 0xFF ^ 128) - 128}:{key & (1 << 256) - 1:064X}" for key in keys]


_REFERRERS = repeat(call(REQUEST_REFERRER), until=call(UPDATE_REFERRER).maybe).maybe
_UPDATE = call(UPDATE_REWARDS)
_JETTONS = jettons()


@rule(
    _JETTONS.then(
        call(RECEIVE_JETTONS, name="received").then(
            one_of(
                call(REQUEST_UPDATE, name="request").then(_REFERRERS, _UPDATE),
                call(CANCEL_STAKE).then(_JETTONS.maybe),
            )
        ),
        call(SET_DATA).maybe,
    )
)
def stake(match: Match) -> Block:
    """Draft a stake of jettons in a pool, which notifies the stake wallet of their owner."""
    sent, received = match.block, match["received"]
    payload, update = sent["payload"], match.get("request")
    columns = sent.pick("source", "source_secondary", "destination", "asset", "amount")
    columns["jvault_stake_data"] = {
        "period": None if payload is None else payload.copy().skip(32).uint(32),  # seconds
        "minted_stake_jettons": None,
        "stake_wallet": received["destination"],
    }
    failed = received.failed or update is None or update.failed
    return Block("jvault_stake", columns, failed=failed)


@rule(
    call(UNSTAKE).then(
        call(REQUEST_UPDATE, name="request")
        .then(_REFERRERS, built(TRANSFER).maybe, _JETTONS, _UPDATE)
        .maybe
    )
)
def unstake(match: Match) -> Block | None:
    """Draft an unstake; if the stake wallet refuses it, the action has its exit code."""
    return _draft_unstake("jvault_unstake", match, failed=False)


@rule(call(CLAIM).then(call(SEND_CLAIMED, name="sending").then(_JETTONS, _UPDATE)))
def claim(match: Match) -> Block:
    """Draft a payout of rewards; jettons are identified by the pool's wallets."""
    sending = match["sending"]
    paid = [after for after in sending.following if after.type == JETTON_TRANSFER]
    columns = match.block.pick("source", source_secondary="destination") | {
        "destination": sending["destination"],
        "jvault_claim_data": {
            "claimed_jettons": _read_claimed(match.block),
            "claimed_amounts": [paid[0]["amount"]],
        },
    }
    return Block("jvault_claim", columns, more=paid)


@rule(
    call(UNSTAKE_REQUEST).then(call(REQUEST_UPDATE, name="request").then(_REFERRERS, _UPDATE).maybe)
)
def unstake_request(match: Match) -> Block | None:
    """Draft a request to unstake jettons at the end of their period."""
    request = match.get("request")
    failed = request is None or request.failed or match.block.failed
    return _draft_unstake("jvault_unstake_request", match, failed=failed)


RULES = (stake, unstake, claim, unstake_request)

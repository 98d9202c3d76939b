"""Shared parts of the rules for exchanges: transfers to and from a pool, and their columns.

Exchanges with a router receive coins through its wallet of a jetton that represents TON (01f3835d).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.pattern import Match, Pattern, call, jettons, one_of
from tonlake.ingest.derive.action.protocol.jetton import NOTIFY, PTON_TRANSFER, asset_of
from tonlake.ingest.derive.action.rule import JETTON_TRANSFER, Block, Columns
from tonlake.ingest.errors import BodyError

_NATIVE, _JETTON, _EXTRA = range(3)


class Leg(NamedTuple):
    """A transfer of coins (no asset) or jettons between owners, with their jetton wallets."""

    amount: int | None = None
    source: str | None = None
    source_jetton_wallet: str | None = None
    destination: str | None = None
    destination_jetton_wallet: str | None = None
    asset: str | None = None


class Hop(NamedTuple):
    """One of several consecutive swaps."""

    asset_in: str | None
    amount_in: int | None
    asset_out: str | None
    amount_out: int | None


def read_jettons(block: Block, *, raw: bool = False) -> Leg:
    """Return the leg of a ``jetton_transfer``; ``raw`` keeps jettons that represent TON."""
    ends = block["source"], block["source_secondary"], block["destination"]
    asset = block["asset"] if raw else asset_of(block["asset"])
    return Leg(block["amount"], *ends, block["destination_secondary"], asset)


def read_incoming(block: Block, *, raw: bool = False) -> Leg:
    """Return the leg of a transfer to a vault: jettons or coins.

    TL-B of a message with coins: query_id:uint64 amount:Coins ….
    """
    if block.type == JETTON_TRANSFER:
        return read_jettons(block, raw=raw)
    message = block.message
    amount = message.fields().coins()
    return Leg(amount, message.source, None, message.destination, None, None)


def read_asset(body: Body, tag_bits: int) -> str | None:
    """Read an asset: None for coins and for extra currencies, else the jetton's master.

    TL-B: native$00; jetton$01 workchain_id:int8 address:bits256; extra_currency$10
    currency_id:int32. DeDust has tags of four bits, Swap.Coffee of two. Raises BodyError if
    the tag is unknown.
    """
    kind = body.uint(tag_bits)
    if kind == _NATIVE:
        return None
    if kind == _JETTON:
        return f"{body.signed(8)}:{body.uint(256):064X}"
    if kind == _EXTRA:
        body.skip(32)
        return None
    raise BodyError(f"unknown kind of asset: {kind}")


def read_assets(body: Body, tag_bits: int) -> tuple[str | None, str | None]:
    """Read two assets."""
    return read_asset(body, tag_bits), read_asset(body, tag_bits)


def read_paid_coins(block: Block) -> Leg:
    """Return the leg of coins that the router's wallet paid out (01f3835d)."""
    message = block.message
    source = None if block.previous is None else block.previous["source"]
    return Leg(message.fields().coins(), source, None, message.destination, None, None)


DEPOSIT_FIELDS = (
    *("dex", "asset1", "amount1", "asset2", "amount2", "user_jetton_wallet_1"),
    *("user_jetton_wallet_2", "lp_tokens_minted", "target_asset_1", "target_amount_1"),
    *("target_asset_2", "target_amount_2", "vault_excesses"),
)


def show_side(number: int, leg: Leg) -> Columns:
    """Return the columns of one side of a deposit."""
    return {
        f"asset{number}": leg.asset,
        f"amount{number}": leg.amount,
        f"user_jetton_wallet_{number}": leg.source_jetton_wallet,
    }


def merge_sides(
    blocks: Sequence[Block], types: set[str], merge: Callable[[list[Block]], Block | None]
) -> list[Block]:
    """Merge the blocks of a deposit through one contract, if they are two and ``merge`` can."""
    kept = list(blocks)
    by_contract: dict[str, list[Block]] = {}
    for block in blocks:
        contract = block.columns.get("destination_secondary")
        if block.type in types and contract is not None:
            by_contract.setdefault(contract, []).append(block)
    for sides in by_contract.values():
        merged = merge(sides) if len(sides) == len(("first", "second")) else None
        if merged is not None:
            kept = [*(block for block in kept if block not in sides), merged]
    return kept


def join_sides(whole: Block, sides: list[Block], data: Columns, name: str) -> Block:
    """Return a block of both sides of a deposit in place of the whole one."""
    columns = whole.columns | {"dex_deposit_liquidity_data": data}
    block = Block(whole.type, columns, served=whole.served, failed=whole.failed)
    block.rule = name
    block.merge(sides)
    return block


def show_excess(leg: Leg) -> Columns:
    """Return an amount that a deposit did not need."""
    return {"asset": leg.asset, "amount": leg.amount}


def show_payouts(legs: Iterable[Leg]) -> Columns:
    """Return the columns of the sides of a pool that were paid out."""
    data: Columns = {}
    for number, leg in enumerate(legs, start=1):
        data |= {
            f"amount{number}": leg.amount,
            f"asset{number}_out": leg.asset,
            f"user_jetton_wallet_{number}": leg.destination_jetton_wallet,
            f"dex_jetton_wallet_{number}": leg.source_jetton_wallet,
            f"dex_wallet_{number}": leg.source,
        }
    return data


def show_swap(
    dex: str,
    incoming: Leg,
    outgoing: Leg,
    *,
    hops: Sequence[Hop] = (),
    min_out_amount: int | None = None,
    asset_out: str | None = None,
) -> Columns:
    """Return the columns of a ``jetton_swap``; ``asset_out`` is the requested asset if not paid."""
    return {
        "source": incoming.source,
        "source_secondary": incoming.source_jetton_wallet,
        "destination": outgoing.destination,
        "destination_secondary": outgoing.destination_jetton_wallet,
        "asset": incoming.asset,
        "asset2": outgoing.asset if asset_out is None else asset_out,
        "jetton_swap_data": {
            "dex": dex,
            "sender": incoming.source,
            "dex_incoming_transfer": incoming._asdict(),
            "dex_outgoing_transfer": outgoing._asdict(),
            "min_out_amount": min_out_amount,
            "peer_swaps": [hop._asdict() for hop in hops] if len(hops) > 1 else [],
        },
    }


SENT = one_of(jettons("in"), call(NOTIFY, name="notify").after(call(PTON_TRANSFER, name="in")))
"""Pattern of a transfer to the router, read by ``read_sent``."""


def read_sent(match: Match) -> Leg | None:
    """Return the leg of the transfer to the router; None if it is not in the trace."""
    block = match.get("in")
    if block is None:
        return None
    if block.type == JETTON_TRANSFER:
        return read_jettons(block)
    receiver, message = match["notify"]["destination"], block.message
    amount = message.fields().coins()
    return Leg(amount, message.source, None, receiver, message.destination, None)


def read_paid(block: Block, *, raw: bool = False) -> Leg:
    """Return the leg of the router's payment; ``raw`` keeps jettons that represent TON."""
    return read_jettons(block, raw=raw) if block.type == JETTON_TRANSFER else read_paid_coins(block)


def paid_out(name: str) -> Pattern:
    """Return the pattern of a router's payment: coins through their wallet, or jettons."""
    return one_of(
        jettons().then(call(PTON_TRANSFER, name=name).then(call(NOTIFY).maybe)), jettons(name)
    )


def pay(order: int, swap: int, max_hops: int) -> Pattern:
    """Return the pattern of a payment: from the router, or into the next of several swaps.

    Names: ``payment`` is the order of a pool, ``between`` its payment into the next ``swap``, and
    ``out`` the payment of the router. ``order`` and ``swap`` are opcodes.
    """
    payment = call(order, name="payment")
    if not max_hops:
        return payment.then(paid_out("out"))
    again = call(swap, name="swap").then(pay(order, swap, max_hops - 1))
    coins = call(PTON_TRANSFER, name="between").then(call(NOTIFY).then(again))
    return payment.then(
        one_of(jettons().then(coins), jettons("between").then(again), paid_out("out"))
    )

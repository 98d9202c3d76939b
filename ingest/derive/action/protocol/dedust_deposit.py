"""DeDust: deposits of liquidity, side by side through a deposit contract into a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.derive.action.block import TRANSFER as TON_TRANSFER
from tonlake.ingest.derive.action.block import Block, walk
from tonlake.ingest.derive.action.pattern import built, call, one_of
from tonlake.ingest.derive.action.protocol.dedust import ASSET_TAG_BITS, DEX, PAYOUT
from tonlake.ingest.derive.action.protocol.jetton import INTERNAL, NOTIFY, TRANSFER
from tonlake.ingest.derive.action.protocol.swap import read_asset
from tonlake.ingest.derive.action.rule import Draft, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tonlake.ingest.derive.action.block import Columns
    from tonlake.ingest.derive.action.interface import Interfaces
    from tonlake.ingest.derive.action.pattern import Match

DEPOSIT_NATIVE, ASK_FACTORY, INSTALL = 0xD55E4686, 0xF04EC526, 0x9B3AA3FA
TOP_UP, DEPOSIT_ALL = 0x54240FE5, 0xB56B9598
REJECT, FULFILL, PAY_BACK = 0xE1A36CD4, 0xAAE79256, 0x6B0B787F
WHOLE, PARTIAL = "dedust_deposit_liquidity", "dedust_deposit_liquidity_partial"
_SERVED = "dex_deposit_liquidity"
_MERGED = 2


class _Target(NamedTuple):
    """The requested deposit, side by side."""

    assets: tuple[str | None, str | None]
    amounts: tuple[int, int]


def _read_asked(block: Block) -> tuple[str | None, _Target]:
    """Read the depositor and the requested target from f04ec526.

    TL-B: query_id:uint64 proof:^Cell owner_addr:MsgAddress is_stable:Bool asset0:DedustAsset
    asset1:DedustAsset ^[asset0_target_balance:Coins asset1_target_balance:Coins …].
    """
    body = block.message.arguments().skip(64)
    body.ref()
    owner = body.address()
    assets = (read_asset(body.skip(1), ASSET_TAG_BITS), read_asset(body, ASSET_TAG_BITS))
    inner = body.ref()
    return owner, _Target(assets, (inner.coins(), inner.coins()))


def _draft(match: Match, block_type: str, target: _Target | None, **more: object) -> Draft:
    """Return the draft of one side of a deposit; ``target`` defaults to the requested one."""
    (owner, asked), top_up = _read_asked(match["ask"]), match["top_up"]
    target = target or asked
    paid = top_up.message.arguments().skip(64)
    transfer = match.get("transfer")
    wallet = None if transfer is None else transfer.message.destination
    is_shown = block_type == PARTIAL or match.interfaces.jetton_wallet(wallet) is not None
    data: Columns = {
        "dex": DEX,
        "asset1": read_asset(paid, ASSET_TAG_BITS),
        "amount1": paid.coins(),
        "asset2": None,
        "amount2": None,
        "user_jetton_wallet_1": wallet if is_shown else None,
        "user_jetton_wallet_2": None,
        "lp_tokens_minted": None,
        "target_asset_1": target.assets[0],
        "target_amount_1": target.amounts[0],
        "target_asset_2": target.assets[1],
        "target_amount_2": target.amounts[1],
        **more,
    }
    columns = {
        "source": owner,
        "destination_secondary": top_up.message.destination,
        "dex_deposit_liquidity_data": data,
    }
    return Draft(block_type, columns, served=_SERVED)


def _make_partial(match: Match) -> Draft | None:
    """Draft the payment of the first side, which does not reach the pool yet."""
    goes_on = any(after.opcode in {DEPOSIT_ALL, REJECT} for after in match["top_up"].next)
    return None if goes_on or not _is_known(match) else _draft(match, PARTIAL, None)


def _is_known(match: Match) -> bool:
    """Return whether a side paid in jettons arrived at a known jetton wallet."""
    internal = match.get("internal")
    return (
        internal is None or match.interfaces.jetton_wallet(internal.message.destination) is not None
    )


def _make_whole(match: Match) -> Draft | None:
    """Draft a deposit whose second side has arrived: both go to the pool, or are returned."""
    if not _is_known(match):
        return None
    minted = match.get("minted")
    _drop_unknown(match)
    draft = _draft(
        match,
        WHOLE,
        _read_deposited(match.block),
        lp_tokens_minted=None if minted is None else minted.message.arguments().skip(64).coins(),
        # TON Center's order: last one first.
        vault_excesses=[
            _read_excess(each, match.interfaces) for each in reversed(match.all("excess"))
        ],
    )
    draft.columns["destination"] = match.block.message.destination
    return draft._replace(failed="rejection" in match)


def _drop_unknown(match: Match) -> None:
    """Leave out jettons that were returned to an unknown wallet."""
    for back in match.all("back"):
        sent = back.previous
        if sent is not None and match.interfaces.jetton_wallet(back.message.destination) is None:
            gone = set(walk([sent]))
            match.blocks = [block for block in match.blocks if block not in gone]
            match.names["excess"].remove(sent)


def _read_deposited(block: Block) -> _Target:
    """Read the deposited assets and amounts from b56b9598.

    TL-B: query_id:uint64 proof:^Cell owner_addr:MsgAddress min_lp_amount:Coins ^[asset0:DedustAsset
    asset0_amount:Coins asset1:DedustAsset asset1_amount:Coins].
    """
    body = block.message.arguments()
    body.ref()
    inner = body.ref()
    first, first_amount = read_asset(inner, ASSET_TAG_BITS), inner.coins()
    second, second_amount = read_asset(inner, ASSET_TAG_BITS), inner.coins()
    return _Target((first, second), (first_amount, second_amount))


def _read_excess(block: Block, interfaces: Interfaces) -> Columns:
    """Return a refund of a vault: jettons, or the coins of the message."""
    message = block.message
    if block.opcode != TRANSFER:
        return {"asset": None, "amount": message.value}
    (received,) = (each for each in block.following if each.opcode == INTERNAL)
    wallet = interfaces.jetton_wallet(received.message.destination)
    amount = message.arguments().skip(64).coins()
    return {"asset": None if wallet is None else wallet.jetton, "amount": amount}


def merge_deposits(blocks: Iterable[Block]) -> list[Block]:
    """Merge both sides of a deposit into one block; leave contracts with more sides unmerged."""
    found = list(blocks)
    by_contract: dict[str, list[Block]] = {}
    for block in found:
        contract = block.columns.get("destination_secondary")
        if block.type in {WHOLE, PARTIAL} and contract is not None:
            by_contract.setdefault(contract, []).append(block)
    for sides in by_contract.values():
        if len(sides) == _MERGED and any(side.type == WHOLE for side in sides):
            found = [block for block in found if block not in sides]
            found.append(_merge(sides))
    return found


def _merge(sides: list[Block]) -> Block:
    """Return the block of both sides, in the order of the pool's assets."""
    main = max(sides, key=lambda side: side.type == WHOLE)
    data = dict(main.columns["dex_deposit_liquidity_data"])
    for side in sides:
        own = side.columns["dex_deposit_liquidity_data"]
        number = 1 if own["asset1"] == data["target_asset_1"] else 2
        for name in ("asset", "amount", "user_jetton_wallet_"):
            data[f"{name}{number}"] = own[f"{name}1"]
    columns = main.columns | {"dex_deposit_liquidity_data": data}
    block = Block(
        main.type, (), columns, served=main.served, failed=main.failed, rule="dedust.merge"
    )
    block.merge(sides)
    return block


_RECEIVED = one_of(
    call(DEPOSIT_NATIVE),
    call(NOTIFY).after(
        call(INTERNAL, name="internal").after(call(TRANSFER, name="transfer").maybe).maybe
    ),
)
_JETTONS_BACK = call(TRANSFER, name="excess").then(
    call(INTERNAL, name="back").then(call(NOTIFY).maybe)
)
_BACK = call(PAY_BACK).then(one_of(_JETTONS_BACK, call(PAYOUT, name="excess")).maybe).maybe
_REST = (built(TON_TRANSFER).maybe, _BACK, _BACK)

WHOLE_RULE = Rule(
    "dedust.deposit_liquidity",
    call(DEPOSIT_ALL)
    .then(
        one_of(
            call(INTERNAL, name="minted").then(call(NOTIFY).maybe),
            call(REJECT, name="rejection").then(*_REST),
        ),
        call(FULFILL).then(*_REST).maybe,
    )
    .after(
        call(TOP_UP, name="top_up").after(
            call(ASK_FACTORY, name="ask").then(call(INSTALL).maybe).after(_RECEIVED)
        )
    ),
    _make_whole,
)
PARTIAL_RULE = Rule(
    "dedust.deposit_first_side",
    call(TOP_UP, name="top_up").after(
        call(ASK_FACTORY, name="ask").then(call(INSTALL)).after(_RECEIVED)
    ),
    _make_partial,
)

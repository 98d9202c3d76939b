"""Hipo: liquid staking, at once or, represented by a bill (an NFT item), at the end of a round.

The columns are those of the service's proposed rules, with the outcomes that a later revision adds:
comments as deposits, and payouts at the end of a round that are postponed or rolled back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import Match, call, comment, one_of
from tonlake.ingest.derive.action.protocol.jetton import BURN, NOTIFY
from tonlake.ingest.derive.action.rule import TRANSFER, Block, Columns, Draft, rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.body import Body

TREASURY = "0:8BC991CFE177BC7E9721433EFA3BEFD199485A55CFFD040A06C89AF026B71BCF"
PARENT = "0:CF76AF318C0872B58A9F1925FC29C156211782B9FB01F56760D292E56123BF87"
"""The treasury, and the master of its jetton unless a message names another."""

DEPOSIT = 0x3D3761A6
PROXY_MINTED, MINTED = 0x5BE57626, 0x5445EFEE
PROXY_SAVED, SAVED = 0x47DAA10F, 0x4CCE0E74
MINT_BILL, ASSIGN_BILL = 0x4B2D7871, 0x3275DFC2
PROXY_RESERVE, RESERVE = 0x688B0213, 0x386A358B
PROXY_BURNED, BURNED, WITHDRAWN = 0x4476FDE0, 0x5B512E25, 0xF0FA223B
PROXY_ROLLBACK, ROLLBACK = 0x32B67194, 0x1B77FD1A
BURN_BILL, BILL_BURNED = 0x6F89F5E3, 0x840F6369
MINT_TOKENS, BURN_TOKENS = 0x42684479, 0x7CFFE1EE
PROVIDER = "hipo"
_NFT_MINT = "nft_mint"


def _is_to_treasury(block: Block) -> bool:
    return block.message.destination == TREASURY


def _read(block: Block) -> Body:
    """Return the body of a message after its query id."""
    return block.message.arguments().skip(64)


def _find_bill(minting: Block | None) -> str | None:
    """Return the bill that a message creates: the item that it deployed or assigned."""
    if minting is None:
        return None
    for after in minting.following:
        if after.type == _NFT_MINT:
            bill: str | None = after["asset_secondary"]
            return bill
    return next((each.message.destination for each in _calls(minting, ASSIGN_BILL)), None)


def _calls(block: Block, opcode: int) -> list[Block]:
    return [after for after in block.following if after.opcode == opcode]


def _fill(
    staker: str | None, wallet: Block | None, proxy: Block | None, amount: int | None, data: Columns
) -> Columns:
    return {
        "source": staker,
        "source_secondary": None if wallet is None else wallet.message.destination,
        "destination": TREASURY,
        "asset": PARENT if proxy is None else proxy.message.destination,
        "amount": amount,
        "staking_data": data,
    }


def _describe_request(minting: Block, tokens: int) -> Columns:
    return {"provider": PROVIDER, "ts_nft": _find_bill(minting), "tokens_burnt": tokens}


_BILL = call(MINT_BILL, name="bill")
_MINTED = call(PROXY_MINTED, name="proxy").then(
    call(MINTED, name="minted").then(call(NOTIFY).maybe)
)
_PAID = call(BURNED, name="burned").then(call(WITHDRAWN).maybe)
_BILL_BURNED = call(BILL_BURNED, name="bill_burned").after(call(BURN_BILL).maybe)


@rule(
    "hipo.deposit",
    one_of(call(DEPOSIT), comment("d", "D"))
    .where(_is_to_treasury)
    .then(
        one_of(
            _MINTED, call(PROXY_SAVED, name="proxy").then(call(SAVED, name="saved").maybe)
        ).maybe,
        _BILL.maybe,
    ),
)
def deposit(match: Match) -> Draft | None:
    """Draft a deposit of coins for hGRAM, now or at the end of the round."""
    block = match.block
    message = block.message
    staker, coins = message.source, 0
    if block.type != TRANSFER:
        body = _read(block)
        staker, coins = body.address() or staker, body.coins()
    proxy, minted = match.get("proxy"), match.get("minted")
    wallet = minted or match.get("saved")
    amount = coins or message.value
    tokens = None
    if proxy is not None:
        held = _read(proxy)
        tokens = held.coins() if proxy.opcode == PROXY_MINTED else None
        amount = held.coins()
    data = {"provider": PROVIDER, "tokens_minted": tokens, "ts_nft": _find_bill(match.get("bill"))}
    columns = _fill(staker, wallet, proxy, amount, data)
    failed = block.failed or proxy is None
    return Draft("hipo_stake_deposit", columns, failed=failed, served="stake_deposit")


@rule(
    "hipo.withdraw",
    call(BURN).then(
        call(PROXY_RESERVE, name="proxy").then(
            call(RESERVE, name="reserve")
            .where(_is_to_treasury)
            .then(one_of(call(PROXY_BURNED, name="paid").then(_PAID), _BILL))
        )
    ),
)
def withdraw(match: Match) -> Draft:
    """Draft a withdrawal for burnt hGRAM, at once or at the end of the round.

    A rollback is not an action.
    """
    burn, reserved = match.block, match["reserve"]
    reserve = _read(reserved)
    tokens = reserve.coins()
    staker = reserve.address() or burn.message.source
    paid = match.get("paid")
    columns = _fill(staker, burn, match["proxy"], None, {})
    if paid is not None:
        body = _read(paid)
        burnt, coins = body.coins(), body.coins()
        data = {"provider": PROVIDER, "ts_nft": None, "tokens_burnt": burnt}
        columns |= {"amount": coins, "staking_data": data}
        return Draft(
            "hipo_stake_withdrawal", columns, failed=burn.failed, served="stake_withdrawal"
        )
    minting = match["bill"]
    tokens = _read(minting).coins() or _read(burn).coins() or tokens
    columns |= {"amount": tokens, "staking_data": _describe_request(minting, tokens)}
    kind = "hipo_stake_withdrawal_request"
    return Draft(kind, columns, failed=burn.failed, served="stake_withdrawal_request")


@rule(
    "hipo.round_deposit",
    call(MINT_TOKENS).where(_is_to_treasury).after(_BILL_BURNED.maybe).then(_MINTED),
)
def round_deposit(match: Match) -> Draft:
    """Draft the minting of hGRAM for a bill at the end of a round."""
    block, proxy = match.block, match["proxy"]
    body, minted = _read(block), _read(proxy)
    coins = body.coins()
    tokens = minted.coins()
    minted.coins()
    staker = minted.address() or body.address()
    bill = match.get("bill_burned")
    data = {
        "provider": PROVIDER,
        "tokens_minted": tokens,
        "ts_nft": None if bill is None else bill.message.source,
    }
    columns = _fill(staker, match["minted"], proxy, coins, data)
    return Draft("hipo_stake_deposit", columns, failed=block.failed, served="stake_deposit")


@rule(
    "hipo.round_withdraw",
    call(BURN_TOKENS)
    .where(_is_to_treasury)
    .after(_BILL_BURNED.maybe)
    .then(
        one_of(
            call(PROXY_BURNED, name="proxy").then(_PAID),
            _BILL,
            call(PROXY_ROLLBACK, name="returned").then(call(ROLLBACK, name="rollback").maybe),
        )
    ),
)
def round_withdraw(match: Match) -> Draft:
    """Draft the payout of a bill at the end of a round, its postponement or its rollback."""
    block = match.block
    body = _read(block)
    tokens, owner = body.coins(), body.address()
    bill = match.get("bill_burned")
    item = None if bill is None else bill.message.source
    paid, minting, returned = match.get("proxy"), match.get("bill"), match.get("returned")
    if minting is not None:
        asked = _read(minting)
        tokens = asked.coins()
        asked.bit()
        owner, parent = asked.address() or owner, asked.address()
        columns = _fill(owner, None, None, tokens, _describe_request(minting, tokens))
        columns["asset"] = parent or PARENT
        kind = "hipo_stake_withdrawal_request"
        return Draft(kind, columns, failed=block.failed, served="stake_withdrawal_request")
    if returned is not None:
        body = _read(returned)
        tokens, owner = body.coins(), body.address() or owner
        data = {"provider": PROVIDER, "ts_nft": item, "tokens_burnt": tokens}
        columns = _fill(owner, match.get("rollback"), returned, None, data)
        return Draft("hipo_stake_withdrawal", columns, failed=True, served="stake_withdrawal")
    body = _read(match["proxy"])
    burnt, coins = body.coins(), body.coins()
    data = {"provider": PROVIDER, "ts_nft": item, "tokens_burnt": burnt}
    columns = _fill(body.address() or owner, match["burned"], paid, coins, data)
    return Draft("hipo_stake_withdrawal", columns, failed=block.failed, served="stake_withdrawal")


RULES = (deposit, withdraw, round_deposit, round_withdraw)

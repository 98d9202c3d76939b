"""Hipo: liquid staking, at once or, represented by a bill (an NFT item), at the end of a round.

The columns are those of the service's proposed rules, with the outcomes that a later revision adds:
comments as deposits, and payouts at the end of a round that are postponed or rolled back.
"""

from tonlake.ingest.derive.action.pattern import Match, call, comment, one_of, relay
from tonlake.ingest.derive.action.protocol.jetton import BURN, NOTIFY
from tonlake.ingest.derive.action.rule import TRANSFER, Block, rule

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


def _find_bill(minting: Block | None) -> str | None:
    """Return the bill that a message creates: the item that it deployed or assigned."""
    following = minting.following if minting is not None else []
    for after in following:
        if after.type == _NFT_MINT:
            bill: str | None = after["asset_secondary"]
            return bill
    return next((each["destination"] for each in following if each.opcode == ASSIGN_BILL), None)


def _draft(
    served: str,
    staker: str | None,
    wallet: str | None,
    parent: str | None,
    amount: int | None,
    *,
    failed: bool,
    **data: object,
) -> Block:
    columns = {
        "source": staker,
        "source_secondary": wallet,
        "destination": TREASURY,
        "asset": parent or PARENT,
        "amount": amount,
        "staking_data": {"provider": PROVIDER, **data},
    }
    return Block(f"hipo_{served}", columns, failed=failed, served=served)


_BILL = call(MINT_BILL, name="bill")
_MINTED = call(PROXY_MINTED, name="proxy").then(
    call(MINTED, name="minted").then(call(NOTIFY).maybe)
)
_PAID = call(BURNED, name="burned").then(call(WITHDRAWN).maybe)
_BILL_BURNED = call(BILL_BURNED, name="bill_burned").after(call(BURN_BILL).maybe)


@rule(
    one_of(call(DEPOSIT), comment("d", "D"))
    .where(_is_to_treasury)
    .then(
        one_of(
            _MINTED, call(PROXY_SAVED, name="proxy").then(call(SAVED, name="saved").maybe)
        ).maybe,
        _BILL.maybe,
    )
)
def deposit(match: Match) -> Block | None:
    """Draft a deposit of coins for hGRAM, now or at the end of the round."""
    block, proxy = match.block, match.get("proxy")
    staker, amount, tokens = block["source"], block["value"], None
    if block.type != TRANSFER:
        asked, coins = block.fields().take("address", "coins")
        staker, amount = asked or staker, coins or amount
    if proxy is not None:
        held = proxy.fields()
        tokens = held.coins() if proxy.opcode == PROXY_MINTED else None
        amount = held.coins()
    return _draft(
        "stake_deposit",
        staker,
        match.column("minted" if "minted" in match else "saved", "destination"),
        match.column("proxy", "destination"),
        amount,
        failed=block.failed or proxy is None,
        tokens_minted=tokens,
        ts_nft=_find_bill(match.get("bill")),
    )


@rule(
    relay(
        call(BURN),
        call(PROXY_RESERVE, name="proxy"),
        call(RESERVE, name="reserve").where(_is_to_treasury),
        one_of(call(PROXY_BURNED, name="paid").then(_PAID), _BILL),
    )
)
def withdraw(match: Match) -> Block:
    """Draft a withdrawal for burnt hGRAM, at once or at the end of the round."""
    burn, bill, served = match.block, match.get("bill"), "stake_withdrawal"
    tokens, staker = match["reserve"].fields().take("coins", "address")
    if bill is not None:
        served = "stake_withdrawal_request"
        tokens = amount = bill.fields().coins() or burn.fields().coins() or tokens
    else:
        tokens, amount = match["paid"].fields().take("coins", "coins")
    return _draft(
        served,
        staker or burn["source"],
        burn["destination"],
        match["proxy"]["destination"],
        amount,
        failed=burn.failed,
        ts_nft=_find_bill(bill),
        tokens_burnt=tokens,
    )


@rule(call(MINT_TOKENS).where(_is_to_treasury).after(_BILL_BURNED.maybe).then(_MINTED))
def round_deposit(match: Match) -> Block:
    """Draft the minting of hGRAM for a bill at the end of a round."""
    block, proxy = match.block, match["proxy"]
    body = block.fields()
    coins = body.coins()
    tokens, _, staker = proxy.fields().take("coins", "coins", "address")
    return _draft(
        "stake_deposit",
        staker or body.address(),
        match["minted"]["destination"],
        proxy["destination"],
        coins,
        failed=block.failed,
        tokens_minted=tokens,
        ts_nft=match.column("bill_burned", "source"),
    )


@rule(
    call(BURN_TOKENS)
    .where(_is_to_treasury)
    .after(_BILL_BURNED.maybe)
    .then(
        one_of(
            call(PROXY_BURNED, name="proxy").then(_PAID),
            _BILL,
            call(PROXY_ROLLBACK, name="returned").then(call(ROLLBACK, name="rollback").maybe),
        )
    )
)
def round_withdraw(match: Match) -> Block:
    """Draft the payout of a bill at the end of a round, its postponement or its rollback."""
    block, bill, served = match.block, match.get("bill"), "stake_withdrawal"
    owner, wallet, amount = block.fields().take("coins", "address")[1], None, None
    item = match.column("bill_burned", "source")
    if bill is not None:
        served, item = "stake_withdrawal_request", _find_bill(bill)
        tokens, _, staker, parent = bill.fields().take("coins", 1, "address", "address")
        amount = tokens
    elif "returned" in match:
        tokens, staker = match["returned"].fields().take("coins", "address")
        wallet, parent = match.column("rollback", "destination"), match["returned"]["destination"]
    else:
        tokens, amount, staker = match["proxy"].fields().take("coins", "coins", "address")
        wallet, parent = match["burned"]["destination"], match["proxy"]["destination"]
    return _draft(
        served,
        staker or owner,
        wallet,
        parent,
        amount,
        failed=block.failed or "returned" in match,
        ts_nft=item,
        tokens_burnt=tokens,
    )


RULES = (deposit, withdraw, round_deposit, round_withdraw)

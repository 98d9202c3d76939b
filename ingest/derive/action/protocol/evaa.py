"""EVAA: lending by a master contract with a contract for each user.

Messages from the master to a user's contract begin with a header (version:Coins upgrade_info:(Maybe
^Cell) upgrade_exec:int2), followed by the opcode.
"""

from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.pattern import (
    BOUNCES,
    Match,
    Pattern,
    built,
    call,
    jettons,
    one_of,
)
from tonlake.ingest.derive.action.rule import CALL, JETTON_TRANSFER, TRANSFER, Block, Columns, rule

SUPPLY, WITHDRAW, LIQUIDATE = 0x1, 0x2, 0x3
SUPPLY_USER, WITHDRAW_USER, LIQUIDATE_USER = 0x11, 0x21, 0x31
SUPPLY_SUCCESS, SUPPLY_FAIL = 0x11A, 0x11F
WITHDRAW_COLLATERALIZED, WITHDRAW_SUCCESS, WITHDRAW_FAIL = 0x211, 0x211A, 0x211F
WITHDRAW_NO_FUNDS = 0x00211FE8
LIQUIDATE_SATISFIED, LIQUIDATE_UNSATISFIED = 0x311, 0x31F
LIQUIDATE_SUCCESS, LIQUIDATE_REPORT, LIQUIDATE_FAIL = 0x311A, 0x311D, 0x311F

TON_ASSET = 0x1A4219FE5E60D63AF2A3CC7DCE6FEC69B45C6B5718497A6148E7C232AC87BD8A
"""SHA-256 of "TON"."""
REFUSALS = {
    0x21E6: "withdraw_locked_excess",
    0x21E7: "withdraw_not_collateralized_excess",
    0x21E8: "withdraw_missing_prices_excess",
    0x21EC: "withdraw_execution_crashed",
}
"""Reasons for which a user's contract refuses a withdrawal, by the opcode of its reply."""


def _open_user_body(block: Block) -> Body:
    """Return the body after the header of a message to a user's contract."""
    body = block.message.body()
    body.take("coins", "maybe_ref", 2)
    return body


def _notifies_user(opcode: int, name: str = "") -> Pattern:
    """Return the pattern of a message with header and opcode to a user's contract."""

    def test(block: Block) -> bool:
        return block["destination"] is not None and _open_user_body(block).peek_opcode() == opcode

    return Pattern(CALL).where(test).named(name)


def _find_failure(match: Match) -> str | None:
    """Return the reason why a liquidation failed; None if it succeeded."""
    if "success" in match:
        return None
    if "user" not in match:
        return "immediate_rejection"
    unsatisfied = match.get("unsatisfied")
    if unsatisfied is None:
        return "master_not_enough_liquidity"
    error = unsatisfied.fields().take("address", "address", 256, "child")[3]
    error.take(64 + 256 + 64, "coins")
    code = error.peek_opcode()
    return "liquidation_error" if code is None else f"liquidation_error_0x{code:x}"


_JETTONS_BACK = jettons()
_FINISH = one_of(call(LIQUIDATE_REPORT, LIQUIDATE_FAIL), jettons()).named("report")
_TEXT = built(TRANSFER).maybe


@rule(
    one_of(call(SUPPLY), jettons(carrying=SUPPLY)).then(
        _notifies_user(SUPPLY_USER, "user").then(
            one_of(
                call(SUPPLY_SUCCESS, name="success").then(_TEXT),
                call(SUPPLY_FAIL).then(_TEXT),
                _JETTONS_BACK,
            )
        )
    )
)
def supply(match: Match) -> Block:
    """Draft a supply of coins or jettons, for the sender or for another account."""
    block, notice = match.block, match["user"]
    user = _open_user_body(notice)
    is_ton = block.type != JETTON_TRANSFER
    data: Columns = {
        "sender_jetton_wallet": None,
        "recipient_jetton_wallet": None if is_ton else block["source_secondary"],
        "master_jetton_wallet": None if is_ton else block["destination_secondary"],
        "master": notice["source"],
        "asset_id": hex(user.skip(32 + 64).uint(256)),
        "is_ton": is_ton,
    }
    columns = notice.pick(destination_secondary="destination") | {"evaa_supply_data": data}
    if is_ton:
        columns |= block.pick("source")
        columns |= block.fields().skip(2).show(amount=64, destination="address")
    else:
        columns |= block.pick("source", "source_secondary", "asset", "amount")
        columns["destination"] = block["payload"].copy().skip(32 + 2).address()
    return Block("evaa_supply", columns, failed="success" not in match)


@rule(
    call(WITHDRAW).then(
        _notifies_user(WITHDRAW_USER, "user").then(
            one_of(
                call(WITHDRAW_COLLATERALIZED, name="granted").then(
                    one_of(jettons(), call(WITHDRAW_SUCCESS)).named("payout"),
                    _notifies_user(WITHDRAW_SUCCESS).then(built(TRANSFER)),
                ),
                call(WITHDRAW_COLLATERALIZED, name="granted").then(
                    _notifies_user(WITHDRAW_FAIL).then(call(WITHDRAW_NO_FUNDS, name="no_funds"))
                ),
                call(*REFUSALS, name="refused"),
            )
        )
    )
)
def withdraw(match: Match) -> Block:
    """Draft a withdrawal or a loan of coins or jettons."""
    block = match.block
    asset_id, amount, recipient = block.fields().take(256, 64, "address")
    if "granted" in match:
        amount = match["granted"].fields().take("address", 256, 64)[2]
    reason = "withdraw_no_funds_excess" if "no_funds" in match else None
    if "refused" in match:
        reason = REFUSALS[match["refused"].opcode or 0]
    data = {  # coins have neither wallets nor an asset
        "recipient_jetton_wallet": match.column("payout", "destination_secondary"),
        "master_jetton_wallet": match.column("payout", "source_secondary"),
        "master": block["destination"],
        "fail_reason": reason,
        "asset_id": hex(asset_id),
        "is_ton": asset_id == TON_ASSET,
    }
    columns = {
        "source": block["source"],
        "destination": recipient,
        "destination_secondary": match["user"]["destination"],
        "asset": match.column("payout", "asset"),
        "amount": amount,
        "evaa_withdraw_data": data,
    }
    return Block("evaa_withdraw", columns, failed=reason is not None)


@rule(
    one_of(call(LIQUIDATE), jettons(carrying=LIQUIDATE)).then(
        one_of(
            _notifies_user(LIQUIDATE_USER, "user").then(
                one_of(
                    call(LIQUIDATE_SATISFIED, name="satisfied").then(
                        _notifies_user(LIQUIDATE_SUCCESS, "success").then(_TEXT), _FINISH
                    ),
                    call(LIQUIDATE_SATISFIED, name="satisfied").then(
                        one_of(call(LIQUIDATE_FAIL), _notifies_user(LIQUIDATE_FAIL)), _FINISH
                    ),
                    call(LIQUIDATE_UNSATISFIED, name="unsatisfied").then(_FINISH),
                )
            ),
            call(*BOUNCES),
            _JETTONS_BACK,
        )
    )
)
def liquidate(match: Match) -> Block:
    """Draft a liquidation: a liquidator pays a debt and receives the collateral."""
    block, satisfied = match.block, match.get("satisfied")
    has_jettons = block.type == JETTON_TRANSFER
    body = block["payload"].copy().skip(32) if has_jettons else block.fields()
    columns = block.pick("source") | {"destination": body.address()}
    data: Columns = {"fail_reason": _find_failure(match), "debt_amount": None, "asset_id": None}
    if "user" in match:
        columns["destination_secondary"] = match["user"]["destination"]
    if satisfied is not None:
        *_, asset_id, inner = satisfied.fields().take("address", "address", 256, "child")
        data |= {"debt_amount": inner.skip(64).uint(64), "asset_id": hex(asset_id)}
        columns["amount"] = inner.skip(64 + 64 + 256 + 64).uint(64)
    columns["evaa_liquidate_data"] = data
    return Block("evaa_liquidate", columns, failed="success" not in match)


RULES = (supply, withdraw, liquidate)

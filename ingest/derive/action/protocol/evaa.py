"""EVAA: lending by a master contract with a contract for each user.

Messages from the master to a user's contract begin with a header (version:Coins upgrade_info:(Maybe
^Cell) upgrade_exec:int2), followed by the opcode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import BOUNCES, Match, Pattern, built, call, one_of
from tonlake.ingest.derive.action.protocol.jetton import JETTON_TRANSFER
from tonlake.ingest.derive.action.rule import CALL, TRANSFER, Block, Columns, Draft, rule
from tonlake.ingest.errors import IngestError

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.body import Body

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


def _open_user_body(block: Block) -> Body | None:
    """Return the body after the header of a message to a user's contract; None if it has none."""
    try:
        body = block.message.body()
        body.coins()
        body.maybe_ref()
        return body.skip(2)
    except IngestError:
        return None


def _notifies_user(opcode: int, name: str = "") -> Pattern:
    """Return the pattern of a message with header and opcode to a user's contract."""

    def test(block: Block) -> bool:
        if block.type != CALL or block.columns.get("destination") is None:
            return False
        body = _open_user_body(block)
        return body is not None and body.peek_opcode() == opcode

    return Pattern(CALL).where(test).named(name)


def _asks_with_jettons(opcode: int) -> Pattern:
    """Return the pattern of jettons that carry an opcode for the master."""

    def test(block: Block) -> bool:
        payload = block["payload"]
        return payload is not None and payload.peek_opcode() == opcode

    return built(JETTON_TRANSFER).where(test)


def _read_user(block: Block) -> Body:
    """Return a user message's body after its opcode and query id."""
    body = _open_user_body(block)
    if body is None:
        raise LookupError("a message to a user's contract has no header")
    return body.skip(32 + 64)


def _find_refusal(match: Match) -> str | None:
    if "no_funds" in match:
        return "withdraw_no_funds_excess"
    refused = match.get("refused")
    return None if refused is None else REFUSALS[refused.opcode or 0]


def _read_satisfied(block: Block) -> tuple[int, str, int]:
    """Return the repaid debt, the id of its asset, and the collateral paid for it."""
    body = block.message.arguments().skip(64)
    body.address()
    body.address()
    asset_id, inner = body.uint(256), body.ref()
    debt = inner.skip(64).uint(64)
    return debt, hex(asset_id), inner.skip(64 + 64 + 256 + 64).uint(64)


def _find_failure(match: Match) -> str | None:
    """Return the reason why a liquidation failed; None if it succeeded."""
    if "success" in match:
        return None
    if "user" not in match:
        return "immediate_rejection"
    unsatisfied = match.get("unsatisfied")
    if unsatisfied is None:
        return "master_not_enough_liquidity"
    inner = unsatisfied.message.arguments().skip(64)
    inner.address()
    inner.address()
    error = inner.skip(256).ref().skip(64 + 256 + 64)
    error.coins()
    code = error.peek_opcode()
    return "liquidation_error" if code is None else f"liquidation_error_0x{code:x}"


_JETTONS_BACK = built(JETTON_TRANSFER)
_FINISH = one_of(call(LIQUIDATE_REPORT, LIQUIDATE_FAIL), built(JETTON_TRANSFER)).named("report")
_TEXT = built(TRANSFER).maybe


@rule(
    "evaa.supply",
    one_of(call(SUPPLY), _asks_with_jettons(SUPPLY)).then(
        _notifies_user(SUPPLY_USER, "user").then(
            one_of(
                call(SUPPLY_SUCCESS, name="success").then(_TEXT),
                call(SUPPLY_FAIL).then(_TEXT),
                _JETTONS_BACK,
            )
        )
    ),
)
def supply(match: Match) -> Draft:
    """Draft a supply of coins or jettons, for the sender or for another account."""
    block, notice = match.block, match["user"]
    user = _read_user(notice)
    asset_id = user.uint(256)
    data: Columns = {
        "sender_jetton_wallet": None,
        "recipient_jetton_wallet": None,
        "master_jetton_wallet": None,
        "master": notice.message.source,
        "asset_id": hex(asset_id),
        "is_ton": block.type != JETTON_TRANSFER,
    }
    columns: Columns = {"destination_secondary": notice.message.destination}
    if block.type == JETTON_TRANSFER:
        data |= {
            "recipient_jetton_wallet": block["source_secondary"],
            "master_jetton_wallet": block["destination_secondary"],
        }
        columns |= {
            "source": block["source"],
            "source_secondary": block["source_secondary"],
            "destination": block["payload"].copy().skip(32 + 2).address(),
            "asset": block["asset"],
            "amount": block["amount"],
        }
    else:
        body = block.message.arguments().skip(64 + 2)
        columns |= {
            "source": block.message.source,
            "amount": body.uint(64),
            "destination": body.address(),
        }
    columns["evaa_supply_data"] = data
    return Draft("evaa_supply", columns, failed="success" not in match)


@rule(
    "evaa.withdraw",
    call(WITHDRAW).then(
        _notifies_user(WITHDRAW_USER, "user").then(
            one_of(
                call(WITHDRAW_COLLATERALIZED, name="granted").then(
                    one_of(built(JETTON_TRANSFER), call(WITHDRAW_SUCCESS)).named("payout"),
                    _notifies_user(WITHDRAW_SUCCESS).then(built(TRANSFER)),
                ),
                call(WITHDRAW_COLLATERALIZED, name="granted").then(
                    _notifies_user(WITHDRAW_FAIL).then(call(WITHDRAW_NO_FUNDS, name="no_funds"))
                ),
                call(*REFUSALS, name="refused"),
            )
        )
    ),
)
def withdraw(match: Match) -> Draft:
    """Draft a withdrawal or a loan of coins or jettons."""
    block, granted = match.block, match.get("granted")
    body = block.message.arguments().skip(64)
    asset_id, amount, recipient = body.uint(256), body.uint(64), body.address()
    if granted is not None:
        answer = granted.message.arguments().skip(64)
        answer.address()
        amount = answer.skip(256).uint(64)
    payout = match.get("payout")
    jettons = payout if payout is not None and payout.type == JETTON_TRANSFER else None
    reason = _find_refusal(match)
    data = {
        "recipient_jetton_wallet": None if jettons is None else jettons["destination_secondary"],
        "master_jetton_wallet": None if jettons is None else jettons["source_secondary"],
        "master": block.message.destination,
        "fail_reason": reason,
        "asset_id": hex(asset_id),
        "is_ton": asset_id == TON_ASSET,
    }
    columns = {
        "source": block.message.source,
        "destination": recipient,
        "destination_secondary": match["user"].message.destination,
        "asset": None if jettons is None else jettons["asset"],
        "amount": amount,
        "evaa_withdraw_data": data,
    }
    return Draft("evaa_withdraw", columns, failed=reason is not None)


@rule(
    "evaa.liquidate",
    one_of(call(LIQUIDATE), _asks_with_jettons(LIQUIDATE)).then(
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
    ),
)
def liquidate(match: Match) -> Draft:
    """Draft a liquidation: a liquidator pays a debt and receives the collateral."""
    block = match.block
    is_jetton = block.type == JETTON_TRANSFER
    if is_jetton:
        body, liquidator = block["payload"].copy().skip(32), block["source"]
    else:
        body, liquidator = block.message.arguments().skip(64), block.message.source
    borrower = body.address()
    columns: Columns = {"source": liquidator, "destination": borrower}
    data: Columns = {"fail_reason": _find_failure(match), "debt_amount": None, "asset_id": None}
    notice, satisfied = match.get("user"), match.get("satisfied")
    if notice is not None:
        columns["destination_secondary"] = notice.message.destination
    if satisfied is not None:
        data["debt_amount"], data["asset_id"], columns["amount"] = _read_satisfied(satisfied)
    columns["evaa_liquidate_data"] = data
    return Draft("evaa_liquidate", columns, failed="success" not in match)


RULES = (supply, withdraw, liquidate)
"""In order of precedence."""

"""Cocoon: payments for computing between workers, proxies and their clients.

The contract of a client or worker forwards requests of its owner to the proxy (65448ff4, 4d725d2c);
the proxy pays (c59a7cd3) and returns the remaining coins (2565934c).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import Match, Pattern, call
from tonlake.ingest.derive.action.rule import Block, Columns, Draft, Rule, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.action.body import Body

WORKER_PAYOUT, LAST_WORKER_PAYOUT = 0xA040AD28, 0xF5F26A36
WORKER_REQUEST, CLIENT_REQUEST = 0x4D725D2C, 0x65448FF4
PROXY_PAYOUT, PROXY_CHARGE = 0x7610E6EB, 0xBB63FF93
TOP_UP, REGISTER, CHANGE_SECRET = 0xF172E6C2, 0xC45F9F3B, 0xA9357034
INCREASE_STAKE, WITHDRAW, REQUEST_REFUND = 0x6A1F6A60, 0xDA068E78, 0xFAFA6CC1
GRANT_REFUND, WALLET_SEND = 0xEFD711E1, 0x9C69F376
REGISTER_PROXY, UNREGISTER_PROXY = 0x927C7CB5, 0x6D49EAF2
PAYOUT, EXCESSES = 0xC59A7CD3, 0x2565934C

_EXTERN = 1


def _read_expected(body: Body) -> str | None:
    """Read an address as text; an external one as its length in bits and its digits."""
    if body.copy().uint(2) != _EXTERN:
        return body.address()
    bits = body.skip(2).uint(9)
    return f"{bits};{body.uint(bits):x}" if bits else None


def _read_signed(body: Body, field: str) -> Columns:
    """Read number and address after the query id, at the positions where the service reads them.

    The real fields there are the address for excesses and a signature; the numbers of the signed
    part are in the first reference. Actions show the values of the service.
    """
    return {field: body.uint(64), "expected_address": _read_expected(body)}


def _is_aborted(block: Block | None) -> bool:
    return block is None or block.transaction.aborted


def _owner_rule(name: str, opcode: int, fill: Callable[[Body, Columns], Columns]) -> Rule:
    """Return the rule of a request from a client's owner to the client's contract.

    ``fill`` reads the fields after the query id, and returns them as data of the action.
    """

    def make(match: Match) -> Draft:
        block = match.block
        body = block.message.arguments()
        columns: Columns = {
            "source": block.message.source,
            "destination": block.message.destination,
        }
        data: Columns = {"query_id": body.uint(64)}
        columns[f"{name}_data"] = data | fill(body, columns)
        return Draft(name, columns, failed=_is_aborted(block))

    return Rule(f"cocoon.{name.removeprefix('cocoon_')}", call(opcode).then(*_REPLIES), make)


def _fill_stake(body: Body, columns: Columns) -> Columns:
    columns["amount"] = body.coins()
    return {"new_stake": columns["amount"]}


_EXCESSES = call(EXCESSES, name="excesses")
_PAYOUT = call(PAYOUT, name="payout")
_REQUEST: Pattern = call(CLIENT_REQUEST, name="request")
_REPLIES = (_EXCESSES, _REQUEST)


@rule(
    "cocoon.worker_payout",
    call(WORKER_PAYOUT, LAST_WORKER_PAYOUT).then(
        call(WORKER_REQUEST, name="request").then(_PAYOUT, _EXCESSES.maybe)
    ),
)
def worker_payout(match: Match) -> Draft:
    """Draft a payout from the proxy to a worker's owner, through the worker's contract."""
    request, payout = match["request"], match["payout"]
    worker = request.message.arguments()
    asked = match.block.message.arguments()
    query_id = asked.uint(64)
    worker.skip(64).address()
    data = {
        "payout_type": "last" if match.block.opcode == LAST_WORKER_PAYOUT else "regular",
        "query_id": query_id,
        "new_tokens": asked.uint(64),
        "worker_state": worker.uint(2),
        "worker_tokens": worker.uint(64),
    }
    excesses = match.get("excesses")
    columns = {
        "source": match.block.message.source if excesses is None else excesses.message.destination,
        "source_secondary": request.message.source,
        "destination": payout.message.destination,
        "amount": payout.message.value,
        "cocoon_worker_payout_data": data,
    }
    return Draft("cocoon_worker_payout", columns, failed=_is_aborted(payout))


@rule("cocoon.proxy_payout", call(PROXY_PAYOUT).then(_PAYOUT, _EXCESSES))
def proxy_payout(match: Match) -> Draft:
    """Draft a payout from a proxy to its owner."""
    block, payout = match.block, match["payout"]
    columns = {
        "source": block.message.destination,
        "destination": payout.message.destination,
        "destination_secondary": match["excesses"].message.destination,
        "cocoon_proxy_payout_data": {"query_id": block.message.arguments().uint(64)},
    }
    return Draft("cocoon_proxy_payout", columns, failed=_is_aborted(payout))


@rule("cocoon.proxy_charge", call(PROXY_CHARGE).then(*_REPLIES))
def proxy_charge(match: Match) -> Draft:
    """Draft a charge by a proxy to a client; no coins move."""
    body = match.block.message.arguments()
    data = {"query_id": body.uint(64), **_read_signed(body, "new_tokens_used")}
    columns = {
        "source": match.block.message.destination,
        "destination": match["request"].message.destination,
        "amount": 0,
        "cocoon_proxy_charge_data": data,
    }
    return Draft("cocoon_proxy_charge", columns, failed=_is_aborted(match.block))


@rule("cocoon.client_top_up", call(TOP_UP).then(_REQUEST.then(_EXCESSES)))
def client_top_up(match: Match) -> Draft:
    """Draft a top-up of a client's account with a proxy."""
    block = match.block
    body = block.message.arguments()
    columns = {
        "source": block.message.source,
        "destination": block.message.destination,
        "destination_secondary": match["request"].message.destination,
        "cocoon_client_top_up_data": {"query_id": body.uint(64)},
        "amount": body.coins(),
    }
    return Draft("cocoon_client_top_up", columns, failed=_is_aborted(block))


@rule("cocoon.register_proxy", call(REGISTER_PROXY).then(_EXCESSES))
def register_proxy(match: Match) -> Draft:
    """Draft the registration of a proxy with the root contract, or its removal."""
    block = match.block
    body = block.message.arguments()
    data: Columns = {"query_id": body.uint(64)}
    name = "cocoon_register_proxy"
    if block.opcode == UNREGISTER_PROXY:
        name = "cocoon_unregister_proxy"
        data["seqno"] = body.uint(32)
    columns = {"destination": block.message.destination, f"{name}_data": data}
    return Draft(name, columns, failed=_is_aborted(block))


@rule("cocoon.unregister_proxy", call(UNREGISTER_PROXY).then(_EXCESSES))
def unregister_proxy(match: Match) -> Draft:
    """Draft the registration of a proxy with the root contract, or its removal."""
    block = match.block
    body = block.message.arguments()
    data: Columns = {"query_id": body.uint(64)}
    name = "cocoon_register_proxy"
    if block.opcode == UNREGISTER_PROXY:
        name = "cocoon_unregister_proxy"
        data["seqno"] = body.uint(32)
    columns = {"destination": block.message.destination, f"{name}_data": data}
    return Draft(name, columns, failed=_is_aborted(block))


@rule(
    "cocoon.client_request_refund",
    call(WALLET_SEND, REQUEST_REFUND)
    .then(*_REPLIES)
    .after(call(WALLET_SEND, name="wrapper").maybe),
)
def client_request_refund(match: Match) -> Draft:
    """Draft a client's request for a refund, sent directly or through its wallet."""
    block = match.block
    data = {
        "query_id": block.message.arguments().uint(64),
        "via_wallet": "wrapper" in match or block.opcode == WALLET_SEND,
    }
    columns = {
        "source": block.message.source,
        "destination": block.message.destination,
        "cocoon_client_request_refund_data": data,
    }
    return Draft("cocoon_client_request_refund", columns, failed=_is_aborted(block))


@rule("cocoon.grant_refund", call(GRANT_REFUND).then(_REQUEST.then(_PAYOUT, _EXCESSES)))
def grant_refund(match: Match) -> Draft:
    """Draft a refund of unused coins from a proxy to a client."""
    request, payout = match["request"], match["payout"]
    body = match.block.message.arguments()
    data = {"query_id": body.uint(64), **_read_signed(body, "new_tokens_used")}
    columns = {
        "source": match.block.message.destination,
        "source_secondary": request.message.destination,
        "destination": payout.message.destination,
        "amount": payout.message.value,
        "cocoon_grant_refund_data": data,
    }
    return Draft("cocoon_grant_refund", columns, failed=_is_aborted(payout))


@rule("cocoon.client_withdraw", call(WITHDRAW).then(_REQUEST.then(_EXCESSES.maybe, _PAYOUT)))
def client_withdraw(match: Match) -> Draft:
    """Draft a withdrawal by a client's owner, paid by the proxy."""
    block, amount = match.block, match["payout"].message.value
    data = {"query_id": block.message.arguments().uint(64), "withdraw_amount": amount}
    columns = {
        "source": block.message.source,
        "destination": block.message.destination,
        "amount": amount,
        "cocoon_client_withdraw_data": data,
    }
    return Draft("cocoon_client_withdraw", columns, failed=_is_aborted(block))


RULES = (
    worker_payout,
    proxy_payout,
    proxy_charge,
    client_top_up,
    register_proxy,
    unregister_proxy,
    _owner_rule(
        "cocoon_client_register", REGISTER, lambda body, _columns: {"nonce": body.uint(64)}
    ),
    _owner_rule(
        "cocoon_client_change_secret_hash",
        CHANGE_SECRET,
        lambda body, _columns: {"new_secret_hash": body.hex(256)},
    ),
    client_request_refund,
    grant_refund,
    _owner_rule("cocoon_client_increase_stake", INCREASE_STAKE, _fill_stake),
    client_withdraw,
)
"""In order of precedence."""

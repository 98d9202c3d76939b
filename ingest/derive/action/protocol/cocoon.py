"""Cocoon: payments for computing between workers, proxies and their clients.

The contract of a client or worker forwards requests of its owner to the proxy (65448ff4, 4d725d2c);
the proxy pays (c59a7cd3) and returns the remaining coins (2565934c).
"""

from tonlake.ingest.derive.action.pattern import Match, Pattern, call
from tonlake.ingest.derive.action.rule import Block, Columns, rule

WORKER_PAYOUT, LAST_WORKER_PAYOUT = 0xA040AD28, 0xF5F26A36
WORKER_REQUEST, CLIENT_REQUEST = 0x4D725D2C, 0x65448FF4
PROXY_PAYOUT, PROXY_CHARGE = 0x7610E6EB, 0xBB63FF93
TOP_UP, REGISTER, CHANGE_SECRET = 0xF172E6C2, 0xC45F9F3B, 0xA9357034
INCREASE_STAKE, WITHDRAW, REQUEST_REFUND = 0x6A1F6A60, 0xDA068E78, 0xFAFA6CC1
GRANT_REFUND, WALLET_SEND = 0xEFD711E1, 0x9C69F376
REGISTER_PROXY, UNREGISTER_PROXY = 0x927C7CB5, 0x6D49EAF2
PAYOUT, EXCESSES = 0xC59A7CD3, 0x2565934C

_EXTERN = 1


def _show_signed(match: Match) -> Columns:
    """Read number and address after the query id, at the positions where the service reads them.

    The real fields there are the address for excesses and a signature; the numbers of the signed
    part are in the first reference. Actions show the values of the service: an external address as
    its length in bits and its digits.
    """
    body = match.block.arguments()
    data = body.show(query_id=64, new_tokens_used=64)
    if body.copy().uint(2) != _EXTERN:
        return data | {"expected_address": body.address()}
    bits = body.skip(2).uint(9)
    return data | {"expected_address": f"{bits};{body.uint(bits):x}" if bits else None}


def _draft(name: str, columns: Columns, data: Columns, decisive: Block) -> Block:
    """Return a draft that failed if the decisive transaction was aborted."""
    failed = decisive.transaction.aborted
    return Block(name, columns | {f"{name}_data": data}, failed=failed)


def _draft_request(match: Match, name: str, **fields: int | str) -> Block:
    """Draft a request of a client's owner to its contract, with its ``fields`` as the data."""
    block = match.block
    data = block.arguments().show(query_id=64, **fields)
    return _draft(name, block.pick("source", "destination"), data, block)


_EXCESSES, _PAYOUT = call(EXCESSES, name="excesses"), call(PAYOUT, name="payout")
_REQUEST: Pattern = call(CLIENT_REQUEST, name="request")
_REPLIES = (_EXCESSES, _REQUEST)


@rule(
    call(WORKER_PAYOUT, LAST_WORKER_PAYOUT).then(
        call(WORKER_REQUEST, name="request").then(_PAYOUT, _EXCESSES.maybe)
    )
)
def worker_payout(match: Match) -> Block:
    """Draft a payout from the proxy to a worker's owner, through the worker's contract."""
    block, request, payout = match.block, match["request"], match["payout"]
    _receiver, state, tokens = request.fields().take("address", 2, 64)
    data = {
        "payout_type": "last" if block.opcode == LAST_WORKER_PAYOUT else "regular",
        **block.arguments().show(query_id=64, new_tokens=64),
        "worker_state": state,
        "worker_tokens": tokens,
    }
    columns = request.pick(source_secondary="source") | payout.pick("destination", amount="value")
    sender = match.get("excesses")
    columns["source"] = block["source"] if sender is None else sender["destination"]
    return _draft("cocoon_worker_payout", columns, data, payout)


@rule(call(PROXY_PAYOUT).then(_PAYOUT, _EXCESSES))
def proxy_payout(match: Match) -> Block:
    """Draft a payout from a proxy to its owner."""
    block, payout = match.block, match["payout"]
    columns = block.pick(source="destination") | payout.pick("destination")
    columns |= match["excesses"].pick(destination_secondary="destination")
    return _draft("cocoon_proxy_payout", columns, block.arguments().show(query_id=64), payout)


@rule(call(PROXY_CHARGE).then(*_REPLIES))
def proxy_charge(match: Match) -> Block:
    """Draft a charge by a proxy to a client; no coins move."""
    columns = match.block.pick(source="destination") | match["request"].pick("destination")
    data = _show_signed(match)
    return _draft("cocoon_proxy_charge", columns | {"amount": 0}, data, match.block)


@rule(call(TOP_UP).then(_REQUEST.then(_EXCESSES)))
def client_top_up(match: Match) -> Block:
    """Draft a top-up of a client's account with a proxy."""
    block = match.block
    query_id, amount = block.arguments().take(64, "coins")
    columns = block.pick("source", "destination") | {"amount": amount}
    columns |= match["request"].pick(destination_secondary="destination")
    return _draft("cocoon_client_top_up", columns, {"query_id": query_id}, block)


@rule(call(REGISTER_PROXY).then(_EXCESSES))
def register_proxy(match: Match) -> Block:
    """Draft the registration of a proxy with the root contract."""
    data = match.block.arguments().show(query_id=64)
    return _draft("cocoon_register_proxy", match.block.pick("destination"), data, match.block)


@rule(call(UNREGISTER_PROXY).then(_EXCESSES))
def unregister_proxy(match: Match) -> Block:
    """Draft the removal of a proxy from the root contract."""
    data = match.block.arguments().show(query_id=64, seqno=32)
    return _draft("cocoon_unregister_proxy", match.block.pick("destination"), data, match.block)


@rule(call(REGISTER).then(*_REPLIES))
def client_register(match: Match) -> Block:
    """Draft the registration of a client with a proxy."""
    return _draft_request(match, "cocoon_client_register", nonce=64)


@rule(call(CHANGE_SECRET).then(*_REPLIES))
def client_change_secret_hash(match: Match) -> Block:
    """Draft the change of a client's secret."""
    draft = _draft_request(match, "cocoon_client_change_secret_hash", new_secret_hash=256)
    data = draft.columns["cocoon_client_change_secret_hash_data"]
    data["new_secret_hash"] = f"{data['new_secret_hash']:064x}"
    return draft


@rule(
    call(WALLET_SEND, REQUEST_REFUND).then(*_REPLIES).after(call(WALLET_SEND, name="wrapper").maybe)
)
def client_request_refund(match: Match) -> Block:
    """Draft a client's request for a refund, sent directly or through its wallet."""
    draft = _draft_request(match, "cocoon_client_request_refund")
    draft.columns["cocoon_client_request_refund_data"]["via_wallet"] = (
        "wrapper" in match or match.block.opcode == WALLET_SEND
    )
    return draft


@rule(call(GRANT_REFUND).then(_REQUEST.then(_PAYOUT, _EXCESSES)))
def grant_refund(match: Match) -> Block:
    """Draft a refund of unused coins from a proxy to a client."""
    payout = match["payout"]
    columns = match.block.pick(source="destination") | payout.pick("destination", amount="value")
    columns |= match["request"].pick(source_secondary="destination")
    return _draft("cocoon_grant_refund", columns, _show_signed(match), payout)


@rule(call(INCREASE_STAKE).then(*_REPLIES))
def client_increase_stake(match: Match) -> Block:
    """Draft a payment to a client's stake."""
    draft = _draft_request(match, "cocoon_client_increase_stake", new_stake="coins")
    draft.columns["amount"] = draft.columns["cocoon_client_increase_stake_data"]["new_stake"]
    return draft


@rule(call(WITHDRAW).then(_REQUEST.then(_EXCESSES.maybe, _PAYOUT)))
def client_withdraw(match: Match) -> Block:
    """Draft a withdrawal by a client's owner, paid by the proxy."""
    draft, amount = _draft_request(match, "cocoon_client_withdraw"), match["payout"]["value"]
    draft.columns["cocoon_client_withdraw_data"]["withdraw_amount"] = amount
    draft.columns["amount"] = amount
    return draft


RULES = (
    *(worker_payout, proxy_payout, proxy_charge, client_top_up, register_proxy, unregister_proxy),
    *(client_register, client_change_secret_hash, client_request_refund, grant_refund),
    *(client_increase_stake, client_withdraw),
)

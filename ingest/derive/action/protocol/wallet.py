"""Wallets: plugins of version 4, extensions of version 5; vesting wallets; multisigs of version 2.

A request that adds or removes extensions is 7369676e wallet_id:uint32 valid_until:uint32
seqno:uint32 out_actions:(Maybe ^OutList) extended:(Maybe ExtendedList) signature:bits512; each item
of the list has an action (02 adds, 03 removes an address, 04 allows or forbids signatures) and, in
a reference, the next item.

Columns and values are those of TON Center's test cases. The rule itself is not published; these
parts are inferred: which of several extensions is shown (here the first), when
``signature_allowed`` has a value (here with action 04 in the same request), and that internal
requests remain calls.
"""

import base64

from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.derive.action.body import Body
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.pattern import Match, call, comment, one_of
from tonlake.ingest.derive.action.rule import TRANSFER, Block, rule
from tonlake.ingest.errors import BodyError, IngestError

PAYMENT_REQUEST, PAYMENT_CONFIRMED = 0x706C7567, 0xF06C7567
PAYMENT, DESTRUCT = 0x73756273, 0x64737472


@rule(
    call(PAYMENT_CONFIRMED)
    .then(call(PAYMENT, name="payment"))
    .after(call(PAYMENT_REQUEST, name="request").maybe),
    name="subscription.subscribe",
)
def subscribe(match: Match) -> Block:
    """Draft the payment of a wallet to its subscription, which pays the beneficiary."""
    block, request = match.block, match.get("request")
    columns = block.pick("source", amount="value", destination_secondary="destination")
    if request is not None:
        columns["amount"] = request.fields().coins()
    columns["destination"] = match["payment"]["destination"]
    failed = request is not None and request.failed
    return Block("subscribe", columns, failed=failed)


@rule(call(DESTRUCT).then(call(DESTRUCT, name="notice").maybe), name="subscription.unsubscribe")
def unsubscribe(match: Match) -> Block:
    """Draft the removal of a subscription by its wallet, which notifies the beneficiary."""
    columns = match.block.pick("source", destination_secondary="destination")
    columns["destination"] = match.column("notice", "destination")
    return Block("unsubscribe", columns)


EXTERNAL_REQUEST = 0x7369676E
_ADD, _REMOVE, _ALLOW_SIGNATURES = 2, 3, 4
_TYPES = {_ADD: "wallet_v5_add_extension", _REMOVE: "wallet_v5_remove_extension"}
_SIGNATURE_BITS = 512
_SUCCESSES = frozenset((0, 1, None))


def _read_changes(body: Body) -> tuple[list[tuple[int, str | None]], bool | None]:
    """Read a request from ``out_actions`` on: its changes, and whether it allows signatures.

    Raises BodyError if an action is unknown, or is not followed by just a signature.
    """
    body.maybe_ref()
    changes: list[tuple[int, str | None]] = []
    is_allowed = None
    item = body if body.bit() else None
    while item is not None:
        kind = item.uint(8)
        if kind in _TYPES:
            changes.append((kind, item.address()))
        elif kind == _ALLOW_SIGNATURES:
            is_allowed = item.bit()
        else:
            raise BodyError(f"unknown extended action {kind} of a wallet of version 5")
        item = item.child() if item.refs_left else None
    if body.bits_left != _SIGNATURE_BITS:
        raise BodyError("the extended actions are not followed by a signature")
    return changes, is_allowed


@rule(call(EXTERNAL_REQUEST), name="wallet_v5.extension")
def extension(match: Match) -> Block | None:
    """Draft the first change of extensions; the exit code determines whether it failed."""
    message, transaction = match.block.message, match.block.transaction
    if message.source is not None:
        return None
    body = message.arguments()
    wallet_id, valid_until, seqno = body.take(32, 32, 32)
    changes, is_allowed = _read_changes(body)
    if not changes:
        return None
    kind, address = changes[0]
    data = {
        "wallet_id": wallet_id,
        "seqno": seqno,
        "valid_until": valid_until,
        "signature_allowed": is_allowed,
    }
    columns = {
        "source": message.destination,
        "destination": address,
        "wallet_v5_extension_data": data,
    }
    failed = transaction.aborted or transaction.exit_code not in _SUCCESSES
    return Block(_TYPES[kind], columns, failed=failed)


SEND, SENT = 0xA7733ACD, 0xF7733ACD
ADD_WHITELIST, WHITELIST_ADDED = 0x7258A69B, 0xF258A69B
_INT_MSG_FLAGS = 4
"""int_msg_info$0 ihr_disabled bounce bounced"""


def _hash_body(requested: Body) -> bytes | None:
    """Return the hash of the body of a message; None if it cannot be parsed.

    TL-B: message$_ info:CommonMsgInfoRelaxed init:(Maybe ...) body:(Either X ^X).
    """
    try:
        row = MessageDecoder(requested.tree, None).decode_row(requested.cell)
    except (IngestError, ValueError, LookupError):
        return None
    body_hash: bytes | None = row["body_hash"]
    return body_hash


def _read_accounts(body: Body) -> list[str]:
    """Read one address per cell, along the chain of first references."""
    accounts = []
    while True:
        account = body.address()
        if account is not None:
            accounts.append(account)
        if not body.refs_left:
            return accounts
        body = body.child()


@rule(call(SEND).then(call(SENT)), name="vesting.send_message")
def send_message(match: Match) -> Block:
    """Draft a message that the owner sends from the vesting wallet."""
    block = match.block
    query_id, _mode, inner = block.arguments().take(64, 8, "child")
    data = {"query_id": query_id, "message_boc": inner.copy().boc(crc32c=False)}
    body_hash = _hash_body(inner)
    *_, destination, amount = inner.take(_INT_MSG_FLAGS, "address", "address", "coins")
    columns = block.pick("source", "destination") | {
        "destination_secondary": destination,
        "amount": amount,
        "vesting_send_message_data": data,
    }
    sent = [each for each in block.transaction.out_msgs if each.destination == destination]
    if body_hash is None:
        is_sent = any(each.value == amount for each in sent)
    else:
        bodies = (parse_boc(each.boc) for each in sent if each.boc is not None)
        is_sent = any(body.hash(body.roots[0]) == body_hash for body in bodies)
    return Block("vesting_send_message", columns, failed=not is_sent)


@rule(call(ADD_WHITELIST).then(call(WHITELIST_ADDED)), name="vesting.add_whitelist")
def add_whitelist(match: Match) -> Block:
    """Draft the addition of accounts to the whitelist for locked coins."""
    body = match.block.arguments()
    data = {"query_id": body.uint(64), "accounts_added": _read_accounts(body)}
    columns = match.block.pick("source", "destination") | {"vesting_add_whitelist_data": data}
    return Block("vesting_add_whitelist", columns)


NEW_ORDER, INIT_ORDER = 0xF718510F, 0x9C73FBA2
APPROVE, APPROVE_ACCEPTED, APPROVE_REJECTED = 0xA762230F, 0x82609BF6, 0xAFAF283E
EXECUTE = 0x75097F5D
ORDER = "MultisigOrder"
"""Interface of an order; without it, messages of an order are ordinary calls."""


def _find_signers(interfaces: Interfaces, order: str | None) -> list[str] | None:
    """Return the signers of an order; None if the order is unknown."""
    facts = interfaces.find(order, ORDER)
    return None if facts is None else [each for each in facts.get("signers") or () if each]


@rule(call(NEW_ORDER).then(call(INIT_ORDER, name="init")), name="multisig.create_order")
def create_order(match: Match) -> Block | None:
    """Draft the creation of an order. TL-B: new_order and order_init of multisig v2."""
    block, init = match.block, match["init"]
    signers = _find_signers(match.interfaces, init["destination"])
    if signers is None:
        return None
    body, started = block.arguments(), init.fields()
    started.take(8 + 48, "child", "child")
    shown = body.show(query_id=64, order_seqno=256, is_created_by_signer="bit")
    shown["is_signed_by_creator"] = started.bit()
    shown |= body.show(creator_index=8, expiration_date=48)
    shown["order_boc"] = body.child().boc(crc32c=False)
    columns = block.pick("source", "destination") | {
        "destination_secondary": init["destination"],
        "multisig_create_order_data": shown,
    }
    return Block("multisig_create_order", columns, extra_accounts=signers)


@rule(
    one_of(call(APPROVE), comment("approve")).then(
        one_of(call(APPROVE_ACCEPTED), call(APPROVE_REJECTED, name="rejected"))
    ),
    name="multisig.approve",
)
def approve(match: Match) -> Block | None:
    """Draft the approval of an order by a call or a comment; the order accepts or rejects it."""
    block, rejected = match.block, match.get("rejected")
    signers = _find_signers(match.interfaces, block["destination"])
    if signers is None:
        return None
    data = {
        "signer_index": -1 if block.type == TRANSFER else block.fields().uint(8),
        "exit_code": 0 if rejected is None else rejected.fields().uint(32),
    }
    columns = block.pick("source", "destination") | {"multisig_approve_data": data}
    return Block("multisig_approve", columns, failed=rejected is not None, extra_accounts=signers)


@rule(call(EXECUTE), name="multisig.execute")
def execute(match: Match) -> Block | None:
    """Draft the execution of an approved order by the multisig wallet."""
    block = match.block
    signers = _find_signers(match.interfaces, block["source"])
    if signers is None:
        return None
    body = block.arguments()
    data = body.show(query_id=64, order_seqno=256, expiration_date=48, approvals_num=8)
    data["signers_hash"] = base64.b64encode(body.uint(256).to_bytes(32, "big")).decode()
    data["order_boc"] = body.child().boc(crc32c=False)
    columns = block.pick("source", "destination") | {"multisig_execute_data": data}
    return Block("multisig_execute", columns, failed=block.failed, extra_accounts=signers)


RULES = (create_order, approve, execute)

"""Multisig wallets, version 2: creation, approval and execution of orders."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from tonlake.ingest.derive.action.pattern import Match, call, comment, one_of
from tonlake.ingest.derive.action.rule import TRANSFER, Draft, rule

if TYPE_CHECKING:
    from tonlake.ingest.derive.action.interface import Interfaces

NEW_ORDER, INIT_ORDER = 0xF718510F, 0x9C73FBA2
APPROVE, APPROVE_ACCEPTED, APPROVE_REJECTED = 0xA762230F, 0x82609BF6, 0xAFAF283E
EXECUTE = 0x75097F5D
ORDER = "MultisigOrder"
"""Interface of an order; without it, messages of an order are ordinary calls."""


def _find_signers(interfaces: Interfaces, order: str | None) -> list[str] | None:
    """Return the signers of an order; None if the order is unknown."""
    facts = interfaces.find(order, ORDER)
    return None if facts is None else [each for each in facts.get("signers") or () if each]


@rule("multisig.create_order", call(NEW_ORDER).then(call(INIT_ORDER, name="init")))
def create_order(match: Match) -> Draft | None:
    """Draft the creation of an order. TL-B: new_order and order_init of multisig v2."""
    block, init = match.block, match["init"]
    signers = _find_signers(match.interfaces, init.message.destination)
    if signers is None:
        return None
    body = block.message.arguments()
    query_id, order_seqno = body.uint(64), body.uint(256)
    is_signer, index, expiration = body.bit(), body.uint(8), body.uint(48)
    started = init.message.arguments().skip(64 + 8)
    started.skip(48).ref()
    started.ref()
    data = {
        "query_id": query_id,
        "order_seqno": order_seqno,
        "is_created_by_signer": is_signer,
        "is_signed_by_creator": started.bit(),
        "creator_index": index,
        "expiration_date": expiration,
        "order_boc": body.ref().boc(crc32c=False),
    }
    columns = {
        "source": block.message.source,
        "destination": block.message.destination,
        "destination_secondary": init.message.destination,
        "multisig_create_order_data": data,
    }
    return Draft("multisig_create_order", columns, extra_accounts=signers)


@rule(
    "multisig.approve",
    one_of(call(APPROVE), comment("approve")).then(
        one_of(call(APPROVE_ACCEPTED), call(APPROVE_REJECTED, name="rejected"))
    ),
)
def approve(match: Match) -> Draft | None:
    """Draft the approval of an order by a call or a comment; the order accepts or rejects it."""
    block, rejected = match.block, match.get("rejected")
    message = block.message
    signers = _find_signers(match.interfaces, message.destination)
    if signers is None:
        return None
    is_comment = block.type == TRANSFER
    data = {
        "signer_index": -1 if is_comment else message.arguments().skip(64).uint(8),
        "exit_code": 0 if rejected is None else rejected.message.arguments().skip(64).uint(32),
    }
    columns = {
        "source": message.source,
        "destination": message.destination,
        "multisig_approve_data": data,
    }
    return Draft("multisig_approve", columns, failed=rejected is not None, extra_accounts=signers)


@rule("multisig.execute", call(EXECUTE))
def execute(match: Match) -> Draft | None:
    """Draft the execution of an approved order by the multisig wallet."""
    message = match.block.message
    signers = _find_signers(match.interfaces, message.source)
    if signers is None:
        return None
    body = message.arguments()
    data = {
        "query_id": body.uint(64),
        "order_seqno": body.uint(256),
        "expiration_date": body.uint(48),
        "approvals_num": body.uint(8),
        "signers_hash": base64.b64encode(body.uint(256).to_bytes(32, "big")).decode(),
        "order_boc": body.ref().boc(crc32c=False),
    }
    columns = {
        "source": message.source,
        "destination": message.destination,
        "multisig_execute_data": data,
    }
    return Draft("multisig_execute", columns, failed=match.block.failed, extra_accounts=signers)


RULES = (create_order, approve, execute)
"""In order of precedence."""

"""Multisig wallets, version 2: creation, approval and execution of orders."""

import base64

from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.pattern import Match, call, comment, one_of
from tonlake.ingest.derive.action.rule import TRANSFER, Draft, rule

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
    signers = _find_signers(match.interfaces, init["destination"])
    if signers is None:
        return None
    body, started = block.arguments(), init.fields()
    started.take(8 + 48, "ref", "ref")
    shown = body.show(query_id=64, order_seqno=256, is_created_by_signer="bit")
    shown["is_signed_by_creator"] = started.bit()
    shown |= body.show(creator_index=8, expiration_date=48)
    shown["order_boc"] = body.ref().boc(crc32c=False)
    columns = block.pick("source", "destination") | {
        "destination_secondary": init["destination"],
        "multisig_create_order_data": shown,
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
    signers = _find_signers(match.interfaces, block["destination"])
    if signers is None:
        return None
    data = {
        "signer_index": -1 if block.type == TRANSFER else block.fields().uint(8),
        "exit_code": 0 if rejected is None else rejected.fields().uint(32),
    }
    columns = block.pick("source", "destination") | {"multisig_approve_data": data}
    return Draft("multisig_approve", columns, failed=rejected is not None, extra_accounts=signers)


@rule("multisig.execute", call(EXECUTE))
def execute(match: Match) -> Draft | None:
    """Draft the execution of an approved order by the multisig wallet."""
    block = match.block
    signers = _find_signers(match.interfaces, block["source"])
    if signers is None:
        return None
    body = block.arguments()
    data = body.show(query_id=64, order_seqno=256, expiration_date=48, approvals_num=8)
    data["signers_hash"] = base64.b64encode(body.uint(256).to_bytes(32, "big")).decode()
    data["order_boc"] = body.ref().boc(crc32c=False)
    columns = block.pick("source", "destination") | {"multisig_execute_data": data}
    return Draft("multisig_execute", columns, failed=block.failed, extra_accounts=signers)


RULES = (create_order, approve, execute)
"""In order of precedence."""

"""Jettons (TEP-74): transfers, burns and mints, and the wrapped TON of exchanges (pTON)."""

from typing import NamedTuple

from tonlake.ingest.derive.action.body import Body, read_comment
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.model import Message
from tonlake.ingest.derive.action.pattern import Match, call, one_of
from tonlake.ingest.derive.action.rule import JETTON_TRANSFER, Block, Columns, rule

TRANSFER, INTERNAL, NOTIFY = 0x0F8A7EA5, 0x178D4519, 0x7362D09C
BURN, BURN_NOTIFICATION = 0x595F07BC, 0x7BDD97DE
MINT, MINTER_MINT = 0x642B7D07, 0x00000015
PTON_TRANSFER = 0x01F3835D
PTON_MASTERS = {
    "0:8CDC1D7640AD5EE326527FC1AD0514F468B30DC84B0173F0E155F451B4E11F7C",
    "0:671963027F7F85659AB55B821671688601CDCF1EE674FC7FBBB1A776A18D34A3",
    "0:949C4C66760C002800E2FA3D8A3CA4E1C90A9373B53AE7472033483BF14CD95E",
}
"""Jettons that represent TON; swaps and deposits show them as TON, without asset."""


class TransferBody(NamedTuple):
    """Body of 0f8a7ea5. TL-B: transfer of TEP-74."""

    query_id: int
    amount: int
    destination: str | None
    response_destination: str | None
    custom_payload: Body | None
    forward_amount: int
    forward_payload: Body | None


def read_transfer(message: Message) -> TransferBody:
    """Read the body of a transfer, as far as it goes; a missing forward payload is None."""
    body = message.arguments()
    head = body.uint(64), body.coins(), body.address()
    rest = *body.response(), body.forward_amount()
    payload = body.either_ref()
    return TransferBody(*head, *rest, None if payload.is_empty else payload)


def show_payload(payload: Body | None) -> str | None:
    """Return a payload as a bag of cells in base64."""
    return None if payload is None else payload.boc()


def asset_of(jetton: str | None) -> str | None:
    """Return the asset that is shown for a jetton: None for jettons that represent TON."""
    return None if jetton in PTON_MASTERS else jetton


def make_ghost(block: Block, interfaces: Interfaces) -> Block:
    """Return the block of a transfer that was not sent; without asset if the wallet is unknown."""
    body = read_transfer(block.message)
    roles = block.pick(source_secondary="destination") | {
        "destination": body.destination,
        "asset": interfaces.jetton_of(block["destination"]),
    }
    draft = _draft_transfer(Match(block), body, roles, failed=True)
    return Block(draft.type, draft.columns, block.nodes)


def _draft_transfer(match: Match, body: TransferBody, roles: Columns, *, failed: bool) -> Block:
    comment, is_encrypted = None, False
    if body.forward_payload is not None:
        comment, is_encrypted = read_comment(body.forward_payload)
    data = {
        "query_id": body.query_id,
        "response_destination": body.response_destination,
        "forward_amount": body.forward_amount,
        "custom_payload": show_payload(body.custom_payload),
        "forward_payload": show_payload(body.forward_payload),
        "comment": comment,
        "is_encrypted_comment": is_encrypted,
    }
    columns = {
        "source": match.block.message.source,
        **roles,
        "amount": body.amount,
        "jetton_transfer_data": data,
    }
    notes = {"payload": body.forward_payload, "wallet": match.block["destination"]}
    return Block(JETTON_TRANSFER, columns, failed=failed, notes=notes)


_NOTIFY = call(NOTIFY, name="notify").maybe


@rule(call(TRANSFER).then(call(INTERNAL, name="internal").then(_NOTIFY)))
def transfer(match: Match) -> Block | None:
    """Draft a transfer from the requesting owner to the owner of the receiving wallet.

    The amounts are those that arrived, which are lower than requested if the jetton charges a fee.
    A transfer that arrived at an owner other than requested is broken.

    TL-B: internal_transfer#178d4519 query_id:uint64 amount:Coins from:MsgAddress
    response_address:MsgAddress forward_ton_amount:Coins.
    """
    block, internal = match.block, match["internal"]
    body = read_transfer(block.message)
    known = match.interfaces.jetton_wallet(internal["destination"])
    if known is None:
        return None
    arrived = internal.fields()
    amount = arrived.coins()
    if arrived.bits_left:
        arrived.address()
        arrived.response_address()
    body = body._replace(amount=amount, forward_amount=arrived.forward_amount())
    draft = _draft_transfer(
        match,
        body,
        {
            "source_secondary": block["destination"],
            "destination": known.owner,
            "destination_secondary": internal.message.destination,
            "asset": known.jetton,
        },
        failed=block.failed or internal.failed,
    )
    draft.is_broken = known.owner != body.destination
    return draft


@rule(call(TRANSFER).then(_NOTIFY))
def pton_transfer(match: Match) -> Block | None:
    """Draft a transfer of coins through a wallet of a jetton that represents TON."""
    block = match.block
    jetton = match.interfaces.jetton_of(block["destination"])
    if jetton not in PTON_MASTERS:
        return None
    body = read_transfer(block.message)
    roles = dict.fromkeys(("source_secondary", "destination_secondary"))
    roles |= {"destination": body.destination, "asset": jetton}
    return _draft_transfer(match, body, roles, failed=block.failed)


@rule(call(BURN).then(call(BURN_NOTIFICATION).maybe))
def burn(match: Match) -> Block | None:
    """Draft a burn requested by the owner of the wallet."""
    block = match.block
    body = block.fields()
    wallet = match.interfaces.jetton_wallet(block.message.destination)
    if wallet is None:
        return None
    columns = block.pick(source_secondary="destination") | {
        "source": wallet.owner,
        "asset": wallet.jetton,
        "amount": body.coins(),
    }
    return Block("jetton_burn", columns, failed=block.failed)


@rule(
    call(MINT, MINTER_MINT).then(
        one_of(call(INTERNAL, name="internal").then(_NOTIFY), call(NOTIFY, name="notify")).maybe
    )
)
def mint(match: Match) -> Block | None:
    """Draft a mint by the master; it failed if no wallet received the jettons."""
    block, internal = match.block, match.get("internal")
    body = block.fields()
    columns: Columns = {
        "destination": body.address(),
        "destination_secondary": None,
        "asset": block.message.destination,
        "value": body.coins(),
        "amount": None,
    }
    if internal is None or block.failed:
        if block.opcode == MINTER_MINT:
            columns["amount"] = body.child().skip(32 + 64).coins()
        is_named = columns["destination"] is not None
        return Block("jetton_mint", columns, failed=True) if is_named else None
    wallet = match.interfaces.jetton_wallet(internal.message.destination)
    if wallet is None:
        return None
    columns |= {
        "destination": wallet.owner,
        "destination_secondary": internal.message.destination,
        "asset": wallet.jetton,
        "amount": internal.fields().coins(),
    }
    return Block("jetton_mint", columns, failed=internal.failed)

"""Actions of a multisig order and the bodies of their messages. TL-B of multisig v2: Order, Action.

Unlike elsewhere, ``query_id`` is a number; amounts are decimal text, addresses raw text, cells
base64. The table of bodies names how each field after the opcode is read.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from tonlake.api.text.encoding import encode_bytes
from tonlake.ingest.decode.block.message import MessageDecoder
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.action.body import OPCODE_BITS, Body, read_body
from tonlake.ingest.derive.action.interface import show_address
from tonlake.ingest.derive.body.codec import ENCRYPTED_OPCODE, TEXT_OPCODE, read_utf8, read_words
from tonlake.ingest.errors import BodyError, IngestError

Fields = dict[str, Any]
Reader = Callable[["Fielded"], Fields]


class Fielded(Body):
    """A cursor in a body, with the forms in which orders show values."""

    __slots__ = ()

    def amount(self) -> str:
        """Read Coins as decimal text."""
        return str(self.coins())

    def maybe_cell(self) -> str | None:
        """Read ``Maybe ^Cell`` as base64."""
        cell = self.maybe_ref()
        return None if cell is None else cell.boc()

    def text(self) -> str:
        """Read UTF-8 text to the end of the cell and its chain of children."""
        return read_utf8(read_words(self, is_snake=True))

    def comment(self) -> str:
        """Read the UTF-8 text of a comment."""
        return read_utf8(read_words(self))

    def cipher(self) -> str:
        """Read an encrypted comment: its bytes in base64."""
        return encode_bytes(read_words(self))

    def take_opcode(self) -> int | None:
        """Read an opcode; None if there are fewer bits."""
        return self.uint(OPCODE_BITS) if self.bits_left >= OPCODE_BITS else None


def _open(body: CellSlice) -> Fielded:
    return Fielded.at(body.tree, body.cell, body.value, body.bits_left, body.ref)


def _read_message(tree: CellTree, cell: int) -> tuple[str | None, str | None, Fielded]:
    """Return destination and value of a message to send, None for a log message, and its body."""
    row = MessageDecoder(tree, None).decode_row(cell)
    destination = show_address(row["destination_workchain"], row["destination"])
    value = None if row["value"] is None else str(row["value"])
    return destination, value, _open(read_body(row["body"]))


MINTER_MINT, STONFI_SWAP = 0x00000015, 0x25938561


def read_order_body(body: Fielded) -> tuple[str, Fields]:
    """Return type and fields of a body; one of unknown type is ``unknown`` with opcode and data.

    Raises IngestError if it does not match the layout of its opcode.
    """
    start = body.copy()
    if body.is_empty:
        return "ton_transfer", {"comment": "", "encrypted": False}
    opcode = body.take_opcode()
    if opcode not in _KINDS:
        return UNKNOWN, {"opcode": opcode or 0, "data": start.boc()}
    kind, read = _KINDS[opcode]
    return kind, read(body)


def _query(**fields: int | str) -> Reader:
    """Return the reader of a body with a query id and these fields, as ``Body.show`` takes them."""
    return lambda body: body.show(query_id=64, **fields)


_MINT = _query(to_address="any_address", ton_amount="amount")
_JETTON_TRANSFER = _query(
    amount="amount",
    destination="any_address",
    response="any_address",
    custom_payload="maybe_cell",
    forward_amount="amount",
)
_NFT_TRANSFER = _query(
    new_owner="any_address",
    response_destination="any_address",
    custom_payload="maybe_cell",
    forward_amount="amount",
)


def _read_jetton_transfer(body: Fielded) -> Fields:
    fields = _JETTON_TRANSFER(body) | {
        "comment": "",
        "encrypted_comment": False,
        "forward_payload": None,
        "payload_sum_type": "",
        "stonfi_swap_body": None,
    }
    payload = body.either_ref()
    if payload.is_empty:
        return fields
    return fields | {"forward_payload": payload.boc()} | _read_payload(_open(payload))


def _read_payload(payload: Fielded) -> Fields:
    """Read the forward payload of a jetton transfer; an unknown layout is returned as a cell."""
    opcode = payload.take_opcode()
    if opcode == TEXT_OPCODE:
        return {"payload_sum_type": "TextComment", "comment": payload.comment()}
    if opcode == ENCRYPTED_OPCODE:
        shown = {"payload_sum_type": "EncryptedTextComment", "comment": payload.cipher()}
        return {**shown, "encrypted_comment": True}
    if opcode == STONFI_SWAP:
        swap = {"token_wallet": payload.any_address(), "min_out": payload.amount()}
        swap["to_address"] = payload.any_address()
        swap["referral_address"] = payload.any_address() if payload.bit() else None
        return {"payload_sum_type": "StonfiSwap", "stonfi_swap_body": swap}
    return {"payload_sum_type": "Cell"}


def _read_minter_mint(body: Fielded) -> Fields:
    """Read the mint body of classic minters, which contains the message to the owner's wallet."""
    fields = {"opcode": MINTER_MINT, **_MINT(body)}
    message = _open(body.child().skip(OPCODE_BITS))
    return fields | message.show(master_msg_query_id=64, master_msg_jetton_amount="amount")


def _read_direct_mint(body: Fielded) -> Fields:
    """Read the jetton amount from the message to the wallet, or from the body itself."""
    fields = _MINT(body)
    holder = _open(body.child().skip(OPCODE_BITS + 64)) if body.refs_left else body
    return fields | {"jetton_amount": holder.amount()}


def _read_nft_transfer(body: Fielded) -> Fields:
    fields, payload = _NFT_TRANSFER(body), body.either_ref()
    return fields | {"forward_payload": None if payload.is_empty else payload.boc()}


def _read_call_to(body: Fielded) -> Fields:
    fields, action = _MINT(body), body.child()
    known = _KINDS.get(action.peek_opcode())
    return fields | {"action_type": known[0] if known else UNKNOWN, "action_data": action.boc()}


def _read_vesting_send(body: Fielded) -> Fields:
    fields = body.show(query_id=64, send_mode=8)
    destination, value, sent = _read_message(body.tree, body.load_ref())
    shown = {"destination": destination, "value": value, "message_body": sent.boc()}
    return fields | shown | {"comment": sent.comment() if sent.take_opcode() == TEXT_OPCODE else ""}


SEND_MESSAGE, UPDATE_PARAMS = 0xF1381E5B, 0x1D0CFBD3
UNKNOWN = "unknown"
_ACTION_BITS = 8
"""Bits of the keys: of an action in the order, of a signer in new parameters."""

_KINDS: dict[int | None, tuple[str, Reader]] = {
    TEXT_OPCODE: ("ton_transfer", lambda body: {"comment": body.comment(), "encrypted": False}),
    ENCRYPTED_OPCODE: ("ton_transfer", lambda body: {"comment": body.cipher(), "encrypted": True}),
    0x0F8A7EA5: ("jetton_transfer", _read_jetton_transfer),
    0x595F07BC: ("jetton_burn", _query(amount="amount", response_destination="any_address")),
    MINTER_MINT: ("jetton_mint", _read_minter_mint),
    0x642B7D07: ("jetton_mint", _read_direct_mint),
    0x5FCC3D14: ("nft_transfer", _read_nft_transfer),
    0xD372158C: ("jetton_top_up", _query()),
    0x6501F354: ("jetton_change_admin", _query(new_admin_address="any_address")),
    0xFB88E119: ("jetton_claim_admin", _query()),
    0xCB862902: ("jetton_change_content", _query(new_metadata_url="text")),
    0x235CAF52: ("jetton_call_to", _read_call_to),
    0xEED236D3: ("jetton_set_status", _query(new_status=4)),
    0x00001000: ("single_nominator_withdraw", _query(coins="amount")),
    0x00001001: ("single_nominator_change_validator", _query(validator_address="any_address")),
    0xA7733ACD: ("vesting_internal_transfer", _read_vesting_send),
}
"""Types of bodies by opcode, with the readers of the fields that follow it."""


class OrderAction(msgspec.Struct, kw_only=True):
    """One action of an order; if it cannot be decoded, ``parsed`` is false and ``error`` is set."""

    destination: str | None = None
    value: str | None = None
    body_raw: str | None = None
    parsed: bool
    error: str | None = None
    parsed_body: Fields | None = None
    parsed_body_type: str
    send_mode: int = 0


def read_order(boc: bytes) -> list[OrderAction]:
    """Return the actions of an order by number; an unreadable one is one action with an error."""
    try:
        tree = parse_boc(boc)
        actions = list(iter_hashmap(tree, tree.roots[0], _ACTION_BITS))
    except IngestError as error:
        return [OrderAction(parsed=False, parsed_body_type=UNKNOWN, error=str(error))]
    found = []
    for _number, value in actions:
        action = OrderAction(parsed=False, parsed_body_type=UNKNOWN)
        try:
            _fill_action(Fielded(tree, value.load_ref()), action)
            action.parsed = True
        except IngestError as error:
            action.error = str(error)
        found.append(action)
    return found


def _fill_action(body: Fielded, action: OrderAction) -> None:
    kind = body.uint(32)
    if kind == SEND_MESSAGE:
        action.send_mode = body.uint(8)
        action.destination, action.value, sent = _read_message(body.tree, body.load_ref())
        action.body_raw = sent.boc()
        action.parsed_body_type, action.parsed_body = read_order_body(sent)
    elif kind == UPDATE_PARAMS:
        threshold, signers, proposers = body.uint(8), body.load_ref(), body.load_maybe_ref()
        action.parsed_body = {
            "new_threshold": threshold,
            "new_signers": _read_addresses(body.tree, signers),
            "new_proposers": [] if proposers is None else _read_addresses(body.tree, proposers),
        }
        action.parsed_body_type = "multisig_update_params"
    else:
        raise BodyError(f"an order has no action 0x{kind:08x}")


def _read_addresses(tree: CellTree, root: int) -> list[str | None]:
    entries = iter_hashmap(tree, root, _ACTION_BITS)
    return [_open(value).any_address() for _number, value in entries]

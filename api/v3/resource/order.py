"""Actions of a multisig order and the bodies of their messages. TL-B of multisig v2: Order, Action.

Unlike elsewhere, ``query_id`` is a number; amounts are decimal text, addresses raw text, cells
base64. Each reader of a body starts after the opcode and returns the fields of one type.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tonlake.api.text.encoding import encode_bytes
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.decode.cell.writer import serialize_depth_first
from tonlake.ingest.derive.body.codec import (
    ENCRYPTED_OPCODE,
    STD,
    TEXT_OPCODE,
    Work,
    read_utf8,
    read_words,
)
from tonlake.ingest.derive.body.scheme import ADDRESS, load_scheme
from tonlake.ingest.errors import BocError, BodyError, DecodeError

Reader = Callable[[CellSlice], dict[str, Any]]

Fields = dict[str, Any]

OPCODE_BITS = 32


class SentMessage(NamedTuple):
    """A message to send; destination and value are None for a log message."""

    destination: str | None
    value: str | None
    body: CellSlice


def read_message(source: CellSlice) -> SentMessage:
    """Read message$_ with CommonMsgInfoRelaxed, or raise BocError or BodyError."""
    work = Work(source.tree, {})
    info = _read_value("CommonMsgInfoRelaxed", source, work)
    if source.load_bit():  # Maybe (Either StateInit ^StateInit)
        if source.load_bit():
            source.load_ref()
        else:
            _read_value("StateInit", source, work)
    is_internal = info["@type"] == "int_msg_info"
    return SentMessage(
        destination=_write_address(info["dest"]) if is_internal else None,
        value=info["value"]["grams"]["amount"]["value"] if is_internal else None,
        body=load_payload(source),
    )


def _read_value(type_name: str, source: CellSlice, work: Work) -> Any:  # noqa: ANN401 - an object
    return msgspec.json.decode(load_scheme().union(type_name).decode(source, work))


def encode_rest(source: CellSlice) -> str:
    """Return the rest of a slice as a base64 bag with one cell."""
    cell = CellBuilder(source.tree).store_slice(source.copy()).end()
    return encode_cell(source, cell)


def encode_cell(source: CellSlice, cell: int) -> str:
    """Return a cell as a base64 bag of cells with CRC."""
    return encode_bytes(serialize_depth_first(source.tree, cell, crc32c=True))


def load_address(source: CellSlice) -> str | None:
    """Read an address as raw text; None if it is not ``addr_std``."""
    return _write_address(msgspec.json.decode(ADDRESS.decode(source, Work(source.tree, {}))))


def _write_address(value: Any) -> str | None:  # noqa: ANN401 - an object of the body codecs
    return f"{value['workchain_id']}:{value['address']}" if value["@type"] == STD else None


def load_coins(source: CellSlice) -> str:
    """Read Coins as decimal text."""
    return str(source.load_coins())


def load_text(source: CellSlice) -> str:
    """Read UTF-8 text to the end of the cell and its chain of children."""
    return read_utf8(read_words(source, Work(source.tree, {}), is_snake=True))


def load_maybe_cell(source: CellSlice) -> str | None:
    """Read ``Maybe ^Cell`` as base64."""
    cell = source.load_maybe_ref()
    return None if cell is None else encode_cell(source, cell)


def load_payload(source: CellSlice) -> CellSlice:
    """Read ``Either Cell ^Cell``; the empty cell if the body ends before it."""
    if source.bits_left and source.load_bit():
        return source.tree.slice(source.load_ref())
    return source


def load_comment(source: CellSlice) -> str:
    """Read the UTF-8 text of a comment."""
    return read_utf8(read_words(source))


def load_encrypted(source: CellSlice) -> str:
    """Read an encrypted comment: its bytes in base64."""
    return encode_bytes(read_words(source))


def read_query(source: CellSlice) -> Fields:
    """Read the query id with which most bodies begin."""
    return {"query_id": source.load_uint(64)}


MINTER_MINT = 0x00000015
STONFI_SWAP = 0x25938561


def read_body(source: CellSlice) -> tuple[str, Fields]:
    """Return type and fields of a body; one of unknown type is ``unknown`` with opcode and data.

    Raises BocError, BodyError if it does not match the layout of its opcode.
    """
    start = source.copy()
    if not (source.bits_left or source.refs_left):
        return "ton_transfer", {"comment": "", "encrypted": False}
    if source.bits_left < OPCODE_BITS:
        return "unknown", {"opcode": 0, "data": encode_rest(start)}
    opcode = source.load_uint(OPCODE_BITS)
    kind, read = _KINDS.get(opcode, ("unknown", None))
    if read is None:
        return kind, {"opcode": opcode, "data": encode_rest(start)}
    return kind, read(source)


def _read_in_order(**fields: Callable[[CellSlice], Any]) -> Reader:
    """Return the reader of a body with a query id and these fields."""
    return lambda source: read_query(source) | {name: load(source) for name, load in fields.items()}


_TRANSFER = _read_in_order(
    amount=load_coins,
    destination=load_address,
    response=load_address,
    custom_payload=load_maybe_cell,
    forward_amount=load_coins,
)
_NFT_TRANSFER = _read_in_order(
    new_owner=load_address,
    response_destination=load_address,
    custom_payload=load_maybe_cell,
    forward_amount=load_coins,
)
_MINT = _read_in_order(to_address=load_address, ton_amount=load_coins)


def _read_transfer(source: CellSlice) -> Fields:
    fields = _TRANSFER(source) | {
        "comment": "",
        "encrypted_comment": False,
        "forward_payload": None,
        "payload_sum_type": "",
        "stonfi_swap_body": None,
    }
    payload = load_payload(source)
    if payload.bits_left or payload.refs_left:
        fields["forward_payload"] = encode_rest(payload)
        fields |= _read_forward_payload(payload)
    return fields


def _read_forward_payload(payload: CellSlice) -> Fields:
    """Read the forward payload of a jetton transfer; an unknown layout is returned as a cell."""
    opcode = payload.load_uint(OPCODE_BITS) if payload.bits_left >= OPCODE_BITS else None
    if opcode == TEXT_OPCODE:
        return {"payload_sum_type": "TextComment", "comment": load_comment(payload)}
    if opcode == ENCRYPTED_OPCODE:
        return {
            "payload_sum_type": "EncryptedTextComment",
            "comment": load_encrypted(payload),
            "encrypted_comment": True,
        }
    if opcode == STONFI_SWAP:
        swap = {
            "token_wallet": load_address(payload),
            "min_out": load_coins(payload),
            "to_address": load_address(payload),
            "referral_address": load_address(payload) if payload.load_bit() else None,
        }
        return {"payload_sum_type": "StonfiSwap", "stonfi_swap_body": swap}
    return {"payload_sum_type": "Cell"}


def _read_minter_mint(source: CellSlice) -> Fields:
    """Read the mint body of classic minters, which contains the message to the owner's wallet."""
    fields = {"opcode": MINTER_MINT, **_MINT(source)}
    message = source.tree.slice(source.load_ref())
    message.skip(OPCODE_BITS)
    return fields | {
        "master_msg_query_id": message.load_uint(64),
        "master_msg_jetton_amount": load_coins(message),
    }


def _read_direct_mint(source: CellSlice) -> Fields:
    """Read the jetton amount from the message to the wallet, or from the body itself."""
    fields = _MINT(source)
    if source.refs_left:
        source = source.tree.slice(source.load_ref())
        source.skip(OPCODE_BITS + 64)
    return fields | {"jetton_amount": load_coins(source)}


def _read_nft_transfer(source: CellSlice) -> Fields:
    fields = _NFT_TRANSFER(source)
    payload = load_payload(source)
    has_payload = payload.bits_left or payload.refs_left
    return fields | {"forward_payload": encode_rest(payload) if has_payload else None}


def _read_call_to(source: CellSlice) -> Fields:
    fields = _MINT(source)
    cell = source.load_ref()
    action = source.tree.slice(cell)
    known = action.bits_left >= OPCODE_BITS and _KINDS.get(action.peek_uint(OPCODE_BITS))
    return fields | {
        "action_type": known[0] if known else "unknown",
        "action_data": encode_cell(source, cell),
    }


def _read_vesting_send(source: CellSlice) -> Fields:
    fields = read_query(source) | {"send_mode": source.load_uint(8)}
    message = read_message(source.tree.slice(source.load_ref()))
    body = message.body.copy()
    is_text = body.bits_left >= OPCODE_BITS and body.load_uint(OPCODE_BITS) == TEXT_OPCODE
    return fields | {
        "destination": message.destination,
        "value": message.value,
        "message_body": encode_rest(message.body),
        "comment": load_comment(body) if is_text else "",
    }


_KINDS: dict[int, tuple[str, Reader]] = {
    TEXT_OPCODE: (
        "ton_transfer",
        lambda source: {"comment": load_comment(source), "encrypted": False},
    ),
    ENCRYPTED_OPCODE: (
        "ton_transfer",
        lambda source: {"comment": load_encrypted(source), "encrypted": True},
    ),
    0x0F8A7EA5: ("jetton_transfer", _read_transfer),
    0x595F07BC: (
        "jetton_burn",
        _read_in_order(amount=load_coins, response_destination=load_address),
    ),
    MINTER_MINT: ("jetton_mint", _read_minter_mint),
    0x642B7D07: ("jetton_mint", _read_direct_mint),
    0x5FCC3D14: ("nft_transfer", _read_nft_transfer),
    0xD372158C: ("jetton_top_up", read_query),
    0x6501F354: ("jetton_change_admin", _read_in_order(new_admin_address=load_address)),
    0xFB88E119: ("jetton_claim_admin", read_query),
    0xCB862902: ("jetton_change_content", _read_in_order(new_metadata_url=load_text)),
    0x235CAF52: ("jetton_call_to", _read_call_to),
    0xEED236D3: (
        "jetton_set_status",
        _read_in_order(new_status=lambda source: source.load_uint(4)),
    ),
    0x00001000: ("single_nominator_withdraw", _read_in_order(coins=load_coins)),
    0x00001001: (
        "single_nominator_change_validator",
        _read_in_order(validator_address=load_address),
    ),
    0xA7733ACD: ("vesting_internal_transfer", _read_vesting_send),
}
"""Types of bodies by opcode, with the readers of the fields that follow it."""


SEND_MESSAGE, UPDATE_PARAMS = 0xF1381E5B, 0x1D0CFBD3
UNKNOWN = "unknown"
_ACTION_BITS = 8
"""Bits of the keys: of an action in the order, of a signer in new parameters."""


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
    except (BocError, DecodeError) as error:
        return [OrderAction(parsed=False, parsed_body_type=UNKNOWN, error=str(error))]
    return [_read_action(tree, value) for _number, value in actions]


def _read_action(tree: CellTree, value: CellSlice) -> OrderAction:
    action = OrderAction(parsed=False, parsed_body_type=UNKNOWN)
    try:
        _fill_action(tree.slice(value.load_ref()), action)
        action.parsed = True
    except (BocError, BodyError, DecodeError) as error:
        action.error = str(error)
    return action


def _fill_action(source: CellSlice, action: OrderAction) -> None:
    kind = source.load_uint(32)
    if kind == SEND_MESSAGE:
        action.send_mode = source.load_uint(8)
        message = read_message(source.tree.slice(source.load_ref()))
        action.destination, action.value = message.destination, message.value
        action.body_raw = encode_rest(message.body)
        action.parsed_body_type, action.parsed_body = read_body(message.body)
    elif kind == UPDATE_PARAMS:
        threshold, signers = source.load_uint(8), source.load_ref()
        proposers = source.load_maybe_ref()
        action.parsed_body = {
            "new_threshold": threshold,
            "new_signers": _read_addresses(source.tree, signers),
            "new_proposers": [] if proposers is None else _read_addresses(source.tree, proposers),
        }
        action.parsed_body_type = "multisig_update_params"
    else:
        raise BodyError(f"an order has no action 0x{kind:08x}")


def _read_addresses(tree: CellTree, root: int) -> list[str | None]:
    return [load_address(value) for _number, value in iter_hashmap(tree, root, _ACTION_BITS)]

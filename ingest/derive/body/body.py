"""Decodes message bodies with the table of layouts.

Decoded bodies have the shape of TON Center's: ``{"@type": constructor, field: value, ...}``. Cells
that a layout keeps raw are decoded in turn if they begin with a known opcode, else shown as base64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tonlake.ingest.derive.body.codec import Object, Value, Work
from tonlake.ingest.derive.body.raw import EMPTY_CELL, Raw
from tonlake.ingest.derive.body.scheme import OPCODE_BITS, load_scheme
from tonlake.ingest.errors import BocError, BodyError

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree

MAX_PAYLOADS = 10
"""Maximum nesting of payloads that are decoded, as in TON Center."""
_COMMENT = "text_comment"
_REQUEST = "TgWalletRequest"
SIGNED, WALLET = "SignedBody", "WalletBody"
"""Types of bodies that begin with a signature: of messages of any direction, of external ones."""


class Decoded(NamedTuple):
    """A decoded body.

    ``name`` is the name of its opcode (``decoded_opcode``), ``value`` the decoded object
    (``decoded``); each is None if unknown.
    """

    name: str | None
    value: Object | None


def name_opcode(opcode: int) -> str | None:
    """Return the name of an unsigned 32-bit opcode, that of its first layout; None if unknown."""
    layouts = load_scheme().layouts.get(opcode)
    return layouts[0].name if layouts else None


def name_request(opcode: int) -> str | None:
    """Return the name of a request that follows a signature; None if unknown."""
    choices = load_scheme().union(_REQUEST).choices
    return next((each.record.name for each in choices if each.tag == opcode), None)


def decode_body(tree: CellTree, cell: int) -> Decoded:
    """Decode a body of unknown direction; the value is None if no layout fits.

    Layouts are tried by opcode, then as a signed request to a wallet. The empty body has an object.
    Never raises: any cell is decoded within bounded work.
    """
    name, value = _decode(tree, cell, external_in=True)
    return Decoded(name, value or _show_empty(tree, cell))


def decode_message_body(tree: CellTree, cell: int, *, external_in: bool) -> Decoded:
    """Decode the body of a message as shown in ``message_content`` of API v3.

    Unlike ``decode_body``, text comments have a separate shape, and only external messages are
    tried with the layouts of all known wallets.
    """
    name, value = _decode(tree, cell, external_in=external_in)
    if value is not None and value["@type"] == _COMMENT:
        value = {"type": _COMMENT, "@type": _COMMENT, "comment": value["text"]}
    return Decoded(name, value or _show_empty(tree, cell))


def _show_empty(tree: CellTree, cell: int) -> Object | None:
    """Return the object of the empty body; None for any other."""
    return {"@type": EMPTY_CELL} if Raw(tree, cell, 0).is_empty else None


def _decode(tree: CellTree, cell: int, *, external_in: bool) -> Decoded:
    """Return name and object of a body."""
    try:
        source = tree.slice(cell)
    except BocError:
        return Decoded(None, None)
    opcode = _peek_opcode(source)
    name = None if opcode is None else name_opcode(opcode)
    work = Work(tree)
    try:
        value = _decode_slice(source, work, MAX_PAYLOADS)
        for type_name in (SIGNED, WALLET) if external_in else (SIGNED,):
            value = value or _decode_signed(type_name, source, work)
    except (BocError, BodyError):
        value = None
    return Decoded(name, value)


def _decode_signed(type_name: str, source: CellSlice, work: Work) -> Object | None:
    """Return the object of a type that must consume the whole body; None if it does not fit."""
    attempt = source.copy()
    try:
        value = load_scheme().union(type_name).decode(attempt, work)
    except (BocError, BodyError):
        return None
    if attempt.bits_left or attempt.refs_left:
        return None
    return show_fields(value, work, MAX_PAYLOADS)


def _peek_opcode(source: CellSlice) -> int | None:
    """Return the first 32 bits; None if there are fewer."""
    return source.peek_uint(OPCODE_BITS) if source.bits_left >= OPCODE_BITS else None


def _decode_slice(source: CellSlice, work: Work, payloads: int) -> Object | None:
    """Return the object of the first layout that fits the start of a body; None if none does.

    Data after the layout are ignored, as in TON Center.

    Raises:
        BocError, BodyError: a layout fits, but the body is too large to be shown.
    """
    opcode = _peek_opcode(source)
    level = work.level
    for record in load_scheme().layouts.get(opcode, ()) if opcode is not None else ():
        attempt = source.copy()
        attempt.skip(OPCODE_BITS)
        work.level = level
        try:
            value = record.decode(attempt, work)
        except (BocError, BodyError):
            continue
        return show_fields(value, work, payloads)
    work.level = level
    return None


def show_fields(value: Value, work: Work, payloads: int) -> Object:
    """Return an object with its raw cells decoded or shown."""
    if not isinstance(value, dict):
        raise BodyError(f"{value!r} is not an object")
    return {name: _show(field, work, payloads) for name, field in value.items()}


def _show(value: Value, work: Work, payloads: int) -> Value:
    """Return a value with its raw cells decoded or shown."""
    if isinstance(value, dict):
        return {name: _show(field, work, payloads) for name, field in value.items()}
    if isinstance(value, list):
        return [_show(item, work, payloads) for item in value]
    if not isinstance(value, Raw):
        return value
    if payloads and not value.is_exotic:
        work.level = value.level
        payload = _decode_slice(value.slice(), work, payloads - 1)
        if payload is not None:
            return payload
    return value.show(work)

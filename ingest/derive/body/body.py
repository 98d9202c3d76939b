"""Decoding message bodies by the table of layouts.

The shape of the answers is that of TON Center: ``{"@type": constructor, field: value, ...}``. Cells
that a layout keeps raw are taken apart in turn when they begin with a known opcode, else they
stand there as base64.
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
"""Most payloads inside one another that are taken apart, as TON Center does."""
_COMMENT = "text_comment"
_REQUEST = "TgWalletRequest"
SIGNED, WALLET = "SignedBody", "WalletBody"
"""Types of bodies with a signature in front: of messages of any direction, of external ones."""


class Decoded(NamedTuple):
    """What is known about a body.

    ``name`` is the name of its opcode (``decoded_opcode``), ``value`` the decoded object
    (``decoded``); each is None when unknown.
    """

    name: str | None
    value: Object | None


def name_opcode(opcode: int) -> str | None:
    """Return the name of an unsigned 32-bit opcode: that of the first layout tried for it."""
    layouts = load_scheme().layouts.get(opcode)
    return layouts[0].name if layouts else None


def name_request(opcode: int) -> str | None:
    """Return the name of a request that stands behind a signature."""
    choices = load_scheme().union(_REQUEST).choices
    return next((each.record.name for each in choices if each.tag == opcode), None)


def decode_body(tree: CellTree, cell: int) -> Decoded:
    """Decode a body of unknown direction; bodies that follow no layout give a value of None.

    It is tried by its opcode, then as a signed request to a wallet. The empty body has an object.
    Never raises: every garbage cell is answered within bounded work.
    """
    name, value = _decode(tree, cell, external_in=True)
    return Decoded(name, value or _show_empty(tree, cell))


def decode_message_body(tree: CellTree, cell: int, *, external_in: bool) -> Decoded:
    """Decode the body of a message as the ``message_content`` of API v3 shows it.

    Other than by ``decode_body``, text comments have their own shape, and only external messages
    are tried as those of all known wallets.
    """
    name, value = _decode(tree, cell, external_in=external_in)
    if value is not None and value["@type"] == _COMMENT:
        value = {"type": _COMMENT, "@type": _COMMENT, "comment": value["text"]}
    return Decoded(name, value or _show_empty(tree, cell))


def _show_empty(tree: CellTree, cell: int) -> Object | None:
    """Return the object of the empty body, and None for any other."""
    return {"@type": EMPTY_CELL} if Raw(tree, cell, 0).is_empty else None


def _decode(tree: CellTree, cell: int, *, external_in: bool) -> Decoded:
    """Find name and object of a body."""
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
    """Return the object of a type that must use up the body, or None."""
    attempt = source.copy()
    try:
        value = load_scheme().union(type_name).decode(attempt, work)
    except (BocError, BodyError):
        return None
    if attempt.bits_left or attempt.refs_left:
        return None
    return show_fields(value, work, MAX_PAYLOADS)


def _peek_opcode(source: CellSlice) -> int | None:
    """Return the first 32 bits, or None when there are fewer."""
    return source.peek_uint(OPCODE_BITS) if source.bits_left >= OPCODE_BITS else None


def _decode_slice(source: CellSlice, work: Work, payloads: int) -> Object | None:
    """Return the object of the first layout that a body begins with, or None.

    What follows the layout is left out, as TON Center does.

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
    """Return an object in which no raw cell is left."""
    if not isinstance(value, dict):
        raise BodyError(f"{value!r} is no object")
    return {name: _show(field, work, payloads) for name, field in value.items()}


def _show(value: Value, work: Work, payloads: int) -> Value:
    """Return a value in which no raw cell is left."""
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

"""Decodes message bodies with the table of layouts, to JSON in the shape of TON Center's.

A decoded body is ``{"@type": constructor, field: value, ...}``. Cells that a layout keeps raw are
decoded in turn if they begin with a known opcode, else shown as base64.
"""

from typing import Any, NamedTuple, TypeAlias

import msgspec

from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.body.codec import Work
from tonlake.ingest.derive.body.record import EMPTY_CELL, OPCODE_BITS, decode_payload
from tonlake.ingest.derive.body.scheme import MIN_HASHED, load_scheme
from tonlake.ingest.errors import BocError, BodyError, BodyLimit

SIGNED, WALLET = "SignedBody", "WalletBody"
"""Types of bodies that begin with a signature: of messages of any direction, of external ones."""
_PLAIN_COMMENT = '{"@type":"text_comment","text":'
_COMMENT = '{"type":"text_comment","@type":"text_comment","comment":'


Object: TypeAlias = dict[str, Any]


class Decoded(NamedTuple):
    """A decoded body.

    ``name`` is the name of its opcode (TON Center's ``decoded_opcode``), ``json`` the decoded
    object (``decoded``), ``limit`` what kept all or a part of it from being decoded, in words;
    each is None if there is none. ``is_shared`` means that bodies of other layouts have the opcode,
    too: it is a low number, or its layout would leave most of the body. Then its name is that of
    the body only if there is an object.
    """

    name: str | None
    json: str | None
    limit: str | None = None
    is_shared: bool = False

    @property
    def own_name(self) -> str | None:
        """The name of the opcode as far as it is that of the body."""
        if not self.is_shared:
            return self.name
        return None if (value := self.value) is None else str(value["@type"])

    @property
    def value(self) -> Object | None:
        """The decoded object."""
        return None if self.json is None else msgspec.json.decode(self.json, type=Object)


NOTHING = Decoded(None, None)


def name_opcode(opcode: int) -> str | None:
    """Return the name of an unsigned 32-bit opcode, that of its first layout; None if unknown."""
    layouts = load_scheme().layouts.get(opcode)
    return layouts[0].name or None if layouts else None


def name_request(opcode: int) -> str | None:
    """Return the name of a request that follows a signature; None if unknown."""
    choices = load_scheme().union("TgWalletRequest").choices
    return next((each.record.name for each in choices if each.tag == opcode), None)


def decode_body(tree: CellTree, cell: int, *, external_in: bool = True) -> Decoded:
    """Decode a body, by default one of unknown direction; ``json`` is None if no layout fits.

    Layouts are tried by opcode, then as a signed request to a wallet; only external messages are
    tried with the layouts of all known wallets. The empty body has an object. Never raises: any
    cell is decoded within bounded work.
    """
    try:
        source = tree.slice(cell)
    except BocError:
        return NOTHING
    if not (source.bits_left or source.refs_left):
        return Decoded(None, EMPTY_CELL)
    work = Work(tree, load_scheme().layouts)
    opcode = source.peek_uint(OPCODE_BITS) if source.bits_left >= OPCODE_BITS else None
    text = None
    try:
        if opcode is not None:
            work.place += 1  # the body is none of the payloads inside it
            found = decode_payload(tree, cell, *source.bits(), 0, work)
            text = found and found[0]
            work.place -= 1
        for type_name in (SIGNED, WALLET) if external_in else (SIGNED,):
            text = text or _decode_signed(type_name, source, work)
        text = text and work.assemble(text)
    except (BocError, BodyLimit):
        text = None
    if opcode is None:
        return Decoded(None, text, work.limit)
    is_shared = opcode < MIN_HASHED or work.is_mostly_unread
    return Decoded(name_opcode(opcode), text, work.limit, is_shared)


def decode_message_body(body: bytes, *, external_in: bool) -> Decoded:
    """Decode the bag of a message's body as shown in ``message_content`` of API v3.

    Unlike with ``decode_body``, text comments have a separate shape. A damaged bag yields
    ``NOTHING``.
    """
    try:
        tree = parse_boc(body)
    except BocError:
        return NOTHING
    found = decode_body(tree, tree.roots[0], external_in=external_in)
    if found.json is not None and found.json.startswith(_PLAIN_COMMENT):
        return found._replace(json=_COMMENT + found.json[len(_PLAIN_COMMENT) :])
    return found


def _decode_signed(type_name: str, source: CellSlice, work: Work) -> str | None:
    """Return the object of a type that must consume the whole body; None if it does not fit."""
    attempt = source.copy()
    try:
        text = load_scheme().union(type_name).read(attempt, work)
    except (BocError, BodyError):
        return None
    return None if attempt.bits_left or attempt.refs_left else text

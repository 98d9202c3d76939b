"""Raw cells, the rest of a cell or a referenced one: decoded as a payload, else shown in base64."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import ORDINARY
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.derive.body.codec import Codec, Work
from tonlake.ingest.derive.body.composite import check_end
from tonlake.ingest.derive.body.record import OPCODE_BITS, decode_layout
from tonlake.ingest.errors import BodyLimit

if TYPE_CHECKING:
    from tonlake.ingest.decode.cell.slice import CellSlice
    from tonlake.ingest.decode.cell.tree import CellTree

EMPTY_CELL = '{"@type":"empty_cell"}'


class LinkedRaw(Codec):
    """``^Cell``: a referenced cell of any kind."""

    size = 0, 1

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the reference."""
        work.level += 1
        try:
            return work.share(self, source.tree, source.load_ref(), _show_cell)
        finally:
            work.level -= 1


class Rest(Codec):
    """``Cell`` and ``Any`` inline: the rest of the cell."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read the rest of the cell."""
        rest = source.copy()
        source.skip(source.bits_left)
        source.ref += source.refs_left
        if not (rest.bits_left or rest.refs_left):
            return EMPTY_CELL
        payload = _decode_payload(rest.copy(), work)
        if payload is not None:
            return payload
        is_whole = not rest.pos and not rest.ref
        cell = rest.cell if is_whole else CellBuilder(rest.tree).store_slice(rest).end()
        return _show_raw(rest.tree, cell, work)


class End(Codec):
    """The end of the cell, in place of a rest of it."""

    def decode(self, source: CellSlice, work: Work) -> str:
        """Read nothing; raise BodyError if anything is left."""
        del work
        check_end(source)
        return EMPTY_CELL


def _show_cell(tree: CellTree, cell: int, work: Work) -> str:
    """Return a cell decoded if it begins with a known opcode, else as a bag in base64."""
    if tree.kind(cell) == ORDINARY:
        if not (tree.bit_length(cell) or tree.refs(cell)):
            return EMPTY_CELL
        payload = _decode_payload(tree.slice(cell), work)
        if payload is not None:
            return payload
    return _show_raw(tree, cell, work)


def _decode_payload(source: CellSlice, work: Work) -> str | None:
    """Return the object of the first layout that fits; None if none does within the limits."""
    if not work.payloads or source.bits_left < OPCODE_BITS:
        return None
    level = work.level
    work.payloads -= 1
    try:
        return decode_layout(source, work)
    except BodyLimit:
        work.level = level
        return None
    finally:
        work.payloads += 1


def _show_raw(tree: CellTree, cell: int, work: Work) -> str:
    """Return a bag of cells in base64."""
    bag = serialize_boc(tree, [cell])
    work.spend(len(bag))
    return f'"{b64encode(bag).decode()}"'

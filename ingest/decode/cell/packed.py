"""Packed cells: descriptors and data of a cell, then the handles of its children, all of one size.

A store returns cells by handle, a hash or a number. Trees may be larger than memory, so subtrees
are loaded level by level. The rows of ``state_cells`` are packed cells, one per hash.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from tonlake.ingest.decode.cell.envelope import NATIVE
from tonlake.ingest.decode.cell.tree import MERKLE_PROOF, MERKLE_UPDATE, CellTree
from tonlake.ingest.decode.cell.writer import serialize_boc
from tonlake.ingest.errors import BocError, IngestError, MissingCell, SourceError

HASH_BYTES = 32


class PackedCells(Protocol):
    """A store of packed cells by handle."""

    @property
    def name(self) -> str:
        """The name of the store in errors."""

    @property
    def width(self) -> int:
        """Size of a handle in bytes; a handle of ``HASH_BYTES`` is the cell's hash."""

    def fetch(self, handles: list[bytes]) -> list[bytes]:
        """Return the packed cells of ``handles``; SourceError if one is missing or damaged."""

    def close(self) -> None:
        """Close the store."""


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn errors about cells into SourceError with the name of their store."""
    try:
        yield
    except IngestError as error:
        text = str(error)
        raise SourceError(text if text.startswith(name) else f"{name}: {text}") from error


def split_packed(packed: bytes, width: int) -> tuple[bytes, list[bytes]]:
    """Return descriptors with data, and the handles of the children."""
    refs = packed[0] & 7
    size = 2 + (packed[1] + 1 >> 1)
    if len(packed) != size + refs * width:
        raise BocError(f"a packed cell has {len(packed)} bytes instead of {size + refs * width}")
    return packed[:size], [packed[at : at + width] for at in range(size, len(packed), width)]


def list_below(packed: Sequence[bytes], width: int, known: set[bytes]) -> list[bytes]:
    """Return the handles of children that are not in ``known``, and add them to it."""
    if NATIVE is not None:
        found: list[bytes] = NATIVE.list_below(packed, width, known)
        return found
    found = []
    for cell in packed:
        for handle in split_packed(cell, width)[1]:
            if handle not in known:
                known.add(handle)
                found.append(handle)
    return found


class Loaded:
    """The cells under some roots and their handles in the same order, the roots first."""

    def __init__(self, store: PackedCells, roots: Sequence[bytes], most: int | None = None) -> None:
        """Load the cells level by level; ``is_whole`` is False if there are more than ``most``."""
        self.name, self.width = store.name, store.width
        self.handles: list[bytes] = []
        self.packed: list[bytes] = []
        level = list(dict.fromkeys(roots))
        known = set(level)
        while level and (most is None or len(known) <= most):
            level.sort()
            cells = store.fetch(level)
            self.handles += level
            self.packed += cells
            level = list_below(cells, self.width, known)
        self.is_whole = not level

    def unpack(self) -> dict[bytes, tuple[bytes, list[bytes]]]:
        """Return descriptors with data, and the children's handles, by handle."""
        cells = (split_packed(each, self.width) for each in self.packed)
        return dict(zip(self.handles, cells, strict=True))


_DESCRIPTOR_BYTES = 2


def pack_cell(tree: CellTree, cell: int, level: int = 0) -> tuple[bytes, list[bytes]]:
    """Return the descriptors and data of a cell, and the hashes of its children.

    ``level`` is the Merkle depth of the cell in the state that the tree proves or updates: 0, and
    one more below every Merkle cell of the state itself. The result is the cell as in the
    complete state, so ``tree.hash(cell, level)`` is its representation hash there.
    """
    head = tree.cells[cell]
    below = level + 1 if tree.kind(cell) in (MERKLE_PROOF, MERKLE_UPDATE) else level
    mask = head[0] >> 5 & ((1 << level) - 1)
    if head[0] >> 5 != mask:
        head = bytes((head[0] & 0x1F | mask << 5,)) + head[1:]
    return head, [tree.hash(child, below) for child in tree.links[cell]]


def assemble_boc(
    root_hash: bytes, cells: Mapping[bytes, tuple[bytes, Sequence[bytes]]], *, crc32c: bool = False
) -> bytes:
    """Return the bag of the cell with this hash, assembled from packed cells by hash."""
    tree = CellTree()
    return serialize_boc(tree, [append_packed(tree, root_hash, cells, {})], crc32c=crc32c)


def append_packed(
    tree: CellTree,
    root_hash: bytes,
    cells: Mapping[bytes, tuple[bytes, Sequence[bytes]]],
    places: dict[bytes, int],
    *,
    by_hash: bool = True,
) -> int:
    """Append the cell with this hash and all its descendants to a tree; return its index.

    ``places`` maps hashes to cells already in the tree; appended cells are added to it. Without
    ``by_hash`` keys are not hashes, and are not verified.
    """
    opened: set[bytes] = set()
    todo = [root_hash]
    while todo:
        cell_hash = todo[-1]
        if cell_hash in places:
            todo.pop()
            continue
        if cell_hash not in cells:
            raise MissingCell(cell_hash)
        head, children = cells[cell_hash]
        if len(head) < _DESCRIPTOR_BYTES or head[0] & 7 != len(children):
            raise BocError(f"the cell stored as {cell_hash.hex()} is not a valid cell")
        missing = [child for child in children if child not in places]
        if missing:
            if cell_hash in opened:
                raise BocError(f"the cell stored as {cell_hash.hex()} is its own descendant")
            opened.add(cell_hash)
            todo += missing
            continue
        todo.pop()
        place = tree.append(head, tuple(places[child] for child in children))
        if by_hash and tree.hash(place) != cell_hash:
            raise BocError(f"the cell stored as {cell_hash.hex()} has another hash")
        places[cell_hash] = place
    return places[root_hash]

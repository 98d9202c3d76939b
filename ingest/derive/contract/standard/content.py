"""Token content (TEP-64): on-chain dictionaries, off-chain URIs, and both combined."""

import base64
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain, islice

from tonlake.ingest.decode.cell.dictionary import iter_hashmap
from tonlake.ingest.decode.cell.slice import CellSlice
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.errors import BocError

Content = dict[str, str]
"""Key to text; ``image_data`` is base64."""

ON_CHAIN, OFF_CHAIN = 0, 1
SNAKE, CHUNKED = 0, 1
KEYS = (
    *("uri", "name", "description", "image", "image_data"),
    *("symbol", "decimals", "amount_style", "render_type"),
)
_NAMES = {int.from_bytes(sha256(name.encode()).digest(), "big"): name for name in KEYS}
_BINARY = "image_data"
_KEY_BITS, _CHUNK_BITS = 256, 32
MAX_CELLS = 8192
"""Maximum number of cells of one value, with all of its chunks: a message cannot bring more into a
contract's data (ConfigParam 43: max_msg_cells), and shared cells could expand without limit."""


def read_content(tree: CellTree, cell: int) -> Content | None:
    """Read the content cell of a collection, an item or a jetton master.

    On-chain content yields the ``KEYS`` that are present; semi-chain content has ``uri`` among
    them. Values that are not UTF-8, or follow no layout, are left out.

    Returns:
        The content; None if the cell is neither on-chain nor off-chain content.
    """
    try:
        start = tree.slice(cell)
        kind = start.load_uint(8)
        if kind == OFF_CHAIN:
            return {"uri": _read_text(load_snake(start))}
        return _read_dictionary(start) if kind == ON_CHAIN else None
    except (BocError, UnicodeDecodeError):
        return None


def _read_dictionary(start: CellSlice) -> Content:
    content: Content = {}
    root = start.load_maybe_ref()
    if root is None:
        return content
    for key, value in iter_hashmap(start.tree, root, _KEY_BITS):
        name = _NAMES.get(key)
        if name is None:
            continue
        try:
            data = _read_value(value)
            is_binary = name == _BINARY
            content[name] = base64.b64encode(data).decode() if is_binary else _read_text(data)
        except (BocError, UnicodeDecodeError):
            continue
    return {name: content[name] for name in KEYS if name in content}


def _read_text(data: bytes) -> str:
    # TON Center stores text in PostgreSQL, which does not allow NUL.
    return data.decode("utf-8").replace("\0", "")


def _read_value(value: CellSlice) -> bytes:
    """Read ContentData: snake or chunked; in a child cell or, against TEP-64, in the leaf."""
    if not value.bits_left and value.refs_left:
        value = value.tree.slice(value.load_ref())
    kind = value.load_uint(8)
    if kind == SNAKE:
        return load_snake(value)
    if kind == CHUNKED:
        return _load_chunks(value)
    raise BocError(f"content of kind {kind} is neither snake nor chunked")


def load_snake(start: CellSlice) -> bytes:
    """Read the full bytes of the cell, then of its first child, and so on.

    Raises:
        BocError: an exotic cell, or more than ``MAX_CELLS``.
    """
    return _join(_iter_snake(start))


def _iter_snake(start: CellSlice) -> Iterator[bytes]:
    yield start.load_bytes(start.bits_left // 8)
    while start.refs_left:
        start = start.tree.slice(start.load_ref())
        yield start.load_bytes(start.bits_left // 8)


def _join(cells: Iterator[bytes]) -> bytes:
    found = b"".join(islice(cells, MAX_CELLS))
    if next(cells, None) is not None:
        raise BocError(f"text has more than {MAX_CELLS} cells")
    return found


def _load_chunks(start: CellSlice) -> bytes:
    """Read ``chunked_data#01 data:(HashMapE 32 ^(SnakeData ~0))``, in key order."""
    root = start.load_maybe_ref()
    if root is None:
        return b""
    chunks = iter_hashmap(start.tree, root, _CHUNK_BITS)
    texts = (_iter_snake(start.tree.slice(chunk.load_ref())) for _key, chunk in chunks)
    return _join(chain.from_iterable(texts))

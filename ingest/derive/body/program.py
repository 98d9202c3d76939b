"""Layouts compiled into a program: nodes of integers that the native decoder follows.

A node is an operation and its arguments, as native/decode.h lists them; nodes name one another by
their number. Codecs describe themselves (``Codec.arguments``): there is one table of layouts.
"""

from __future__ import annotations

from array import array
from enum import IntEnum, auto
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tonlake.ingest.derive.body.codec import Codec


class Op(IntEnum):
    """What a node reads; the numbers are those of native/decode.h."""

    UINT = 0
    INT = auto()
    BOOL = auto()
    BITS = auto()
    VAR_UINT = auto()
    ADDRESS = auto()
    MAYBE = auto()
    EITHER = auto()
    REFERENCE = auto()
    WRAPPED = auto()
    RECORD = auto()
    UNION = auto()
    HASHMAP = auto()
    MAYBE_HASHMAP = auto()
    REST = auto()
    LINKED_RAW = auto()
    SNAKE_TEXT = auto()
    SNAKE_BYTES = auto()
    SHORT_TEXT = auto()
    CHUNKED_TEXT = auto()
    UNREADABLE = auto()
    CHUNKS = auto()
    DECLINED = auto()
    """Left to the codec itself."""


class Program:
    """Nodes in the making; ``texts`` are pieces of JSON that records put."""

    def __init__(self) -> None:
        """Begin without nodes."""
        self._nodes: list[list[int]] = []
        self._numbers: dict[Codec, int] = {}
        self._texts: list[bytes] = []
        self._known: dict[bytes, int] = {}

    def add(self, codec: Codec) -> int:
        """Return the number of a codec's node, which is made at its first demand."""
        if codec not in self._numbers:
            self._numbers[codec] = len(self._nodes)
            node: list[int] = []
            self._nodes.append(node)
            arguments = codec.arguments(self)
            node += [Op.DECLINED] if arguments is None else [codec.op, *arguments]
        return self._numbers[codec]

    def text(self, text: bytes) -> int:
        """Return the number of a piece of JSON."""
        if text not in self._known:
            self._known[text] = len(self._texts)
            self._texts.append(text)
        return self._known[text]

    def key(self, name: str) -> int:
        """Return the number of the key of a field."""
        return self.text(msgspec.json.encode(name) + b":")

    def link(
        self, layouts: Mapping[int, Sequence[Codec]], unions: Iterable[Codec]
    ) -> tuple[bytes, bytes, bytes, bytes, tuple[bytes, ...], int, int]:
        """Return what the native decoder is made of: layouts by opcode, and two unions.

        The unions are those of signed bodies of any direction, and of external ones.
        """
        nodes: array[int] = array("i")
        opcodes: array[int] = array("i")
        for opcode, records in sorted(layouts.items()):
            opcodes.extend([to_word(opcode), len(nodes), len(records)])
            nodes.extend(map(self.add, records))
        signed, wallet = map(self.add, unions)
        code: array[int] = array("i")
        starts: array[int] = array("i")
        for node in self._nodes:
            starts.append(len(code))
            code.extend(node)
        tables = (code.tobytes(), starts.tobytes(), opcodes.tobytes(), nodes.tobytes())
        return *tables, tuple(self._texts), signed, wallet


def to_word(number: int) -> int:
    """Return an unsigned 32-bit number as the signed one of the same bits."""
    return number - (1 << 32) if number >> 31 else number

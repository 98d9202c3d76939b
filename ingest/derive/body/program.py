"""Compiles layouts into a program: nodes of integers for the native decoder.

A node is an operation and its arguments, as listed in native/decode.h; nodes refer to each other by
number. Codecs describe themselves (``Codec.arguments``), so there is one table of layouts.
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
    """The operation of a node; the numbers are those of native/decode.h."""

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
    """Not supported by the native decoder."""


class Program:
    """Nodes under construction; ``texts`` are pieces of JSON that records write."""

    def __init__(self) -> None:
        """Create an empty program."""
        self._nodes: list[list[int]] = []
        self._numbers: dict[Codec, int] = {}
        self._texts: list[bytes] = []
        self._known: dict[bytes, int] = {}

    def add(self, codec: Codec) -> int:
        """Return the number of a codec's node, which is created on first use."""
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
        """Return the number of a field's key."""
        return self.text(msgspec.json.encode(name) + b":")

    def link(
        self, layouts: Mapping[int, Sequence[Codec]], unions: Iterable[Codec]
    ) -> tuple[bytes, bytes, bytes, bytes, tuple[bytes, ...], int, int]:
        """Return the arguments of the native decoder: layouts by opcode, and two unions.

        The unions decode signed bodies of any direction, and of external messages.
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
    """Return an unsigned 32-bit number as the signed number with the same bits."""
    return number - (1 << 32) if number >> 31 else number

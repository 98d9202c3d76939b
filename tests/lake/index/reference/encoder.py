"""Plain Python reference encoder of records, compared with the extension's output.

Module ``tonlake.lake.index.segment.shape`` describes the format.
"""

from __future__ import annotations

from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tonlake.lake.index.segment.record import (
    BODY,
    FACTS,
    IN_HASH,
    KINDS,
    MESSAGE,
    STATE,
    TRACE,
    TRANSACTION,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tonlake.lake.index.segment.record import Kind

    State = Sequence[Any] | EllipsisType | None
    _Near = dict[bytes | None, int]

GAS_PRICE = 400
"""Nanotons for a unit of gas: config parameter 21 of workchain 0, gas_price / 65536."""

_LAST_PLACE = 64
_OPCODE_BYTES = 4
_SIGN, _WORD = 1 << 63, 1 << 64


class InBody(NamedTuple):
    """The place of an opcode in its message's body."""

    place: int


class Around(NamedTuple):
    """Values that a row may refer to; ``lt_before`` is the row's own lt if no row precedes it."""

    account: bytes
    lt: int
    lt_before: int
    now: int
    hash_before: bytes | None
    state_before: bytes | None


def append_number(out: bytearray, number: int) -> None:
    """Append a non-negative integer."""
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def fold(value: int) -> int:
    """Return a signed 64-bit number as unsigned, small if it was close to 0."""
    if not -_SIGN <= value < _SIGN:
        value = (value + _SIGN) % _WORD - _SIGN
    return value << 1 if value >= 0 else ~value << 1 | 1


def reverse_bits(value: int) -> int:
    """Return a signed 64-bit number with its bits reversed, as unsigned."""
    return int(f"{value % _WORD:064b}"[::-1], 2)


def base_of(code: str, around: Around, before: int | None) -> int:
    """Return the predicted value of a number, by its code and the column before."""
    if code == "l":
        return around.lt
    if code == "t":
        return around.now
    if code == "p":
        return around.lt_before
    # The gas that was probably used, derived from its cost.
    return before // GAS_PRICE if code == "g" and before is not None and before > 0 else 0


def find_opcode(body: bytes | None, opcode: int) -> InBody | None:
    """Return where an opcode is in its message's body, if it is near the beginning."""
    if body is None or not -(1 << 31) <= opcode < 1 << 31:
        return None
    place = body.find(opcode.to_bytes(_OPCODE_BYTES, "big", signed=True), 0, _LAST_PLACE)
    return InBody(place) if place >= 0 else None


OWN_ACCOUNT, HASH_BEFORE, IN_MESSAGE, FAR_HASH, FAR_BYTES, STATE_BEFORE = range(6)
NEXT_BYTES, LITERAL = 6, 7
NO_STATE, SAME_STATE, SHAPED = range(3)
HASH_BYTES = 32
ZERO = bytes(HASH_BYTES)

_SHORTEST_FAR = 12
"""Fewer bytes are not worth a place."""

_SHAPED_BYTES = 3
"""Bytes that are as short stay in the shape: recipes of transactions with few messages."""

_OPEN = ...


def _list_near(around: Around, in_hash: bytes | None) -> _Near:
    """Return the context of a row as a form; of equal neighbours the last one counts."""
    return {
        around.state_before: STATE_BEFORE,
        around.hash_before: HASH_BEFORE,
        in_hash: IN_MESSAGE,
        around.account: OWN_ACCOUNT,
    }


def _open_columns(
    kind: Kind, values: Sequence[Any]
) -> tuple[tuple[Any, ...], list[tuple[int, str, Any]]]:
    """Return the shape of a row, and place, code and value of each column that it leaves open."""
    shape: list[Any] = [*values, kind.number]
    left = []
    for at, code in kind.may_open:
        value = shape[at]
        if not value:
            if code == "a" and value is not None:
                shape[at] = 0
        elif code == "o" and (place := find_opcode(values[BODY], value)):
            shape[at] = place
        elif code not in "bnh" or (len(value) > _SHAPED_BYTES and value != ZERO):
            left.append((at, code, value))
            shape[at] = _OPEN
    return tuple(shape), left


class RecordEncoder:
    """Writes the rows of one segment; ``at`` is the offset of the next record."""

    def __init__(self, max_remembered: int, max_numbered: int) -> None:
        """Begin without shapes."""
        self._max_remembered, self._max_numbered = max_remembered, max_numbered
        self.at = 0
        self._shapes: dict[tuple[Any, ...], int] = {}
        self._seen: dict[bytes, int] = {}
        self._numbered: dict[bytes, int] = {}
        self._new: list[tuple[bytes, int]] = []
        self._far_end = -1

    def encode_record(
        self,
        around: Around,
        columns: Sequence[Any],
        messages: Sequence[Sequence[Any]],
        states: tuple[State, State],
    ) -> bytes:
        """Return a record of a transaction's columns and those of its messages.

        ``states`` are facts of the states before and after: None where unknown, ``...`` where it is
        that after the record before.
        """
        out = bytearray()
        before, after = states
        near = _list_near(around, None)
        self._append_state(out, after, around, near)
        self._append_state(out, before, around, near)
        self._append(out, TRANSACTION, columns, around, near)
        append_number(out, len(messages))
        near = _list_near(around, columns[IN_HASH])
        for message in messages:
            self._append(out, MESSAGE, message, around, near)
        self._remember(self.at)
        self.at += len(out)
        return bytes(out)

    def encode_newest(self, around: Around, state: Sequence[Any]) -> bytes:
        """Return the newest state of an account, which is stored outside of the records."""
        out = bytearray()
        self._append(out, STATE, state, around, _list_near(around, None))
        self._new.clear()
        return bytes(out)

    def encode_trace(
        self, trace_id: bytes, root: tuple[int, int, int] | None, values: Sequence[Any]
    ) -> bytes:
        """Return a complete trace, with its root's row, logical time and unix seconds, if known.

        ``values`` are its columns without the trace id.
        """
        out = bytearray()
        row, lt, now = root or (-1, 0, 0)
        append_number(out, row + 1)
        if root is None:
            out += trace_id
        self._append(out, TRACE, values, Around(b"", lt, lt, now, None, None), {})
        self._new.clear()
        return bytes(out)

    def encode_shapes(self) -> bytes:
        """Return all shapes, and the hashes that have numbers, as MessagePack.

        Each shape has its kind, codes and constants.
        """
        shapes = []
        for *values, kind in self._shapes:
            codes = bytearray(b"." * len(values))
            for at, code in KINDS[kind].may_open:
                if values[at] is _OPEN:
                    codes[at] = ord("i" if code == "o" else code)
                elif isinstance(values[at], InBody):
                    codes[at] = ord("o")
                    values[at] = values[at].place
            constants = [None if value is _OPEN else value for value in values]
            shapes.append((kind, bytes(codes), constants))
        return msgspec.msgpack.encode((shapes, list(self._numbered)))

    def _append_state(self, out: bytearray, state: State, around: Around, near: _Near) -> None:
        if state is None or isinstance(state, EllipsisType):
            out.append(NO_STATE if state is None else SAME_STATE)
        else:
            self._append(out, FACTS, state, around, near, bias=SHAPED)

    def _append(
        self,
        out: bytearray,
        kind: Kind,
        values: Sequence[Any],
        around: Around,
        near: _Near,
        *,
        bias: int = 0,
    ) -> None:
        self._far_end = -1
        shape, left = _open_columns(kind, values)
        number = self._shapes.setdefault(shape, len(self._shapes))
        append_number(out, number + bias)
        for at, code, value in left:
            if code == "b":
                form = near.get(value)
                if form is None:
                    self._append_far(out, value)
                else:
                    out.append(form)
            elif code in "nhsar":
                self._append_rare(out, code, value)
            else:
                number = fold(value - base_of(code, around, values[at - 1]))
                append_number(out, number)

    def _append_rare(self, out: bytearray, code: str, value: Any) -> None:
        if code == "n":
            self._append_next(out, value)
        elif code == "h":
            self._append_numbered(out, value)
        elif code == "r":
            append_number(out, reverse_bits(value))
        else:
            text = value if code == "s" else format(value, "f")
            self._append_far(out, text.encode())

    def _append_numbered(self, out: bytearray, value: bytes) -> None:
        number = self._numbered.get(value)
        if number is None:
            if len(self._numbered) == self._max_numbered:
                out.append(0)
                self._append_far(out, value)
                return
            number = self._numbered[value] = len(self._numbered) + 1
        append_number(out, number)

    def _append_next(self, out: bytearray, value: bytes) -> None:
        head = bytearray()
        append_number(head, LITERAL + len(value))
        at = self._seen.get(value)
        if at is not None and at - len(head) == self._far_end:
            out.append(NEXT_BYTES)
        else:
            self._append_far(out, value)

    def _append_far(self, out: bytearray, value: bytes) -> None:
        at = self._seen.get(value)
        if at is None:
            append_number(out, LITERAL + len(value))
            if len(value) >= _SHORTEST_FAR:
                self._new.append((value, len(out)))
            out += value
            return
        self._far_end = at + len(value)
        if len(value) == HASH_BYTES:
            out.append(FAR_HASH)
        else:
            out.append(FAR_BYTES)
            append_number(out, len(value))
        append_number(out, at)

    def _remember(self, start: int) -> None:
        """Remember the offsets of the record that begins at ``start``."""
        for value, at in self._new:
            self._seen.setdefault(value, start + at)
        self._new.clear()
        if len(self._seen) > self._max_remembered:
            self._seen.clear()

"""Records of a run, read in Python: the reference of the extension, and what stands in for it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

import msgspec

from lake.lookup.account import ID_BYTES, account_id, split_account_id
from lake.lookup.coding import (
    Around,
    base_of,
    make_signed,
    read_opcode,
    reverse_bits,
    unfold,
)
from lake.lookup.native import NATIVE
from lake.lookup.record import (
    BODY,
    FACTS,
    IN_HASH,
    KINDS,
    MESSAGE,
    MESSAGE_HASH,
    STATE,
    TRACE,
    TRANSACTION,
    Record,
)
from lake.lookup.shape import (
    FAR_BYTES,
    FAR_HASH,
    HASH_BEFORE,
    HASH_BYTES,
    IN_MESSAGE,
    LITERAL,
    NEXT_BYTES,
    NO_STATE,
    OWN_ACCOUNT,
    SAME_STATE,
    SHAPED,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lake.lookup.record import Kind

_ARRAYS = (
    *("records", "record.at", "hash", "hash_after", "lt", "now", "mc_seqno", "root", "other"),
    *("account.row", "account.id", "state.at", "state", "ended.at", "ended.data"),
)

_Shape = tuple[int, bytes, tuple[Any, ...]]


def open_source(arrays: Mapping[str, Any]) -> Any:  # noqa: ANN401 - here or in the extension
    """Return what reads the records of an open run.

    Raises:
        ValueError: its shapes are damaged.
        KeyError: it lacks an array.
    """
    named = tuple(getattr(arrays[name], "data", arrays[name]) for name in _ARRAYS)
    found, hashes = msgspec.msgpack.decode(
        arrays["shape"], type=tuple[list[_Shape], tuple[bytes, ...]]
    )
    if any(len(shape[1]) != len(shape[2]) for shape in found):
        raise ValueError("a shape of the run is damaged")
    if NATIVE is None:
        return Source(arrays, found, hashes)
    types = (*(kind.row_type for kind in KINDS), Record)
    widths = tuple(kind.width for kind in KINDS)
    places = IN_HASH, MESSAGE_HASH, BODY
    return NATIVE.Source(named, tuple(found), hashes, types, widths, places)


class Source:
    """The arrays of an open run."""

    def __init__(
        self, arrays: Mapping[str, Any], shapes: Sequence[_Shape], hashes: Sequence[bytes]
    ) -> None:
        """Take the arrays by name, the shapes of rows, and the hashes that have numbers."""
        self._arrays = arrays
        self._records, self._lt = arrays["records"], arrays["lt"]
        self._shapes, self.hashes = shapes, hashes

    def read_records(self, rows: Iterable[int]) -> list[Any]:
        """Return the records of rows, in their order."""
        return [self._read_record(row) for row in rows]

    def read_lines(self, places: Iterable[tuple[int, int]]) -> list[Any]:
        """Return messages, given the row and place of each."""
        return [self._read_record(row).messages[place] for row, place in places]

    def read_ends(self, wanted: Iterable[tuple[int, bytes]]) -> list[Any]:
        """Return messages, given the row and hash of each; None where the row has none."""
        return [
            next(
                (line for line in self._read_record(row).messages if line.msg_hash == wanted_hash),
                None,
            )
            for row, wanted_hash in wanted
        ]

    def read_states(self, accounts: Iterable[tuple[int, bytes]]) -> list[Any]:
        """Return the newest states of accounts by workchain and account id, None without one."""
        numbers = (self._find_account(*account) for account in accounts)
        return [None if number is None else self._read_newest(number) for number in numbers]

    def read_traces(self, numbers: Iterable[int]) -> list[Any]:
        """Return complete traces by their numbers."""
        return [self._read_ended(number) for number in numbers]

    def _read_ended(self, number: int) -> Any:  # noqa: ANN401 - a row
        data, at = self._arrays["ended.data"], self._arrays["ended.at"][number]
        root, at = read_number(data, at)
        if root:
            trace_id = self._hash("hash", root - 1)
            lt, now = self._lt[root - 1], self._arrays["now"][root - 1]
        else:
            trace_id, at = bytes(data[at : at + HASH_BYTES]), at + HASH_BYTES
            lt, now = 0, 0
        around = Around(b"", lt, lt, now, None, None)
        row = _Reading(self, data, at, around).read_row(TRACE)
        row.trace_id = trace_id
        return row

    def _find_account(self, workchain: int, account: bytes) -> int | None:
        ids, wanted = self._arrays["account.id"], account_id(account, workchain)

        def read_id(number: int) -> bytes:
            return bytes(ids[number * ID_BYTES : (number + 1) * ID_BYTES])

        places = range(len(ids) // ID_BYTES)
        number = bisect_left(places, wanted, key=read_id)
        return number if number < len(places) and read_id(number) == wanted else None

    def _read_newest(self, number: int) -> Any:  # noqa: ANN401 - a row
        start, end = self._arrays["state.at"][number : number + 2]
        if start == end:
            return None
        first, last = self._arrays["account.row"][number : number + 2]
        around = self._look_around(last, self._lt[last - 1], 0) if first < last else _NOTHING
        return _Reading(self, self._arrays["state"], start, around).read_row(STATE)

    def _look_around(self, row: int, lt: int, account: int) -> Around:
        start = account * ID_BYTES
        return Around(
            bytes(self._arrays["account.id"][start : start + HASH_BYTES]),
            lt,
            self._lt[row - 1] if row > self._arrays["account.row"][account] else lt,
            self._arrays["now"][row] if row < len(self._lt) else 0,
            self._hash("hash", row - 1) if row else None,
            self._hash("hash_after", row - 1) if row else None,
        )

    def _hash(self, name: str, row: int) -> bytes:
        return bytes(self._arrays[name][row * HASH_BYTES : (row + 1) * HASH_BYTES])

    def _begin(self, row: int) -> tuple[_Reading, int]:
        account = bisect_right(self._arrays["account.row"], row) - 1
        around = self._look_around(row, self._lt[row], account)
        return _Reading(self, self._records, self._arrays["record.at"][row], around), account

    def _read_record(self, row: int) -> Any:  # noqa: ANN401 - a Record
        reading, account = self._begin(row)
        record = _blank(Record)
        record.after = reading.read_state()
        record.before = reading.read_state()
        if record.before is True:
            record.before = self._begin(row - 1)[0].read_state()
        record.row = reading.read_row(TRANSACTION)
        self._fill(record.row, row, account)
        reading.in_hash = record.row.in_msg_hash
        record.messages = [reading.read_row(MESSAGE) for _ in range(reading.read_number())]
        for message in record.messages:
            message.tx_hash, message.tx_lt = record.row.hash, record.row.lt
        return record

    def _fill(self, values: Any, row: int, account: int) -> None:  # noqa: ANN401 - a row
        start = account * ID_BYTES
        identity = bytes(self._arrays["account.id"][start : start + ID_BYTES])
        values.account, values.workchain = split_account_id(identity)
        values.lt, values.now = self._lt[row], self._arrays["now"][row]
        values.mc_seqno = self._arrays["mc_seqno"][row]
        values.hash = self._hash("hash", row)
        values.account_state_hash_after = self._hash("hash_after", row)
        values.trace_id = self._read_trace(row)

    def _read_trace(self, row: int) -> bytes | None:
        root, rows = self._arrays["root"][row], len(self._lt)
        if not root:
            return None
        return (
            self._hash("hash", root - 1) if root <= rows else self._hash("other", root - rows - 1)
        )


def _blank(row_type: Callable[[], Any]) -> Any:  # noqa: ANN401 - a row
    return row_type()


def read_number(data: memoryview, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    number, shift = 0, 0
    while data[at] > 0x7F:  # noqa: PLR2004 - seven bits
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return number | data[at] << shift, at + 1


_NOTHING = Around(b"", 0, 0, 0, None, None)


class _Reading:
    """Reads the rows of one record, one after the other."""

    def __init__(self, source: Source, data: memoryview, at: int, around: Around) -> None:
        self._source, self._data, self._at, self._around = source, data, at, around
        self.in_hash: bytes | None = None
        self._far_end = 0

    def read_number(self) -> int:
        number, self._at = read_number(self._data, self._at)
        return number

    def read_state(self) -> Any:  # noqa: ANN401 - a row, None, or True
        form = self._data[self._at]
        if form in (NO_STATE, SAME_STATE):
            self._at += 1
            return None if form == NO_STATE else True
        return self.read_row(FACTS, SHAPED)

    def read_row(self, kind: Kind, bias: int = 0) -> Any:  # noqa: ANN401 - a row
        _, codes, constants = self._source._shapes[self.read_number() - bias]  # noqa: SLF001
        self._far_end = 0
        values: list[Any] = []
        for code, constant in zip(codes.decode(), constants, strict=True):
            before = values[-1] if values else None
            values.append(constant if code in ".o" else self._read_value(code, before))
        if b"o" in codes:
            at = codes.index(b"o")
            values[at] = read_opcode(values[BODY], values[at])
        row = _blank(kind.row_type)
        for name, value in zip(kind.columns, values, strict=True):
            setattr(row, name, value)
        return row

    def _read_value(self, code: str, before: Any) -> Any:  # noqa: ANN401
        if code in "bn":
            return self._read_bytes()
        if code == "h":
            number = self.read_number()
            return self._source.hashes[number - 1] if number else self._read_bytes()
        if code == "r":
            return make_signed(reverse_bits(self.read_number()))
        if code in "sa":
            text = self._read_bytes().decode()
            return text if code == "s" else int(text)
        return unfold(self.read_number(), base_of(code, self._around, before))

    def _read_bytes(self) -> bytes:
        form, around = self.read_number(), self._around
        if form >= LITERAL:
            start = self._at
            self._at += form - LITERAL
            return bytes(self._data[start : self._at])
        if form in (FAR_HASH, FAR_BYTES):
            size = HASH_BYTES if form == FAR_HASH else self.read_number()
            start = self.read_number()
            self._far_end = start + size
            return bytes(self._source._records[start : start + size])  # noqa: SLF001
        if form == NEXT_BYTES:
            return self._read_next()
        if form == OWN_ACCOUNT:
            return around.account
        found = {IN_MESSAGE: self.in_hash, HASH_BEFORE: around.hash_before}
        value = found.get(form, around.state_before)
        if value is None:
            raise ValueError("a record of the run refers to nothing")
        return value

    def _read_next(self) -> bytes:
        records = self._source._records  # noqa: SLF001
        form, at = read_number(records, self._far_end)
        if form < LITERAL:
            raise ValueError("a record of the run refers to no bytes")
        return bytes(records[at : at + form - LITERAL])

"""Instructions on amounts, addresses and output actions, and SENDMSG: ``crypto/vm/tonops.cpp``."""

from typing import Any, NamedTuple

from tonlake.ingest.derive.tvm.machine.cell import Builder, Cell, Loader, Slice
from tonlake.ingest.derive.tvm.machine.code import QUIET, step
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.instruction.environment import (
    get_forward_prices,
    get_parameter,
    round_up,
)
from tonlake.ingest.derive.tvm.machine.instruction.number import signed_size
from tonlake.ingest.derive.tvm.machine.state import NAN, Machine, expect

_NONE, _EXTERN, _STD, _VAR = range(4)
_NO_ANYCAST_SINCE = 10
"""Global version since which addresses with anycast and addr_var are invalid."""

ANYCAST_DEPTHS = range(1, 31)
_NEWER_MODES_SINCE = 4
_PLAIN_STD, _STD_BITS = 0b100, 267
_MAX_AMOUNT_BITS = 120
_MAX_UINT63 = (1 << 63) - 1


# Amounts: a length of 4 or 5 bits in bytes, then the number


_AMOUNTS = {
    "GRAMS": (4, False),
    "VARINT16": (4, True),
    "VARUINT32": (5, False),
    "VARINT32": (5, True),
}
"""Bits of the length, and whether the number has a sign."""


@step("LD{kind}", kind=_AMOUNTS)
def _load_amount(machine: Machine, *, kind: tuple[int, bool]) -> None:
    length_bits, signed = kind
    read = Loader(machine.pop_slice())
    bits = read.uint(length_bits) * 8
    value = read.sint(bits) if signed and bits else read.uint(bits)
    machine.stack += (value, read.rest())


def store_amount(
    builder: Builder, value: int, length_bits: int, *, signed: bool = False
) -> Builder:
    """Store a number in the fewest bytes; raise VmError if it is too large."""
    if value < 0 and not signed:
        raise VmError(Exit.RANGE_CHECK)
    count = ((signed_size(value) if signed else value.bit_length()) + 7) // 8
    if count >> length_bits:
        raise VmError(Exit.RANGE_CHECK)
    return builder.store(count, length_bits).store(value & (1 << count * 8) - 1, count * 8)


@step("ST{kind}", kind=_AMOUNTS)
def _store_amount(machine: Machine, *, kind: tuple[int, bool]) -> None:
    length_bits, signed = kind
    machine.need(2)
    value = machine.pop_int()
    builder = machine.pop_builder()
    if value is NAN:
        raise VmError(Exit.RANGE_CHECK)
    machine.stack.append(store_amount(builder, value, length_bits, signed=signed))  # type: ignore[arg-type]


# Addresses


class ParsedAddress(NamedTuple):
    """A parsed MsgAddress; ``rest`` is what follows it."""

    kind: int
    anycast: Slice | None
    workchain: int
    account: Slice | None
    rest: Slice


def parse_address(machine: Machine, part: Slice) -> ParsedAddress | None:
    """Parse MsgAddress; None if it is none."""
    try:
        return _parse_address(part, allows_old=machine.version < _NO_ANYCAST_SINCE)
    except VmError:
        return None


def _parse_address(part: Slice, *, allows_old: bool) -> ParsedAddress | None:
    fields = Loader(part)
    kind = fields.uint(2)
    if kind == _NONE:
        return ParsedAddress(kind, None, 0, None, fields.rest())
    if kind == _EXTERN:
        account = fields.part(fields.uint(9))
        return ParsedAddress(kind, None, 0, account, fields.rest())
    has_anycast = fields.uint(1)
    if (has_anycast or kind == _VAR) and not allows_old:
        return None
    anycast = None
    if has_anycast:
        depth = fields.uint(5)
        if depth not in ANYCAST_DEPTHS:
            return None
        anycast = fields.part(depth)
    bits, width = (fields.uint(9), 32) if kind == _VAR else (256, 8)
    workchain = fields.sint(width)
    account = fields.part(bits)
    return ParsedAddress(kind, anycast, workchain, account, fields.rest())


@step("LDMSGADDR{quiet}", quiet=QUIET)
def _load_address(machine: Machine, *, quiet: bool) -> None:
    part = machine.pop_slice()
    bits = _standard_bits(part, optional=True)  # those that nearly all have
    if not bits and (found := parse_address(machine, part)) is not None:
        bits = found.rest.start - part.start
    read = (part.take(bits), part.skip(bits)) if bits else None
    machine.leave(read, quiet=quiet, kept=(part,))


def _parse_whole(machine: Machine) -> ParsedAddress | None:
    """Pop a slice that is one address; None if it is not."""
    found = parse_address(machine, machine.pop_slice())
    return None if found is None or found.rest.bits or found.rest.ref_count else found


@step("PARSEMSGADDR{quiet}", quiet=QUIET)
def _show_address(machine: Machine, *, quiet: bool) -> None:
    found = _parse_whole(machine)
    if found is None:
        machine.leave(None, quiet=quiet)
        return
    values: tuple[Any, ...] = (found.kind,)
    if found.kind == _EXTERN:
        values = (found.kind, found.account)
    elif found.kind != _NONE:
        values = (found.kind, found.anycast, found.workchain, found.account)
    machine.leave((values,), quiet=quiet)


@step("REWRITE{variable}ADDR{quiet}", variable={"STD": False, "VAR": True}, quiet=QUIET)
def _rewrite_address(machine: Machine, *, variable: bool, quiet: bool) -> None:
    """Leave workchain and account id, with the prefix of anycast put in."""
    found = _parse_whole(machine)
    account = None if found is None or found.kind < _STD else found.account
    if found is None or account is None or (not variable and account.bits != 256):  # noqa: PLR2004
        machine.leave(None, quiet=quiet)
        return
    value, bits = account.uint(), account.bits
    if found.anycast is not None:
        depth = found.anycast.bits
        if depth > bits:
            raise VmError(Exit.CELL_UNDERFLOW)
        value = found.anycast.uint() << bits - depth | value & (1 << bits - depth) - 1
        account = Builder(value, bits).cell().slice()
    machine.leave((found.workchain, account if variable else value), quiet=quiet)


def _standard_bits(part: Slice, *, optional: bool) -> int:
    """Return the bits of the addr_std at the start, or of addr_none if allowed; else 0."""
    if part.has(_STD_BITS) and part.peek(3) == _PLAIN_STD:
        return _STD_BITS
    return 2 if optional and part.has(2) and part.peek(2) == _NONE else 0


_OPTIONAL = {"": False, "OPT": True}


@step("LD{optional}STDADDR{quiet}", optional=_OPTIONAL, quiet=QUIET)
def _load_standard(machine: Machine, *, optional: bool, quiet: bool) -> None:
    part = machine.pop_slice()
    bits = _standard_bits(part, optional=optional)
    address = part.take(bits) if bits == _STD_BITS else None
    machine.leave((address, part.skip(bits)) if bits else None, quiet=quiet, kept=(part,))


@step("ST{optional}STDADDR{quiet}", optional=_OPTIONAL, quiet=QUIET)
def _store_standard(machine: Machine, *, optional: bool, quiet: bool) -> None:
    machine.need(2)
    builder = machine.pop_builder()
    address = machine.stack.pop()
    if not (optional and (address is None or quiet)):
        machine.stack.append(address)
        address = machine.pop_slice()
    value, bits = 0, 2
    if address.__class__ is Slice:
        value, bits = address.uint(), address.bits
    is_good = address is None or (
        bits == _STD_BITS and value >> bits - 3 == _PLAIN_STD and not address.ref_count
    )
    if not is_good or not builder.fits(bits):
        if not quiet:
            raise VmError(Exit.CELL_OVERFLOW)
        machine.stack += (address, builder, -1)
        return
    machine.stack.append(builder.store(value, bits))
    if quiet:
        machine.stack.append(0)


# Sizes of trees


class Measure:
    """Counts distinct cells, their bits and references: ``VmStorageStat``."""

    def __init__(self, machine: Machine, limit: int) -> None:
        """Count up to ``limit`` cells; each costs the gas of loading it."""
        self.machine = machine
        self.limit = limit
        self.cells = self.bits = self.refs = 0
        self._seen: set[bytes] = set()

    def add(self, cell: Cell) -> bool:
        """Add a cell and all below it; return False beyond the limit."""
        todo = [cell]
        while todo:
            cell = todo.pop()
            if cell.hash in self._seen:
                continue
            self._seen.add(cell.hash)
            if self.cells >= self.limit:
                return False
            self.cells += 1
            self.machine.charge_load(cell)
            self.bits += cell.bits
            self.refs += len(cell.refs)
            todo += reversed(cell.refs)
        return True

    def add_slice(self, part: Slice) -> bool:
        """Add the content of a slice and all cells below it."""
        self.bits += part.bits
        self.refs += part.ref_count
        return all(self.add(child) for child in part.refs)


@step("{is_slice}DATASIZE{quiet}", is_slice={"C": False, "S": True}, quiet=QUIET)
def _measure(machine: Machine, *, is_slice: bool, quiet: bool) -> None:
    machine.need(2)
    bound = machine.pop_int()
    found = machine.pop_slice() if is_slice else machine.pop_maybe_cell()
    if bound is NAN or bound < 0:  # type: ignore[operator]
        raise VmError(Exit.RANGE_CHECK)
    measure = Measure(machine, min(bound, _MAX_UINT63))  # type: ignore[arg-type, type-var]
    if isinstance(found, Slice):
        is_whole = measure.add_slice(found)
    else:
        is_whole = found is None or measure.add(found)
    if is_whole:
        machine.stack += (measure.cells, measure.bits, measure.refs)
    elif not quiet:
        raise VmError(Exit.CELL_OVERFLOW)
    if quiet:
        machine.push_bool(is_whole)


# Output actions


def _install(
    machine: Machine, tag: int, mode: int | None, *parts: tuple[int, int, tuple[Cell, ...]]
) -> None:
    """Append an action to the list in c5: OutList, OutAction."""
    builder = Builder(0, 0, (machine.c[5],)).store(tag, 32)
    if mode is not None:
        builder = builder.store(mode, 8)
    for part in parts:
        builder = builder.store(*part)
    machine.c[5] = machine.finish(builder)


_SEND, _RESERVE, _SET_CODE, _LIBRARY = 0x0EC3C86D, 0x36E6B809, 0xAD4DE08E, 0x26FA1DD4


@step("SENDRAWMSG")
def _send_raw(machine: Machine) -> None:
    machine.need(2)
    mode = machine.pop_range(255)
    _install(machine, _SEND, mode, (0, 0, (machine.pop_cell(),)))


@step("RAWRESERVE{extra}", extra={"": False, "X": True})
def _reserve(machine: Machine, *, extra: bool) -> None:
    machine.need(3 if extra else 2)
    mode = machine.pop_range(31 if machine.version >= _NEWER_MODES_SINCE else 15)
    currencies = machine.pop_maybe_cell() if extra else None
    amount = machine.pop_finite()
    if amount < 0:
        raise VmError(Exit.RANGE_CHECK)
    if amount >> _MAX_AMOUNT_BITS:
        raise VmError(Exit.CELL_OVERFLOW)
    value = store_amount(Builder(), amount, 4)
    refs = () if currencies is None else (currencies,)
    _install(machine, _RESERVE, mode, (value.value, value.bits, ()), (len(refs), 1, refs))


step("SETCODE")(lambda machine: _install(machine, _SET_CODE, None, (0, 0, (machine.pop_cell(),))))


@step("{has_code}", has_code={"SETLIBCODE": True, "CHANGELIB": False})
def _change_library(machine: Machine, *, has_code: bool) -> None:
    machine.need(2)
    is_new = machine.version >= _NEWER_MODES_SINCE
    mode = machine.pop_range(31 if is_new else 2)
    if mode & ~16 > 2:  # noqa: PLR2004 - remove, private, public
        raise VmError(Exit.RANGE_CHECK)
    value = 0 if has_code else machine.pop_finite()
    if value < 0 or value >> 256:
        raise VmError(Exit.RANGE_CHECK)
    library = (0, 0, (machine.pop_cell(),)) if has_code else (value, 256, ())
    _install(machine, _LIBRARY, mode * 2 + has_code, library)


_ONLY_FEE, _MAX_MODE = 1024, 255
_WITH_MESSAGE_VALUE, _WITH_BALANCE = 64, 128
_ADDRESS, _BALANCE, _MESSAGE_VALUE = 8, 7, 11
_MAX_CELLS = 1 << 13
_EXTRA_OUTSIDE_SINCE = 10
"""Global version since which extra currencies do not count as part of the message."""

_USER_FEES_IGNORED_SINCE = 14
_NO_IHR_SINCE, _EXTRA_FLAGS_SINCE = 11, 12
_MAX_BITS, _MAX_REFS = 1023, 4


class _Message(NamedTuple):
    """MessageRelaxed; ``value`` is None for an external one."""

    workchain: int | None
    address_bits: int
    value: int | None
    extra: Cell | None
    ihr_disabled: bool
    forward_fee: int
    ihr_fee: int
    init: Slice | Cell | None
    body: Slice | Cell


class _Parser(Loader):
    """Reads the fields of a message."""

    def number(self) -> int:
        """Read VarUInteger 16."""
        return self.uint(self.uint(4) * 8)

    def amount(self) -> int:
        """Read a number that must have the fewest bytes."""
        before = self.start
        amount = self.number()
        if self.start - before != _amount_bits(amount):
            raise VmError(Exit.UNKNOWN_ERROR)
        return amount

    def address(self, *, internal: bool | None = None) -> tuple[int | None, int]:
        """Read an address; return its workchain, None for an external one, and its bits.

        As in the node's generated parser, all but 00 is addr_extern where only that may stand.
        """
        before = self.start
        first, second = divmod(self.uint(2), 2)
        workchain = None
        if not (first if internal is None else internal):
            self.uint(self.uint(9) if first or second else 0)
        elif not first:
            raise VmError(Exit.UNKNOWN_ERROR)
        else:
            if self.uint(1):
                depth = self.uint(5)
                if depth not in ANYCAST_DEPTHS:
                    raise VmError(Exit.UNKNOWN_ERROR)
                self.uint(depth)
            bits = self.uint(9) if second else 256
            workchain = self.sint(32 if second else 8)
            self.uint(bits)
        return workchain, self.start - before


def _parse(part: Slice) -> _Message:
    """Parse MessageRelaxed: int_msg_info$0 or ext_out_msg_info$11, init, body."""
    read = _Parser(part)
    is_external = read.uint(1)
    value: int | None = None
    extra, fees, ihr_disabled = None, (0, 0), True
    if is_external:
        if not read.uint(1):
            raise VmError(Exit.UNKNOWN_ERROR)
        read.address()
        workchain, bits = read.address(internal=False)
    else:
        ihr_disabled = bool(read.uint(3) >> 2)
        read.address()
        workchain, bits = read.address(internal=True)
        value = read.amount()
        extra = read.child() if read.uint(1) else None
        fees = read.number(), read.amount()
    read.uint(64 + 32)
    init: Slice | Cell | None = None
    if read.uint(1):
        init = read.child() if read.uint(1) else _read_state_init(read)
    in_ref = read.uint(1)
    body = read.child() if in_ref else read.rest()
    if in_ref and (read.start < read.end or read.ref < read.ref_end):
        raise VmError(Exit.UNKNOWN_ERROR)
    forward, ihr = fees[1], fees[0]
    return _Message(workchain, bits, value, extra, ihr_disabled, forward, ihr, init, body)


def _read_state_init(read: _Parser) -> Slice:
    """Read StateInit in place: fixed_prefix_length, special, code, data, library."""
    start, ref = read.start, read.ref
    if read.uint(1):
        read.uint(5)
    if read.uint(1):
        read.uint(2)
    for _ in range(3):
        if read.uint(1):
            read.child()
    return Slice(read.cell, start, read.start, ref, read.ref)


def _amount_bits(amount: int) -> int:
    return 4 + (amount.bit_length() + 7) // 8 * 8


def _count_root(
    message: _Message,
    own_bits: int,
    value: int,
    fees: tuple[int, int],
    *,
    init_ref: bool,
    body_ref: bool,
) -> tuple[int, int]:
    """Return bits and references of the message's root as it will be sent."""
    if message.value is None:
        bits, refs = 2 + own_bits + message.address_bits + 32 + 64, 0
    else:
        bits = 4 + own_bits + message.address_bits + _amount_bits(value) + 1 + 32 + 64
        bits += sum(map(_amount_bits, fees))
        refs = int(message.extra is not None)
    bits += 1
    if message.init is not None:
        bits += 1
        if init_ref:
            refs += 1
        else:
            bits, refs = bits + message.init.bits, refs + len(message.init.refs)
    bits += 1
    if body_ref:
        return bits, refs + 1
    return bits + message.body.bits, refs + len(message.body.refs)


@step("SENDMSG")
def _send(machine: Machine) -> None:
    machine.need(2)
    mode = machine.pop_range(2047)
    sends = not mode & _ONLY_FEE
    mode &= ~_ONLY_FEE
    if mode > _MAX_MODE:
        raise VmError(Exit.RANGE_CHECK)
    cell = machine.pop_cell()
    try:
        message = _parse(machine.load(cell))
    except VmError as error:
        raise VmError(Exit.UNKNOWN_ERROR) from error
    fee = _find_fee(machine, message, cell, mode)
    machine.push_int(fee)
    if sends:
        _install(machine, _SEND, mode, (0, 0, (cell,)))


def _find_value(machine: Machine, message: _Message, mode: int) -> int:
    """Return the value that the message will carry."""
    place = None
    if mode & _WITH_BALANCE:
        place = _BALANCE
    elif mode & _WITH_MESSAGE_VALUE:
        place = _MESSAGE_VALUE
    value = message.value or 0
    if place is None or message.value is None:
        return value
    found = get_parameter(machine, place)
    if found.__class__ is not tuple or not found or found[0].__class__ is not int:
        raise VmError(Exit.TYPE_CHECK)
    return found[0] if place == _BALANCE else value + found[0]


def _count_below(machine: Machine, message: _Message, cell: Cell) -> Measure:
    """Count the cells below the root of the message."""
    measure = Measure(machine, _MAX_CELLS)
    machine.charge_load(cell)
    skipped = message.extra if machine.version >= _EXTRA_OUTSIDE_SINCE else None
    children = list(cell.refs)
    if skipped in children:  # it is below the library that a library cell stands for
        children.remove(skipped)
    for child in children:
        if not measure.add(child):
            break
    return measure


def _find_fee(machine: Machine, message: _Message, cell: Cell, mode: int) -> int:
    """Return the fees of sending a message, in nanoton."""
    own = expect(get_parameter(machine, _ADDRESS), Slice)
    mine = parse_address(machine, own)
    is_masterchain = message.workchain == -1 or (
        mine is not None and mine.workchain == -1 and mine.kind >= _STD
    )
    prices = get_forward_prices(machine, is_masterchain)
    measure = _count_below(machine, message, cell)
    value = _find_value(machine, message, mode)
    init_ref, body_ref = isinstance(message.init, Cell), isinstance(message.body, Cell)
    cells, bits = measure.cells, measure.bits
    while True:
        forward = prices.lump + round_up(prices.bit * bits + prices.cell * cells)
        ihr = 0
        if not message.ihr_disabled and machine.version < _NO_IHR_SINCE:
            ihr = max(forward * prices.ihr_factor >> 16, message.ihr_fee)
        if machine.version < _USER_FEES_IGNORED_SINCE:
            forward = max(forward, message.forward_fee)
        kept = forward - (forward * prices.first_share >> 16)
        stored_ihr = message.ihr_fee if machine.version >= _EXTRA_FLAGS_SINCE else ihr
        root = _count_root(
            message, own.bits, value, (kept, stored_ihr), init_ref=init_ref, body_ref=body_ref
        )
        if root[0] <= _MAX_BITS and root[1] <= _MAX_REFS:
            return forward + ihr
        if message.init is not None and not init_ref:
            init_ref = True
            cells, bits = cells + 1, bits + message.init.bits
        elif not body_ref:
            body_ref = True
            cells, bits = cells + 1, bits + message.body.bits
        else:
            return forward + ihr

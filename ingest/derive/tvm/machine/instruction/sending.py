"""SENDMSG: an action with a message, and its fees (``exec_send_message`` of ``tonops.cpp``)."""

from typing import NamedTuple

from tonlake.ingest.derive.tvm.machine.cell import Cell, Slice
from tonlake.ingest.derive.tvm.machine.code import step
from tonlake.ingest.derive.tvm.machine.fault import RANGE_CHECK, TYPE_CHECK, UNKNOWN_ERROR, VmError
from tonlake.ingest.derive.tvm.machine.instruction.environment import (
    Fields,
    get_forward_prices,
    get_parameter,
    round_up,
)
from tonlake.ingest.derive.tvm.machine.instruction.message import (
    ANYCAST_DEPTHS,
    Measure,
    install_message,
    parse_address,
)
from tonlake.ingest.derive.tvm.machine.state import Machine

_ONLY_FEE, _MAX_MODE = 1024, 255
_WITH_MESSAGE_VALUE, _WITH_BALANCE = 64, 128
_ADDRESS, _BALANCE, _MESSAGE_VALUE, _UNPACKED, _SIZE_LIMITS = 8, 7, 11, 14, 6
_MAX_CELLS = 1 << 13
_EXTRA_OUTSIDE_SINCE = 10
"""Global version since which extra currencies do not count as part of the message."""

_USER_FEES_IGNORED_SINCE = 14
_NO_IHR_SINCE, _EXTRA_FLAGS_SINCE = 11, 12
_MAX_BITS, _MAX_REFS = 1023, 4
_STD = 2


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


class _Parser(Fields):
    """Reads the fields of a message."""

    def number(self) -> int:
        """Read VarUInteger 16."""
        return self.uint(self.uint(4) * 8)

    def amount(self) -> int:
        """Read a number that must have the fewest bytes."""
        before = self.part
        amount = self.number()
        if before.bits - self.part.bits != _amount_bits(amount):
            raise VmError(UNKNOWN_ERROR)
        return amount

    def ref(self) -> Cell:
        child = self.part.child()
        self.part = self.part.skip(0, 1)
        return child

    def address(self, *, internal: bool | None = None) -> tuple[int | None, int]:
        """Read an address; return its workchain, None for an external one, and its bits.

        As in the node's generated parser, all but 00 is addr_extern where only that may stand.
        """
        before = self.part.bits
        first, second = divmod(self.uint(2), 2)
        workchain = None
        if not (first if internal is None else internal):
            self.uint(self.uint(9) if first or second else 0)
        elif not first:
            raise VmError(UNKNOWN_ERROR)
        else:
            if self.uint(1):
                depth = self.uint(5)
                if depth not in ANYCAST_DEPTHS:
                    raise VmError(UNKNOWN_ERROR)
                self.uint(depth)
            bits = self.uint(9) if second else 256
            width = 32 if second else 8
            workchain = self.uint(width)
            workchain -= workchain >> width - 1 << width
            self.uint(bits)
        return workchain, before - self.part.bits


def _parse(part: Slice) -> _Message:
    """Parse MessageRelaxed: int_msg_info$0 or ext_out_msg_info$11, init, body."""
    read = _Parser(part)
    is_external = read.uint(1)
    value: int | None = None
    extra, fees, ihr_disabled = None, (0, 0), True
    if is_external:
        if not read.uint(1):
            raise VmError(UNKNOWN_ERROR)
        read.address()
        workchain, bits = read.address(internal=False)
    else:
        ihr_disabled = bool(read.uint(3) >> 2)
        read.address()
        workchain, bits = read.address(internal=True)
        value = read.amount()
        extra = read.ref() if read.uint(1) else None
        fees = read.number(), read.amount()
    read.uint(64 + 32)
    init: Slice | Cell | None = None
    if read.uint(1):
        init = read.ref() if read.uint(1) else _read_state_init(read)
    in_ref = read.uint(1)
    body = read.ref() if in_ref else read.part
    if in_ref and (read.part.bits or read.part.ref_count):
        raise VmError(UNKNOWN_ERROR)
    forward, ihr = fees[1], fees[0]
    return _Message(workchain, bits, value, extra, ihr_disabled, forward, ihr, init, body)


def _read_state_init(read: _Parser) -> Slice:
    """Read StateInit in place: fixed_prefix_length, special, code, data, library."""
    start = read.part
    if read.uint(1):
        read.uint(5)
    if read.uint(1):
        read.uint(2)
    for _ in range(3):
        if read.uint(1):
            read.ref()
    rest = read.part
    return Slice(start.cell, start.start, rest.start, start.ref, rest.ref)


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
        raise VmError(RANGE_CHECK)
    cell = machine.pop_cell()
    try:
        message = _parse(machine.load(cell))
    except VmError as error:
        raise VmError(UNKNOWN_ERROR) from error
    fee = _find_fee(machine, message, cell, mode)
    machine.push_int(fee)
    if sends:
        install_message(machine, mode, cell)


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
        raise VmError(TYPE_CHECK)
    return found[0] if place == _BALANCE else value + found[0]


def _measure(machine: Machine, message: _Message, cell: Cell) -> Measure:
    """Count the cells below the root of the message."""
    measure = Measure(machine, _MAX_CELLS)
    machine.charge_load(cell)
    skipped = message.extra if machine.version >= _EXTRA_OUTSIDE_SINCE else None
    children = list(cell.refs)
    if skipped is not None:
        children.remove(skipped)
    for child in children:
        if not measure.add(child):
            break
    return measure


def _find_fee(machine: Machine, message: _Message, cell: Cell, mode: int) -> int:
    """Return the fees of sending a message, in nanoton."""
    own = get_parameter(machine, _ADDRESS)
    if own.__class__ is not Slice:
        raise VmError(TYPE_CHECK)
    mine = parse_address(machine, own)
    is_masterchain = message.workchain == -1 or (
        mine is not None and mine.workchain == -1 and mine.kind >= _STD
    )
    prices = get_forward_prices(machine, is_masterchain)
    measure = _measure(machine, message, cell)
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

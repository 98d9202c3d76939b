"""Instructions that read the environment of a run: c7, the configuration, gas: ``tonops.cpp``."""

from functools import partial
from hashlib import sha256, sha512
from types import NoneType
from typing import Any, NamedTuple

from tonlake.ingest.derive.tvm.machine.cell import Cell, Loader, Slice
from tonlake.ingest.derive.tvm.machine.code import maker, numbered, step, with_operands
from tonlake.ingest.derive.tvm.machine.dictionary import find_value
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.instruction.shuffle import extend_tuple
from tonlake.ingest.derive.tvm.machine.state import INFINITE_GAS, NAN, Machine, Nan, Step, expect

_NOW, _SEED, _BALANCE, _CONFIG = 3, 6, 7, 9
_PREVIOUS, _UNPACKED, _MESSAGE = 13, 14, 17
_STORAGE, _GLOBAL_ID, _GAS, _FORWARD = 0, 1, 2, 4
_MAX_UINT63 = (1 << 63) - 1


step("ACCEPT")(lambda machine: machine.set_gas_limit(machine.gas_max))
step("SETGASLIMIT")(lambda machine: machine.set_gas_limit(machine.pop_finite()))
step("GASCONSUMED")(lambda machine: machine.stack.append(machine.gas_used))


@step("COMMIT")
def _commit(machine: Machine) -> None:
    if not machine.commit():
        raise VmError(Exit.CELL_OVERFLOW)


def _index(values: Any, place: int) -> Any:  # noqa: ANN401 - stack values
    if place >= len(expect(values, tuple)):
        raise VmError(Exit.RANGE_CHECK)
    return values[place]


def get_parameter(machine: Machine, place: int) -> Any:  # noqa: ANN401 - a stack value
    """Return a value of SmartContractInfo."""
    machine.note_parameter(place)
    return _index(_index(machine.c[7], 0), place)


def _push_parameter(place: int) -> Step:
    return lambda machine: machine.stack.append(get_parameter(machine, place))


maker("GETPARAM", "GETPARAMLONG")(_push_parameter)
for _place, _name in enumerate(
    ("NOW", "BLOCKLT", "LTIME", "RANDSEED", "BALANCE", "MYADDR", "CONFIGROOT", "MYCODE",
     "INCOMINGVALUE", "STORAGEFEES", "PREVBLOCKSINFOTUPLE", "UNPACKEDCONFIGTUPLE", "DUEPAYMENT"),
    _NOW,
):  # fmt: skip
    step(_name)(_push_parameter(_place))
step("GETPRECOMPILEDGAS")(_push_parameter(16))
step("INMSGPARAMS")(_push_parameter(_MESSAGE))


def _push_part(parameter: int, place: int, machine: Machine) -> None:
    machine.stack.append(_index(get_parameter(machine, parameter), place))


with_operands("INMSGPARAM")(partial(_push_part, _MESSAGE))
for _place, _name in enumerate(
    ("BOUNCE", "BOUNCED", "SRC", "FWDFEE", "LT", "UTIME", "ORIGVALUE", "VALUE", "VALUEEXTRA",
     "STATEINIT")
):  # fmt: skip
    step(f"INMSG_{_name}")(partial(_push_part, _MESSAGE, _place))
for _place, _name in enumerate(("PREVMCBLOCKS", "PREVKEYBLOCK", "PREVMCBLOCKS_100")):
    step(_name)(partial(_push_part, _PREVIOUS, _place))


# Random numbers


def _get_seed(machine: Machine) -> bytes:
    return to_octets(expect(get_parameter(machine, _SEED), int))


def _set_seed(machine: Machine, seed: bytes) -> None:
    info = _index(machine.c[7], 0)
    made = extend_tuple(info, _SEED, int.from_bytes(seed, "big"))
    c7 = extend_tuple(machine.c[7], 0, made)
    machine.use(len(made or ()))
    machine.use(len(c7 or ()))
    machine.c[7] = c7


def _draw(machine: Machine) -> int:
    mixed = sha512(_get_seed(machine)).digest()
    _set_seed(machine, mixed[:32])
    return int.from_bytes(mixed[32:], "big")


step("RANDU256")(lambda machine: machine.stack.append(_draw(machine)))


@step("RAND")
def _push_random_below(machine: Machine) -> None:
    limit = machine.pop_finite()
    machine.push_int(limit * _draw(machine) >> 256)


@step("SETRAND")
def _replace_seed(machine: Machine) -> None:
    _set_seed(machine, _pop_hash(machine))


@step("ADDRAND")
def _mix_seed(machine: Machine) -> None:
    added = _pop_hash(machine)
    _set_seed(machine, sha256(_get_seed(machine) + added).digest())


def _pop_hash(machine: Machine) -> bytes:
    return to_octets(machine.pop_finite())


def to_octets(value: int | Nan) -> bytes:
    """Return 32 bytes; raise VmError for a number that is not one of 256 bits."""
    if value is NAN or value < 0 or value >> 256:  # type: ignore[operator]
        raise VmError(Exit.RANGE_CHECK)
    return value.to_bytes(32, "big")  # type: ignore[union-attr]


# Configuration


step("CONFIGDICT")(lambda machine: machine.stack.extend((get_parameter(machine, _CONFIG), 32)))


def _find_config_parameter(machine: Machine) -> Cell | None:
    number = machine.pop_int()
    root = expect(get_parameter(machine, _CONFIG), Cell, NoneType)
    if number is NAN or not -(1 << 31) <= number < 1 << 31:  # type: ignore[operator]
        return None
    found = find_value(machine, root, number & 0xFFFFFFFF, 32)  # type: ignore[operator]
    if found is None:
        return None
    if found.bits or found.ref_count != 1:
        raise VmError(Exit.DICTIONARY_ERROR)
    return found.child()


@step("CONFIGPARAM")
def _push_config_parameter(machine: Machine) -> None:
    found = _find_config_parameter(machine)
    machine.stack += (0,) if found is None else (found, -1)


step("CONFIGOPTPARAM")(lambda machine: machine.stack.append(_find_config_parameter(machine)))


def _get_unpacked(machine: Machine, place: int, *others: type) -> Any:  # noqa: ANN401
    """Return a parameter that c7 holds unpacked: a slice, or one of the other types."""
    return expect(_index(get_parameter(machine, _UNPACKED), place), Slice, *others)


@step("GLOBALID")
def _push_global_id(machine: Machine) -> None:
    value = _get_unpacked(machine, _GLOBAL_ID).peek(32)  # before version 6 there is none
    machine.stack.append(value - (value >> 31 << 32))


def _read_gas_prices(part: Slice) -> tuple[int, int, int]:
    """Return flat limit, flat price and price (in units of 2^-16) of GasLimitsPrices."""
    fields = Loader(part)
    tag = fields.uint(8)
    flat_limit = flat_price = 0
    if tag == 0xD1:  # noqa: PLR2004 - gas_flat_pfx
        flat_limit, flat_price = fields.uint(64), fields.uint(64)
        tag = fields.uint(8)
    if tag not in (0xDD, 0xDE):  # gas_prices, gas_prices_ext
        raise VmError(Exit.CELL_UNDERFLOW)
    return flat_limit, flat_price, fields.uint(64)


class ForwardPrices(NamedTuple):
    """MsgForwardPrices: nanoton, for a bit and a cell in units of 2^-16; shares of 2^-16."""

    lump: int
    bit: int
    cell: int
    ihr_factor: int
    first_share: int


def round_up(value: int) -> int:
    """Return units of 2^-16 as nanoton, rounded up."""
    return -(-value >> 16)


def get_forward_prices(machine: Machine, is_masterchain: bool) -> ForwardPrices:  # noqa: FBT001
    """Return the forward prices of the masterchain or of other workchains."""
    fields = Loader(_get_unpacked(machine, _FORWARD + (not is_masterchain)))
    if fields.uint(8) != 0xEA:  # noqa: PLR2004 - msg_forward_prices
        raise VmError(Exit.CELL_UNDERFLOW)
    return ForwardPrices(*(fields.uint(bits) for bits in (64, 64, 64, 32, 16)))


@step("GETGASFEE{flat_part}", flat_part={"": True, "SIMPLE": False})
def _gas_fee(machine: Machine, *, flat_part: bool) -> None:
    machine.need_all(2)
    is_masterchain = machine.pop_bool()
    gas = machine.pop_range(_MAX_UINT63)
    limit, flat, price = _read_gas_prices(_get_unpacked(machine, _GAS + (not is_masterchain)))
    if not flat_part:
        limit = flat = 0
    machine.push_int(flat if gas <= limit else flat + round_up(price * (gas - limit)))


@step("GETSTORAGEFEE")
def _storage_fee(machine: Machine) -> None:
    machine.need_all(4)
    is_masterchain = machine.pop_bool()
    seconds = machine.pop_range(_MAX_UINT63)
    bits = machine.pop_range(_MAX_UINT63)
    cells = machine.pop_range(_MAX_UINT63)
    found = _get_unpacked(machine, _STORAGE, NoneType)
    if found is None:
        machine.stack.append(0)
        return
    fields = Loader(found)
    if fields.uint(8) != 0xCC:  # noqa: PLR2004 - StoragePrices
        raise VmError(Exit.CELL_UNDERFLOW)
    fields.uint(32)
    bit, cell, mc_bit, mc_cell = (fields.uint(64) for _ in range(4))
    if is_masterchain:
        bit, cell = mc_bit, mc_cell
    machine.push_int(round_up((bit * bits + cell * cells) * seconds))


@step("GETFORWARDFEE{has_lump}", has_lump={"": True, "SIMPLE": False})
def _forward_fee(machine: Machine, *, has_lump: bool) -> None:
    machine.need_all(3)
    is_masterchain = machine.pop_bool()
    bits = machine.pop_range(_MAX_UINT63)
    cells = machine.pop_range(_MAX_UINT63)
    prices = get_forward_prices(machine, is_masterchain)
    fee = round_up(prices.bit * bits + prices.cell * cells)
    machine.push_int(fee + prices.lump * has_lump)


@step("GETORIGINALFWDFEE")
def _original_forward_fee(machine: Machine) -> None:
    machine.need_all(2)
    is_masterchain = machine.pop_bool()
    fee = machine.pop_finite()
    if fee < 0:
        raise VmError(Exit.RANGE_CHECK)
    first = get_forward_prices(machine, is_masterchain).first_share
    machine.push_int((fee << 16) // ((1 << 16) - first))


class _CheapLoads(Machine):
    """Loads cells for another machine, all of them for at most ``left`` gas."""

    __slots__ = ("left", "machine")

    def __init__(self, machine: Machine, left: int) -> None:
        self.machine = machine
        self.left = left

    def load(self, cell: Cell) -> Slice:
        """Load a cell for no more gas than is left."""
        gas, self.machine.gas = self.machine.gas, INFINITE_GAS
        try:
            return self.machine.load(cell)
        finally:
            spent = min(INFINITE_GAS - self.machine.gas, self.left)
            self.left -= spent
            self.machine.gas = gas
            self.machine.use(spent)


@step("GETEXTRABALANCE")
def _extra_balance(machine: Machine) -> None:
    number = machine.pop_range((1 << 32) - 1)
    root = expect(_index(get_parameter(machine, _BALANCE), 1), Cell, NoneType)
    machine.free_extra -= 1
    is_cheap = machine.free_extra >= 0  # the first five
    found = find_value(_CheapLoads(machine, 200) if is_cheap else machine, root, number, 32)
    if found is None:
        machine.stack.append(0)
        return
    fields = Loader(found)
    machine.stack.append(fields.uint(fields.uint(5) * 8))


# Global variables


@numbered("GETGLOB", "GETGLOBVAR", 254, count=1)
def _get_variable(machine: Machine, number: int) -> None:
    values = machine.c[7] if number else machine.get_register(7)
    machine.stack.append(values[number] if number < len(values) else None)


@numbered("SETGLOB", "SETGLOBVAR", 254)
def _set_variable(machine: Machine, number: int) -> None:
    value = machine.stack.pop()
    old = machine.c[7]
    made = extend_tuple(old, number, value) or ()
    machine.c[7] = made
    if made is not old:
        machine.use(len(made))

"""Instructions on the groups Ristretto and BLS12-381: ``crypto/vm/tonops.cpp``, ``bls.cpp``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from py_arkworks_bls12381 import GT, G1Point, G2Point, Scalar

from tonlake.ingest.derive.tvm.machine import ristretto
from tonlake.ingest.derive.tvm.machine.cell import Builder, Slice
from tonlake.ingest.derive.tvm.machine.code import step
from tonlake.ingest.derive.tvm.machine.fault import (
    CELL_UNDERFLOW,
    RANGE_CHECK,
    UNKNOWN_ERROR,
    VmError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tonlake.ingest.derive.tvm.machine.state import Machine

_HASH_GAS, _VALIDATE_GAS, _ADD_GAS, _MULTIPLY_GAS, _BASE_GAS = 600, 200, 600, 2000, 750


step("RIST255_PUSHL")(lambda machine: machine.stack.append(ristretto.ORDER))


@step("RIST255_FROMHASH")
def _hash_to_ristretto(machine: Machine) -> None:
    machine.need(2)
    other, one = machine.pop_int(), machine.pop_int()
    machine.use(_HASH_GAS)
    octets = b"".join(_to_octets(each) for each in (one, other))
    machine.stack.append(ristretto.from_hash(octets))


def _to_octets(value: Any) -> bytes:  # noqa: ANN401 - an integer or NaN
    if value.__class__ is not int or value < 0 or value >> 256:
        raise VmError(RANGE_CHECK)
    return value.to_bytes(32, "big")


def _leave(machine: Machine, found: int | None, *, quiet: bool) -> None:
    machine.leave(None if found is None else (found,), quiet=quiet, error=RANGE_CHECK)


_NO_POINT = -1


def _validate(machine: Machine, *, quiet: bool) -> None:
    value = machine.pop_int()
    machine.use(_VALIDATE_GAS)
    is_good = value.__class__ is int and ristretto.decode(value) is not None
    if quiet:
        machine.push_bool(is_good)
    elif not is_good:
        raise VmError(RANGE_CHECK)


def _combine(machine: Machine, apply: Callable[[int, int], int | None], *, quiet: bool) -> None:
    machine.need(2)
    other, one = machine.pop_int(), machine.pop_int()
    machine.use(_ADD_GAS)
    are_numbers = one.__class__ is int and other.__class__ is int
    _leave(machine, apply(one, other) if are_numbers else None, quiet=quiet)  # type: ignore[arg-type]


def _multiply(machine: Machine, *, quiet: bool) -> None:
    machine.need(2)
    number, point = machine.pop_int(), machine.pop_int()
    machine.use(_MULTIPLY_GAS)
    found = None
    if number.__class__ is int:
        encoded = point if point.__class__ is int else _NO_POINT
        found = ristretto.multiply(encoded, number, machine.version)
    _leave(machine, found, quiet=quiet)


def _multiply_base(machine: Machine, *, quiet: bool) -> None:
    number = machine.pop_int()
    machine.use(_BASE_GAS)
    found = ristretto.multiply_base(number) if number.__class__ is int else None
    _leave(machine, found, quiet=quiet)


for _quiet in (False, True):
    _start = f"RIST255_{'Q' * _quiet}"
    step(f"{_start}VALIDATE")(partial(_validate, quiet=_quiet))
    step(f"{_start}ADD")(partial(_combine, apply=ristretto.add, quiet=_quiet))
    step(f"{_start}SUB")(partial(_combine, apply=ristretto.subtract, quiet=_quiet))
    step(f"{_start}MUL")(partial(_multiply, quiet=_quiet))
    step(f"{_start}MULBASE")(partial(_multiply_base, quiet=_quiet))


# BLS12-381: points are slices of 48 (G1) or 96 bytes (G2), compressed. Public keys are in G1,
# signatures in G2.

_G1_BYTES, _G2_BYTES = 48, 96
_R = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
_P = (
    0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F624 << 128
    | 0x1EABFFFEB153FFFFB9FEFFFFFFFFAAAB
)
_DOMAIN = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_"


def _take(part: Slice, count: int) -> bytes:
    """Return the first bytes of a slice."""
    return part.peek(count * 8).to_bytes(count, "big")


def _push(machine: Machine, octets: bytes) -> None:
    machine.stack.append(Builder(int.from_bytes(octets, "big"), len(octets) * 8).cell().slice())


def _message(part: Slice) -> bytes:
    if part.bits % 8:
        raise VmError(CELL_UNDERFLOW)
    return part.uint().to_bytes(part.bits // 8, "big")


def _point(kind: Any, octets: bytes, *, checks: bool = False) -> Any:  # noqa: ANN401 - of arkworks
    """Return a point; raise VmError if the bytes are none, or not in the group if ``checks``."""
    if octets[0] & 0x40 and (octets[0] != 0xC0 or any(octets[1:])):  # noqa: PLR2004 - flags
        raise VmError(UNKNOWN_ERROR)  # infinity with a coordinate, which the package accepts
    try:
        return (
            kind.from_compressed_bytes(octets)
            if checks
            else kind.from_compressed_bytes_unchecked(octets)
        )
    except ValueError as error:
        raise VmError(UNKNOWN_ERROR) from error


def _pop_many(machine: Machine, count: int) -> list[Slice]:
    return [machine.pop_slice() for _ in range(count)][::-1]


_VERIFY_GAS = 61000
_AGGREGATE_BASE_GAS, _AGGREGATE_GAS = -2650, 4350
_FAST_BASE_GAS, _FAST_GAS = 58000, 3000
_MANY_BASE_GAS, _MANY_GAS = 38500, 22500
_PAIRING_BASE_GAS, _PAIRING_GAS = 20000, 11800


def _verify(keys: list[bytes], messages: list[bytes], signature: bytes) -> bool:
    """Return whether an aggregate of signatures is valid."""
    try:
        points = [G1Point.from_compressed_bytes(key) for key in keys]
        total = G2Point.from_compressed_bytes(signature)
    except ValueError:
        return False
    if not points or any(point == G1Point.identity() for point in points):
        return False
    hashes = [G2Point.hash_to_curve(message, _DOMAIN) for message in messages]
    return bool(GT.pairing_check([*points, -G1Point()], [*hashes, total]))


@step("BLS_VERIFY")
def _verify_one(machine: Machine) -> None:
    machine.need(3)
    machine.use(_VERIFY_GAS)
    signature = _take(machine.pop_slice(), _G2_BYTES)
    message = _message(machine.pop_slice())
    key = _take(machine.pop_slice(), _G1_BYTES)
    machine.push_bool(_verify([key], [message], signature))


@step("BLS_AGGREGATE")
def _aggregate(machine: Machine) -> None:
    count = machine.pop_range(len(machine.stack) - 1, 1)
    machine.use(_AGGREGATE_BASE_GAS + count * _AGGREGATE_GAS)
    total = G2Point.identity()
    parts = [_take(part, _G2_BYTES) for part in _pop_many(machine, count)]
    for part in parts:
        total = total + _point(G2Point, part, checks=True)
    _push(machine, total.to_compressed_bytes())


@step("BLS_FASTAGGREGATEVERIFY")
def _verify_fast(machine: Machine) -> None:
    machine.need(3)
    signature, message = machine.pop_slice(), machine.pop_slice()
    count = machine.pop_range(len(machine.stack) - 1)
    machine.use(_FAST_BASE_GAS + count * _FAST_GAS)
    keys = [_take(part, _G1_BYTES) for part in _pop_many(machine, count)]
    is_good = _verify_shared(keys, _message(message), _take(signature, _G2_BYTES))
    machine.push_bool(is_good)


def _verify_shared(keys: list[bytes], message: bytes, signature: bytes) -> bool:
    """Return whether all keys signed one message."""
    try:
        points = [G1Point.from_compressed_bytes(key) for key in keys]
    except ValueError:
        return False
    if not points or any(point == G1Point.identity() for point in points):
        return False
    total = points[0]
    for point in points[1:]:
        total = total + point
    return _verify([bytes(total.to_compressed_bytes())], [message], signature)


@step("BLS_AGGREGATEVERIFY")
def _verify_many(machine: Machine) -> None:
    machine.need(2)
    signature = machine.pop_slice()
    count = machine.pop_range((len(machine.stack) - 1) // 2)
    machine.use(_MANY_BASE_GAS + count * _MANY_GAS)
    parts = _pop_many(machine, 2 * count)
    keys = [_take(part, _G1_BYTES) for part in parts[::2]]
    messages = [_message(part) for part in parts[1::2]]
    machine.push_bool(_verify(keys, messages, _take(signature, _G2_BYTES)))


class _Group:
    """The instructions on one of the groups."""

    def __init__(self, name: str, kind: Any, size: int, gas: dict[str, int]) -> None:  # noqa: ANN401
        self.kind = kind
        self.size = size
        self.gas = gas
        self.zero = b"\xc0" + bytes(size - 1)
        for verb, run in (
            ("ADD", self.add), ("SUB", self.subtract), ("NEG", self.negate), ("MUL", self.multiply),
            ("MULTIEXP", self.multiply_many), ("ZERO", self.push_zero),
            ("INGROUP", self.is_in_group), ("ISZERO", self.is_zero),
        ):  # fmt: skip
            step(f"BLS_{name}_{verb}")(run)
        step(f"BLS_MAP_TO_{name}")(self.map)

    def pop(self, machine: Machine) -> Any:  # noqa: ANN401 - a point of arkworks
        return _point(self.kind, self.pop_octets(machine))

    def pop_octets(self, machine: Machine) -> bytes:
        return _take(machine.pop_slice(), self.size)

    def push(self, machine: Machine, point: Any) -> None:  # noqa: ANN401 - a point of arkworks
        _push(machine, bytes(point.to_compressed_bytes()))

    def add(self, machine: Machine) -> None:
        machine.need(2)
        machine.use(self.gas["add"])
        other, one = self.pop_octets(machine), self.pop_octets(machine)
        self.push(machine, _point(self.kind, one) + _point(self.kind, other))

    def subtract(self, machine: Machine) -> None:
        machine.need(2)
        machine.use(self.gas["add"])
        other, one = self.pop_octets(machine), self.pop_octets(machine)
        self.push(machine, _point(self.kind, one) - _point(self.kind, other))

    def negate(self, machine: Machine) -> None:
        machine.use(self.gas["neg"])
        self.push(machine, -self.pop(machine))

    def multiply(self, machine: Machine) -> None:
        machine.need(2)
        machine.use(self.gas["mul"])
        number = machine.pop_finite()
        octets = self.pop_octets(machine)
        self.push(machine, self._times(_point(self.kind, octets), number))

    def _times(self, point: Any, number: int) -> Any:  # noqa: ANN401 - points of arkworks
        return point * Scalar.from_le_bytes((number % _R).to_bytes(32, "little"))

    def multiply_many(self, machine: Machine) -> None:
        count = machine.pop_range((len(machine.stack) - 1) // 2)
        share = max(count.bit_length() - 1, 4)
        machine.use(
            self.gas["many"] + count * self.gas["each"] + count * self.gas["share"] // share
        )
        total = self.kind.identity()
        for _ in range(count):
            number = machine.pop_finite()
            total = total + self._times(self.pop(machine), number)
        self.push(machine, total)

    def push_zero(self, machine: Machine) -> None:
        _push(machine, self.zero)

    def is_zero(self, machine: Machine) -> None:
        machine.push_bool(self.pop_octets(machine) == self.zero)

    def is_in_group(self, machine: Machine) -> None:
        machine.use(self.gas["in"])
        octets = self.pop_octets(machine)
        try:
            is_good = self.kind.from_compressed_bytes_unchecked(octets).is_in_subgroup()
        except ValueError:
            is_good = False
        machine.push_bool(is_good)

    def map(self, machine: Machine) -> None:
        machine.use(self.gas["map"])
        octets = self.pop_octets(machine)
        numbers = [int.from_bytes(octets[i : i + 48], "big") % _P for i in range(0, self.size, 48)]
        reduced = b"".join(number.to_bytes(48, "big") for number in numbers)
        map_from = G1Point.map_from_fp_be if self.size == _G1_BYTES else G2Point.map_from_fp2_be
        self.push(machine, map_from(reduced))


_Group("G1", G1Point, _G1_BYTES, {
    "add": 3900, "neg": 750, "mul": 5200, "many": 11375, "each": 630, "share": 8820,
    "in": 2950, "map": 2350,
})  # fmt: skip
_Group("G2", G2Point, _G2_BYTES, {
    "add": 6100, "neg": 1550, "mul": 10550, "many": 30388, "each": 1280, "share": 22840,
    "in": 4250, "map": 7950,
})  # fmt: skip


@step("BLS_PAIRING")
def _pair(machine: Machine) -> None:
    count = machine.pop_range((len(machine.stack) - 1) // 2)
    machine.use(_PAIRING_BASE_GAS + count * _PAIRING_GAS)
    parts = _pop_many(machine, 2 * count)
    pairs = [
        (_take(one, _G1_BYTES), _take(other, _G2_BYTES))
        for one, other in zip(parts[::2], parts[1::2], strict=True)
    ]
    firsts = [_point(G1Point, one) for one, _ in pairs]
    seconds = [_point(G2Point, other) for _, other in pairs]
    machine.push_bool(bool(pairs) and bool(GT.pairing_check(firsts, seconds)))


step("BLS_PUSHR")(lambda machine: machine.stack.append(_R))

"""Hashes, signatures and groups of points: ``crypto/vm/tonops.cpp`` from HASHCU on.

Some packages are loaded when first needed: they take longer than most commands, and few contracts
use them.
"""

import hashlib
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from py_arkworks_bls12381 import GT, G1Point, G2Point

from tonlake.ingest.derive.tvm.machine import bls12381, ristretto
from tonlake.ingest.derive.tvm.machine.cell import Builder, Slice
from tonlake.ingest.derive.tvm.machine.code import QUIET, step, with_operands
from tonlake.ingest.derive.tvm.machine.fault import Exit, VmError
from tonlake.ingest.derive.tvm.machine.instruction.environment import to_octets
from tonlake.ingest.derive.tvm.machine.secp256k1 import recover, tweak
from tonlake.ingest.derive.tvm.machine.state import Machine

_SIGNATURE_GAS = 4000
_SIGNATURE_GAS_SINCE, _SMALL_KEYS_REFUSED_SINCE, _WIDE_RECOVERY_SINCE = 4, 14, 14
_RECOVER_GAS, _TWEAK_GAS, _P256_GAS = 1500, 1250, 3500
_SIGNATURE_BYTES, _P256_KEY_BYTES = 64, 33
_WEAK_KEYS = (bytes(32), b"\x01" + bytes(31))


def _push_digest(machine: Machine, digest: bytes) -> None:
    machine.stack.append(int.from_bytes(digest, "big"))


step("HASHCU")(lambda machine: _push_digest(machine, machine.pop_cell().hash))
step("HASHBU")(lambda machine: _push_digest(machine, machine.pop_builder().cell().hash))


@step("HASHSU")
def _hash_slice(machine: Machine) -> None:
    _push_digest(machine, machine.finish(Builder().store_slice(machine.pop_slice())).hash)


def _octets(part: Slice) -> bytes:
    """Return the bits of a slice as bytes; raise VmError if the last one is not whole."""
    if part.bits % 8:
        raise VmError(Exit.CELL_UNDERFLOW)
    return part.uint().to_bytes(part.bits // 8, "big")


@step("SHA256U")
def _hash_bits(machine: Machine) -> None:
    _push_digest(machine, hashlib.sha256(_octets(machine.pop_slice())).digest())


def _keccak(data: bytes, bits: int) -> bytes:
    from Cryptodome.Hash import keccak  # noqa: PLC0415 - see the module

    return keccak.new(data=data, digest_bits=bits).digest()


_HASHES: tuple[tuple[Callable[[bytes], bytes], int], ...] = (
    (lambda data: hashlib.sha256(data).digest(), 33),
    (lambda data: hashlib.sha512(data).digest(), 16),
    (lambda data: hashlib.blake2b(data).digest(), 19),
    (lambda data: _keccak(data, 256), 11),
    (lambda data: _keccak(data, 512), 6),
)
"""Hash functions by number, and the bytes that a unit of gas pays for."""

_NUMBER_ON_STACK = 255
_BUILDER_BELOW_SINCE = 9


@with_operands(
    "HASHEXT{appends}{reverse}", appends={"": False, "A": True}, reverse={"": False, "R": True}
)
def _hash_many(number: int, machine: Machine, *, reverse: bool, appends: bool) -> None:
    """Hash the concatenation of slices and builders."""
    if number == _NUMBER_ON_STACK:
        machine.need_all(2)
        number = machine.pop_range(254)
    below = appends and machine.version >= _BUILDER_BELOW_SINCE
    count = machine.pop_range(len(machine.stack) - 1 - below)
    if number >= len(_HASHES):
        raise VmError(Exit.RANGE_CHECK)
    function, octets_a_gas = _HASHES[number]
    stack = machine.stack
    at = len(stack) - count
    parts = stack[at:]
    chunks: list[bytes] = []  # one long number would be copied with each part
    value = total = paid = 0
    for place, part in enumerate(reversed(parts) if reverse else parts):
        bits, read = _read_part(part)
        value = value << bits | read
        width = total % 8 + bits
        chunks.append((value >> width % 8).to_bytes(width // 8, "big"))
        value &= (1 << width % 8) - 1
        total += bits
        gas = place + 1 + total // 8 // octets_a_gas
        machine.use(gas - paid)
        paid = gas
    del stack[at:]
    if total % 8:
        raise VmError(Exit.CELL_UNDERFLOW)
    digest = function(b"".join(chunks))
    if appends:
        builder = machine.pop_builder()
        stack.append(builder.store(int.from_bytes(digest, "big"), len(digest) * 8))
        return
    halves = [int.from_bytes(digest[i : i + 32], "big") for i in range(0, len(digest), 32)]
    stack.append(halves[0] if len(halves) == 1 else tuple(halves))


def _read_part(part: Any) -> tuple[int, int]:  # noqa: ANN401 - a stack value
    if part.__class__ is Slice:
        return part.bits, part.uint()
    if part.__class__ is Builder:
        return part.bits, part.value
    raise VmError(Exit.TYPE_CHECK)


def _check_ed25519(key: bytes, signature: bytes, data: bytes, version: int) -> bool:
    if version >= _SMALL_KEYS_REFUSED_SINCE and key in _WEAK_KEYS:
        return False
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see the module
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _take_octets(part: Slice, count: int) -> bytes:
    return part.peek(count * 8).to_bytes(count, "big")


def _check_p256(key: bytes, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see the module
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    try:
        found = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
        pair = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        found.verify(encode_dss_signature(*pair), data, ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


@step("{curve}CHKSIGN{is_slice}", curve={"": "", "P256_": "P256"}, is_slice={"U": False, "S": True})
def _check_signature(machine: Machine, curve: str, *, is_slice: bool) -> None:
    """Check what is signed: the number of a hash, or the bits of a slice."""
    machine.need(3)
    key = machine.pop_slice() if curve else machine.pop_int()
    signature_slice = machine.pop_slice()
    data = _octets(machine.pop_slice()) if is_slice else to_octets(machine.pop_int())
    signature = _take_octets(signature_slice, _SIGNATURE_BYTES)
    if isinstance(key, Slice):
        octets = _take_octets(key, _P256_KEY_BYTES)
        machine.use(_P256_GAS)
        machine.push_bool(_check_p256(octets, signature, data))
        return
    octets = to_octets(key)
    if machine.version >= _SIGNATURE_GAS_SINCE:
        machine.free_signatures -= 1
        if machine.free_signatures < 0:
            machine.use(_SIGNATURE_GAS)
    machine.push_bool(_check_ed25519(octets, signature, data, machine.version))


@step("ECRECOVER")
def _recover(machine: Machine) -> None:
    machine.need(4)
    s, r = machine.pop_int(), machine.pop_int()
    v = machine.pop_range(255)
    digest = machine.pop_int()
    values = [int.from_bytes(to_octets(each), "big") for each in (digest, r, s)]
    machine.use(_RECOVER_GAS)
    if v in (27, 28) and machine.version >= _WIDE_RECOVERY_SINCE:
        v -= 27
    found = recover(values[0], v, values[1], values[2])
    machine.stack += (0,) if found is None else (4, *found, -1)


@step("SECP256K1_XONLY_PUBKEY_TWEAK_ADD")
def _tweak(machine: Machine) -> None:
    machine.need(2)
    by, key = machine.pop_int(), machine.pop_int()
    octets = [int.from_bytes(to_octets(each), "big") for each in (key, by)]
    machine.use(_TWEAK_GAS)
    found = tweak(*octets)
    machine.stack += (0,) if found is None else (4, *found, -1)


# The groups Ristretto and BLS12-381: ``bls.cpp``

_HASH_GAS, _VALIDATE_GAS, _ADD_GAS, _MULTIPLY_GAS, _BASE_GAS = 600, 200, 600, 2000, 750


step("RIST255_PUSHL")(lambda machine: machine.stack.append(ristretto.ORDER))


@step("RIST255_FROMHASH")
def _hash_to_ristretto(machine: Machine) -> None:
    machine.need(2)
    other, one = machine.pop_int(), machine.pop_int()
    machine.use(_HASH_GAS)
    octets = to_octets(one) + to_octets(other)
    machine.stack.append(ristretto.from_hash(octets))


def _leave(machine: Machine, found: int | None, *, quiet: bool) -> None:
    machine.leave(None if found is None else (found,), quiet=quiet, error=Exit.RANGE_CHECK)


_NO_POINT = -1


@step("RIST255_{quiet}VALIDATE", quiet=QUIET)
def _validate(machine: Machine, *, quiet: bool) -> None:
    value = machine.pop_int()
    machine.use(_VALIDATE_GAS)
    is_good = value.__class__ is int and ristretto.decode(value) is not None
    if quiet:
        machine.push_bool(is_good)
    elif not is_good:
        raise VmError(Exit.RANGE_CHECK)


@step("RIST255_{quiet}{sign}", quiet=QUIET, sign={"ADD": 1, "SUB": -1})
def _combine(machine: Machine, sign: int, *, quiet: bool) -> None:
    machine.need(2)
    other, one = machine.pop_int(), machine.pop_int()
    machine.use(_ADD_GAS)
    are_numbers = isinstance(one, int) and isinstance(other, int)
    _leave(machine, ristretto.add(one, other, sign) if are_numbers else None, quiet=quiet)  # type: ignore[arg-type]


@step("RIST255_{quiet}MUL", quiet=QUIET)
def _multiply(machine: Machine, *, quiet: bool) -> None:
    machine.need(2)
    number, point = machine.pop_int(), machine.pop_int()
    machine.use(_MULTIPLY_GAS)
    found = None
    if number.__class__ is int:
        encoded = point if point.__class__ is int else _NO_POINT
        found = ristretto.multiply(encoded, number, machine.version)
    _leave(machine, found, quiet=quiet)


@step("RIST255_{quiet}MULBASE", quiet=QUIET)
def _multiply_base(machine: Machine, *, quiet: bool) -> None:
    number = machine.pop_int()
    machine.use(_BASE_GAS)
    found = ristretto.multiply_base(number) if number.__class__ is int else None
    _leave(machine, found, quiet=quiet)


# BLS12-381: points are slices of 48 (G1) or 96 bytes (G2), compressed. Public keys are in G1,
# signatures in G2.

_G1_BYTES, _G2_BYTES = 48, 96
_DOMAIN = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_"


def _push(machine: Machine, octets: bytes) -> None:
    machine.stack.append(Builder(int.from_bytes(octets, "big"), len(octets) * 8).cell().slice())


def _point(kind: Any, octets: bytes, *, checks: bool = False) -> Any:  # noqa: ANN401 - of arkworks
    """Return a point; raise VmError if the bytes are none, or not in the group if ``checks``."""
    if octets[0] & 0x40 and (octets[0] != 0xC0 or any(octets[1:])):  # noqa: PLR2004 - flags
        raise VmError(Exit.UNKNOWN_ERROR)  # infinity with a coordinate, which the package accepts
    try:
        return (
            kind.from_compressed_bytes(octets)
            if checks
            else kind.from_compressed_bytes_unchecked(octets)
        )
    except ValueError as error:
        raise VmError(Exit.UNKNOWN_ERROR) from error


def _pop_many(machine: Machine, count: int) -> list[Slice]:
    return [machine.pop_slice() for _ in range(count)][::-1]


_VERIFY_GAS = 61000
_AGGREGATE_BASE_GAS, _AGGREGATE_GAS = -2650, 4350
_FAST_BASE_GAS, _FAST_GAS = 58000, 3000
_MANY_BASE_GAS, _MANY_GAS = 38500, 22500
_PAIRING_BASE_GAS, _PAIRING_GAS = 20000, 11800
_NO_PAIR = G1Point.identity(), G2Point.identity()
_BATCH = 8


def _read_keys(keys: list[bytes]) -> list[Any]:
    """Return the points of public keys; [] if one is invalid or the identity."""
    try:
        points = [G1Point.from_compressed_bytes(key) for key in keys]
    except ValueError:
        return []
    return [] if any(point == G1Point.identity() for point in points) else points


def _verify(keys: list[bytes], messages: list[bytes], signature: bytes) -> bool:
    """Return whether an aggregate of signatures is valid."""
    points = _read_keys(keys)
    try:
        total = G2Point.from_compressed_bytes(signature)
    except ValueError:
        return False
    if not points:
        return False
    hashes = [G2Point.hash_to_curve(message, _DOMAIN) for message in messages]
    return bool(GT.pairing_check([*points, -G1Point()], [*hashes, total]))


@step("BLS_VERIFY")
def _verify_one(machine: Machine) -> None:
    machine.need(3)
    machine.use(_VERIFY_GAS)
    signature = _take_octets(machine.pop_slice(), _G2_BYTES)
    message = _octets(machine.pop_slice())
    key = _take_octets(machine.pop_slice(), _G1_BYTES)
    machine.push_bool(_verify([key], [message], signature))


@step("BLS_AGGREGATE")
def _aggregate(machine: Machine) -> None:
    count = machine.pop_range(len(machine.stack) - 1, 1)
    machine.use(_AGGREGATE_BASE_GAS + count * _AGGREGATE_GAS)
    parts = [_take_octets(part, _G2_BYTES) for part in _pop_many(machine, count)]
    # The node starts with the first one as it is, and checks those that it adds.
    points = [_point(G2Point, part, checks=place > 0) for place, part in enumerate(parts)]
    _push(machine, reduce(add, points).to_compressed_bytes())


@step("BLS_FASTAGGREGATEVERIFY")
def _verify_fast(machine: Machine) -> None:
    machine.need(3)
    signature, message = machine.pop_slice(), machine.pop_slice()
    count = machine.pop_range(len(machine.stack) - 1)
    machine.use(_FAST_BASE_GAS + count * _FAST_GAS)
    keys = [_take_octets(part, _G1_BYTES) for part in _pop_many(machine, count)]
    octets, signed = _octets(message), _take_octets(signature, _G2_BYTES)
    points = _read_keys(keys)
    key = reduce(add, points).to_compressed_bytes() if points else None
    machine.push_bool(key is not None and _verify([bytes(key)], [octets], signed))


@step("BLS_AGGREGATEVERIFY")
def _verify_many(machine: Machine) -> None:
    machine.need(2)
    signature = machine.pop_slice()
    count = machine.pop_range((len(machine.stack) - 1) // 2)
    machine.use(_MANY_BASE_GAS + count * _MANY_GAS)
    parts = _pop_many(machine, 2 * count)
    keys = [_take_octets(part, _G1_BYTES) for part in parts[::2]]
    messages = [_octets(part) for part in parts[1::2]]
    machine.push_bool(_verify(keys, messages, _take_octets(signature, _G2_BYTES)))


class _Group(NamedTuple):
    """A group: the class and the bytes of its points, and the gas of its instructions."""

    kind: Any
    size: int
    add: int
    neg: int
    mul: int
    many: int
    each: int
    share: int
    inside: int
    map: int

    def pop(self, machine: Machine) -> bytes:
        """Pop the bytes of a point."""
        return _take_octets(machine.pop_slice(), self.size)

    def multiply(self, octets: bytes, number: int, *, alone: bool) -> Any:  # noqa: ANN401
        """Return a product; ``alone`` is False for one of several that are added."""
        if alone and not number:
            return self.kind.identity()  # even if the bytes are no point
        return bls12381.multiply(_point(self.kind, octets), number, alone=alone)


_GROUPS = {
    "G1": _Group(G1Point, _G1_BYTES, add=3900, neg=750, mul=5200, many=11375, each=630, share=8820,
                 inside=2950, map=2350),
    "G2": _Group(G2Point, _G2_BYTES, add=6100, neg=1550, mul=10550, many=30388, each=1280,
                 share=22840, inside=4250, map=7950),
}  # fmt: skip


def _push_point(machine: Machine, point: Any) -> None:  # noqa: ANN401 - of arkworks
    _push(machine, bytes(point.to_compressed_bytes()))


@step("BLS_{group}_{checked}", group=_GROUPS, checked={"ADD": 1, "SUB": 0})
def _combine_points(machine: Machine, group: _Group, *, checked: int) -> None:
    """Add, or subtract; the ``checked`` operand must be in the group: it is added last."""
    machine.need(2)
    machine.use(group.add)
    octets = [group.pop(machine) for _ in range(2)][::-1]
    one, other = (_point(group.kind, each, checks=i == checked) for i, each in enumerate(octets))
    _push_point(machine, one + other if checked else one - other)


@step("BLS_{group}_NEG", group=_GROUPS)
def _negate(machine: Machine, group: _Group) -> None:
    machine.use(group.neg)
    _push_point(machine, -_point(group.kind, group.pop(machine)))


@step("BLS_{group}_MUL", group=_GROUPS)
def _multiply_point(machine: Machine, group: _Group) -> None:
    machine.need(2)
    machine.use(group.mul)
    number = machine.pop_finite()
    _push_point(machine, group.multiply(group.pop(machine), number, alone=True))


@step("BLS_{group}_MULTIEXP", group=_GROUPS)
def _multiply_many(machine: Machine, group: _Group) -> None:
    count = machine.pop_range((len(machine.stack) - 1) // 2)
    share = max(count.bit_length() - 1, 4)
    machine.use(group.many + count * group.each + count * group.share // share)
    pairs = [(machine.pop_finite(), group.pop(machine)) for _ in range(count)]
    products = [group.multiply(octets, n, alone=count == 1) for n, octets in pairs]
    _push_point(machine, reduce(add, products, group.kind.identity()))


@step("BLS_{group}_ZERO", group=_GROUPS)
def _push_zero(machine: Machine, group: _Group) -> None:
    _push_point(machine, group.kind.identity())


@step("BLS_{group}_ISZERO", group=_GROUPS)
def _is_zero(machine: Machine, group: _Group) -> None:
    machine.push_bool(group.pop(machine) == bytes(group.kind.identity().to_compressed_bytes()))


@step("BLS_{group}_INGROUP", group=_GROUPS)
def _is_in_group(machine: Machine, group: _Group) -> None:
    machine.use(group.inside)
    octets = group.pop(machine)
    is_inside = True
    try:
        _point(group.kind, octets, checks=True)
    except VmError:
        is_inside = False
    machine.push_bool(is_inside)


@step("BLS_MAP_TO_{group}", group=_GROUPS)
def _map(machine: Machine, group: _Group) -> None:
    machine.use(group.map)
    octets = group.pop(machine)
    numbers = [int.from_bytes(octets[i : i + 48], "big") for i in range(0, group.size, 48)]
    reduced = b"".join((each % bls12381.FIELD).to_bytes(48, "big") for each in numbers)
    map_from = G1Point.map_from_fp_be if group.size == _G1_BYTES else G2Point.map_from_fp2_be
    _push_point(machine, map_from(reduced))


@step("BLS_PAIRING")
def _pair(machine: Machine) -> None:
    count = machine.pop_range((len(machine.stack) - 1) // 2)
    machine.use(_PAIRING_BASE_GAS + count * _PAIRING_GAS)
    parts = _pop_many(machine, 2 * count)
    pairs = [
        (_take_octets(one, _G1_BYTES), _take_octets(other, _G2_BYTES))
        for one, other in zip(parts[::2], parts[1::2], strict=True)
    ]
    points = [(_point(G1Point, one), _point(G2Point, other)) for one, other in pairs]
    points = [pair for pair in points if pair != _NO_PAIR]
    machine.push_bool(_is_product_one(points))


def _is_product_one(pairs: list[tuple[Any, Any]]) -> bool:
    """Return whether the product of pairings is 1, as the node's package finds it.

    It takes eight pairs at a time; a G2 identity among several makes their product 0.
    """
    batches = [pairs[i : i + _BATCH] for i in range(0, len(pairs), _BATCH)]
    if any(len(batch) > 1 and _NO_PAIR[1] in (two for _, two in batch) for batch in batches):
        return False
    return bool(pairs) and bool(GT.pairing_check(*map(list, zip(*pairs, strict=True))))


step("BLS_PUSHR")(lambda machine: machine.stack.append(bls12381.ORDER))

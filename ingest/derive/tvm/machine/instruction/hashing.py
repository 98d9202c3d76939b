"""Hashes and signatures: HASHCU to P256_CHKSIGNS of ``crypto/vm/tonops.cpp``.

Packages are loaded when first needed: they take longer than most commands, few contracts use them.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

from tonlake.ingest.derive.tvm.machine.cell import Builder, Slice
from tonlake.ingest.derive.tvm.machine.code import maker, step
from tonlake.ingest.derive.tvm.machine.fault import CELL_UNDERFLOW, RANGE_CHECK, TYPE_CHECK, VmError
from tonlake.ingest.derive.tvm.machine.secp256k1 import recover, tweak
from tonlake.ingest.derive.tvm.machine.state import CREATE_GAS, NAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from tonlake.ingest.derive.tvm.machine.state import Machine, Step

_SIGNATURE_GAS = 4000
_SIGNATURE_GAS_SINCE, _SMALL_KEYS_REFUSED_SINCE, _WIDE_RECOVERY_SINCE = 4, 14, 14
_RECOVER_GAS, _TWEAK_GAS, _P256_GAS = 1500, 1250, 3500
_SIGNATURE_BYTES, _P256_KEY_BYTES = 64, 33
_WEAK_KEYS = (bytes(32), b"\x01" + bytes(31))


step("HASHCU")(lambda machine: machine.stack.append(int.from_bytes(machine.pop_cell().hash, "big")))


@step("HASHSU")
def _hash_slice(machine: Machine) -> None:
    part = machine.pop_slice()
    machine.use(CREATE_GAS)
    cell = Builder().store_slice(part).cell()
    machine.stack.append(int.from_bytes(cell.hash, "big"))


@step("HASHBU")
def _hash_builder(machine: Machine) -> None:
    machine.stack.append(int.from_bytes(machine.pop_builder().cell().hash, "big"))


def _octets(part: Slice) -> bytes:
    """Return the bits of a slice as bytes; raise VmError if the last one is not whole."""
    if part.bits % 8:
        raise VmError(CELL_UNDERFLOW)
    return part.uint().to_bytes(part.bits // 8, "big")


@step("SHA256U")
def _hash_bits(machine: Machine) -> None:
    digest = hashlib.sha256(_octets(machine.pop_slice())).digest()
    machine.stack.append(int.from_bytes(digest, "big"))


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


def _hash_many(machine: Machine, number: int, *, reverse: bool, appends: bool) -> None:
    """Hash the concatenation of slices and builders."""
    if number == _NUMBER_ON_STACK:
        number = machine.pop_range(254)
    count = machine.pop_range(len(machine.stack) - 1 - appends)
    if number >= len(_HASHES):
        raise VmError(RANGE_CHECK)
    function, octets_a_gas = _HASHES[number]
    stack = machine.stack
    at = len(stack) - count
    parts = stack[at:]
    value = total = paid = 0
    for place, part in enumerate(reversed(parts) if reverse else parts):
        bits, read = _read_part(part)
        total += bits
        gas = place + 1 + total // 8 // octets_a_gas
        machine.use(gas - paid)
        paid = gas
        value = value << bits | read
    del stack[at:]
    if total % 8:
        raise VmError(CELL_UNDERFLOW)
    digest = function(value.to_bytes(total // 8, "big"))
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
    raise VmError(TYPE_CHECK)


def _register_hashes() -> None:
    for appends in (False, True):
        for reverse in (False, True):

            def make(number: int, reverse: bool = reverse, appends: bool = appends) -> Step:  # noqa: FBT001
                return partial(_hash_many, number=number, reverse=reverse, appends=appends)

            maker(f"HASHEXT{'A' * appends}{'R' * reverse}")(make)


_register_hashes()


def _to_octets(value: Any) -> bytes:  # noqa: ANN401 - an integer or NaN
    """Return 32 bytes; raise VmError for a number that is not one of 256 bits."""
    if value is NAN or value < 0 or value >> 256:
        raise VmError(RANGE_CHECK)
    return value.to_bytes(32, "big")  # type: ignore[no-any-return]


def _check_ed25519(key: bytes, signature: bytes, data: bytes, version: int) -> bool:
    if version >= _SMALL_KEYS_REFUSED_SINCE and key in _WEAK_KEYS:
        return False
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see the module
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
        Ed25519PublicKey,
    )

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _take_octets(part: Slice, count: int) -> bytes:
    return part.peek(count * 8).to_bytes(count, "big")


def _check_signature(machine: Machine, *, is_slice: bool) -> None:
    machine.need(3)
    key = machine.pop_int()
    signature_slice = machine.pop_slice()
    data = _octets(machine.pop_slice()) if is_slice else _to_octets(machine.pop_int())
    signature = _take_octets(signature_slice, _SIGNATURE_BYTES)
    octets = _to_octets(key)
    if machine.version >= _SIGNATURE_GAS_SINCE:
        machine.free_signatures -= 1
        if machine.free_signatures < 0:
            machine.use(_SIGNATURE_GAS)
    machine.push_bool(_check_ed25519(octets, signature, data, machine.version))


step("CHKSIGNU")(partial(_check_signature, is_slice=False))
step("CHKSIGNS")(partial(_check_signature, is_slice=True))


def _check_p256(key: bytes, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see the module
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.utils import (  # noqa: PLC0415
        encode_dss_signature,
    )
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    try:
        found = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
        pair = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        found.verify(encode_dss_signature(*pair), data, ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


def _check_p256_signature(machine: Machine, *, is_slice: bool) -> None:
    machine.need(3)
    key_slice, signature_slice = machine.pop_slice(), machine.pop_slice()
    data = _octets(machine.pop_slice()) if is_slice else _to_octets(machine.pop_int())
    signature = _take_octets(signature_slice, _SIGNATURE_BYTES)
    key = _take_octets(key_slice, _P256_KEY_BYTES)
    machine.use(_P256_GAS)
    machine.push_bool(_check_p256(key, signature, data))


step("P256_CHKSIGNU")(partial(_check_p256_signature, is_slice=False))
step("P256_CHKSIGNS")(partial(_check_p256_signature, is_slice=True))


@step("ECRECOVER")
def _recover(machine: Machine) -> None:
    machine.need(4)
    s, r = machine.pop_int(), machine.pop_int()
    v = machine.pop_range(255)
    digest = machine.pop_int()
    values = [int.from_bytes(_to_octets(each), "big") for each in (digest, r, s)]
    machine.use(_RECOVER_GAS)
    if v in (27, 28) and machine.version >= _WIDE_RECOVERY_SINCE:
        v -= 27
    found = recover(values[0], v, values[1], values[2])
    machine.stack += (0,) if found is None else (4, *found, -1)


@step("SECP256K1_XONLY_PUBKEY_TWEAK_ADD")
def _tweak(machine: Machine) -> None:
    machine.need(2)
    by, key = machine.pop_int(), machine.pop_int()
    octets = [int.from_bytes(_to_octets(each), "big") for each in (key, by)]
    machine.use(_TWEAK_GAS)
    found = tweak(*octets)
    machine.stack += (0,) if found is None else (4, *found, -1)

"""Products of points of BLS12-381 with numbers, also of points outside the groups.

Those depend on the method: ``blst``, which the node uses, splits the number with an endomorphism
that is a multiplication only within the group. Several products at once are not split.
"""

from typing import Any

from py_arkworks_bls12381 import G1Point, G2Point, Scalar

ORDER = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
FIELD = (
    0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F624 << 128
    | 0x1EABFFFEB153FFFFB9FEFFFFFFFFAAAB
)
_Z = 0xD201000000010000
_CUBE_ROOT = 0x5F19672FDF76CE51BA69C6076A0F77EADDB3A93BE6F89688DE17D813620A00022E01FFFFFFFEFFFE
"""Of 1: the endomorphism of G1 that multiplies by z^2 takes (x, y) to (x * root, -y)."""

_ROOT = pow(-pow(2, -1, FIELD), (FIELD + 1) // 4, FIELD)
"""Of -1/2: -z on G2 is the Frobenius map between two twists, with factors of these roots."""

_COORDINATE_BYTES = 48

Point = Any
"""A point of arkworks, which is untyped."""


def multiply(point: Point, number: int, *, alone: bool = True) -> Point:
    """Return a product; ``alone`` is False for one of several that are added."""
    number %= ORDER
    if point.is_in_subgroup():
        return point * Scalar.from_le_bytes(number.to_bytes(32, "little"))
    if not alone:
        return _double_and_add(point, number)
    radix, apply = (_Z * _Z, _times_z2) if isinstance(point, G1Point) else (_Z, _times_z)
    total = type(point).identity()
    while number:
        number, digit = divmod(number, radix)
        total = total + _double_and_add(point, digit)
        point = apply(point)
    return total


def _double_and_add(point: Point, number: int) -> Point:
    total = type(point).identity()
    for bit in f"{number:b}":
        total = total + total
        if bit == "1":
            total = total + point
    return total


def _read(point: Point) -> list[int]:
    """Return the coordinates of a point, of which each of G2 has two parts."""
    octets = bytes(point.to_xy_bytes_be())
    parts = range(0, len(octets), _COORDINATE_BYTES)
    return [int.from_bytes(octets[i : i + _COORDINATE_BYTES], "big") for i in parts]


def _make(kind: Point, numbers: list[int]) -> Point:
    octets = [(number % FIELD).to_bytes(_COORDINATE_BYTES, "big") for number in numbers]
    return kind.from_xy_bytes_unchecked_be(b"".join(octets))


def _times_z2(point: Point) -> Point:
    """Return what is z^2 times a point of G1."""
    x, y = _read(point)
    return _make(G1Point, [x * _CUBE_ROOT, -y])


def _times_z(point: Point) -> Point:
    """Return what is the absolute value of z times a point of G2."""
    x, ix, y, iy = _read(point)
    x, ix = -ix * _CUBE_ROOT, -x * _CUBE_ROOT
    return _make(G2Point, [x, ix, (iy - y) * _ROOT, (y + iy) * _ROOT])

"""The group of the RIST255 instructions (RFC 9496), on points of Ed25519.

An encoded point is the integer of its 32 bytes read big-endian, as on the TVM's stack.
Invalid encodings give None: the instruction throws a range check, or answers 0 when quiet.
"""

from typing import Any

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
"""Order of the group, what RIST255_PUSHL pushes."""
_D = -121665 * pow(121666, -1, P) % P
_ROOT = pow(2, (P - 1) // 4, P)
_IDENTITY_ACCEPTED_SINCE = 14

Point = Any
"""A point of the curve, whose package takes longer to load than most commands."""


def _make_point(x: int, y: int) -> Point:
    from Cryptodome.PublicKey.ECC import EccPoint  # noqa: PLC0415 - few contracts need it

    return EccPoint(x, y, "ed25519")


def _absolute(value: int) -> int:
    value %= P
    return P - value if value & 1 else value


def _sqrt_ratio(u: int, v: int) -> tuple[bool, int]:
    """Return whether u/v is a square, and the root of it or of i*u/v (RFC 9496, 4.2)."""
    root = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check, u = v * root * root % P, u % P
    if check in (-u % P, -u * _ROOT % P):
        root = root * _ROOT % P
    return check in (u, -u % P), _absolute(root)


_INVERSE_ROOT_A_MINUS_D = _sqrt_ratio(1, -1 - _D)[1]


def decode(encoded: int) -> Point | None:
    """Return the point of an encoding, None if it is not the canonical encoding of one."""
    if not 0 <= encoded < 1 << 256:
        return None
    s = int.from_bytes(encoded.to_bytes(32, "big"), "little") & (1 << 255) - 1  # as libsodium
    if s >= P or s & 1:
        return None
    square = s * s % P
    u1, u2 = (1 - square) % P, (1 + square) % P
    v = (-_D * u1 * u1 - u2 * u2) % P
    is_square, inverse = _sqrt_ratio(1, v * u2 * u2)
    x_part = inverse * u2 % P
    x = _absolute(2 * s * x_part)
    y = u1 * inverse * x_part * v % P
    return None if not is_square or x * y % P & 1 or y == 0 else _make_point(x, y)


def encode(point: Point) -> int:
    """Return the canonical encoding of a point."""
    x, y = int(point.x), int(point.y)
    u1, t = (1 + y) * (1 - y) % P, x * y % P
    inverse = _sqrt_ratio(1, u1 * t * t)[1]
    first, second = inverse * u1 % P, inverse * t % P
    z_inverse = first * second * t % P
    denominator = second
    if t * z_inverse % P & 1:
        x, y = y * _ROOT % P, x * _ROOT % P
        denominator = first * _INVERSE_ROOT_A_MINUS_D % P
    if x * z_inverse % P & 1:
        y = -y
    return int.from_bytes(_absolute(denominator * (1 - y)).to_bytes(32, "little"), "big")


_BASE_Y = 4 * pow(5, -1, P) % P
_BASE_X = _sqrt_ratio(_BASE_Y * _BASE_Y - 1, _D * _BASE_Y * _BASE_Y + 1)[1]


def add(first: int, second: int, sign: int = 1) -> int | None:
    """Return the sum of two encoded points, or with ``sign`` -1 their difference."""
    one, other = decode(first), decode(second)
    if one is None or other is None:
        return None
    return encode(one + other if sign == 1 else one + -other)


def multiply(encoded: int, number: int, version: int) -> int | None:
    """Return a multiple of an encoded point, by the rules of a global version.

    Before version 14 a factor that is 0 modulo the order gives 0 for any value, and the
    identity as the point is refused otherwise.
    """
    number %= ORDER
    is_new = version >= _IDENTITY_ACCEPTED_SINCE
    if not number and not is_new:
        return 0
    point = decode(encoded)
    product = 0 if point is None else encode(point * number)
    return product if product or (is_new and point is not None) else None


def multiply_base(number: int) -> int:
    """Return a multiple of the generator, encoded."""
    return encode(_make_point(_BASE_X, _BASE_Y) * (number % ORDER))


def from_hash(octets: bytes) -> int:
    """Return the encoded point that 64 bytes hash to: the sum of two maps of halves."""
    one, other = (_map(int.from_bytes(octets[at : at + 32], "little")) for at in (0, 32))
    return encode(one + other)


_ONE_MINUS_D_SQUARED = (1 - _D * _D) % P
_D_MINUS_ONE_SQUARED = (_D - 1) ** 2 % P
_SQRT_AD_MINUS_ONE = -_sqrt_ratio(-_D - 1, 1)[1] % P


def _map(number: int) -> Point:
    """Return the point of a number, of which bit 255 is ignored (RFC 9496, 4.3.4)."""
    t = number & (1 << 255) - 1
    r = _ROOT * t * t % P
    u = (r + 1) * _ONE_MINUS_D_SQUARED % P
    v = (-1 - r * _D) * (r + _D) % P
    is_square, s = _sqrt_ratio(u, v)
    c = P - 1
    if not is_square:
        s, c = -_absolute(s * t) % P, r
    n = (c * (r - 1) * _D_MINUS_ONE_SQUARED - v) % P
    x = 2 * s * v * pow(n * _SQRT_AD_MINUS_ONE, -1, P) % P
    return _make_point(x, (1 - s * s) * pow(1 + s * s, -1, P) % P)

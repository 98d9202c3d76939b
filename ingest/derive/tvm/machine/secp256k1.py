"""The curve secp256k1 in plain Python: no package has wheels for every CPython."""

P = 2**256 - 2**32 - 977
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_BASE = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)

Point = tuple[int, int] | None
"""Affine coordinates; None is the point at infinity."""

_Jacobian = tuple[int, int, int]
_MAX_RECOVERY = 3


def _double(point: _Jacobian) -> _Jacobian:
    x, y, z = point
    square = y * y % P
    s = 4 * x * square % P
    m = 3 * x * x % P
    new_x = (m * m - 2 * s) % P
    return new_x, (m * (s - new_x) - 8 * square * square) % P, 2 * y * z % P


def _add(one: _Jacobian, other: _Jacobian) -> _Jacobian:
    if not one[2]:
        return other
    if not other[2]:
        return one
    x1, y1, z1 = one
    x2, y2, z2 = other
    a, b = z1 * z1 % P, z2 * z2 % P
    u1, u2 = x1 * b % P, x2 * a % P
    s1, s2 = y1 * b * z2 % P, y2 * a * z1 % P
    if u1 == u2:
        return _double(one) if s1 == s2 else (0, 1, 0)
    h, r = u2 - u1, s2 - s1
    h2 = h * h % P
    h3, v = h * h2 % P, u1 * h2 % P
    x = (r * r - h3 - 2 * v) % P
    return x, (r * (v - x) - s1 * h3) % P, h * z1 * z2 % P


def _multiply(point: tuple[int, int], number: int) -> _Jacobian:
    total: _Jacobian = (0, 1, 0)
    step: _Jacobian = (*point, 1)
    while number:
        if number & 1:
            total = _add(total, step)
        step = _double(step)
        number >>= 1
    return total


def _affine(point: _Jacobian) -> Point:
    x, y, z = point
    if not z:
        return None
    inverse = pow(z, -1, P)
    square = inverse * inverse % P
    return x * square % P, y * square * inverse % P


def _lift(x: int, *, odd: int) -> Point:
    """Return the point with a coordinate; None if there is none."""
    if x >= P:
        return None
    square = (x * x * x + 7) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        return None
    return x, y if y & 1 == odd else P - y


def recover(digest: int, recovery: int, r: int, s: int) -> Point:
    """Return the public key that made a signature; None if no key could have."""
    if recovery > _MAX_RECOVERY or not 0 < r < ORDER or not 0 < s < ORDER:
        return None
    point = _lift(r + ORDER * (recovery >> 1), odd=recovery & 1)
    if point is None:
        return None
    inverse = pow(r, -1, ORDER)
    one = _multiply(point, s * inverse % ORDER)
    return _affine(_add(one, _multiply(_BASE, -digest * inverse % ORDER)))


def tweak(x: int, by: int) -> Point:
    """Return the key with coordinate ``x`` and an even y, plus a multiple of the generator."""
    point = _lift(x, odd=0)
    if point is None or by >= ORDER:
        return None
    return _affine(_add((*point, 1), _multiply(_BASE, by)))

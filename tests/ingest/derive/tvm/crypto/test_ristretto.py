"""Ristretto: vectors of RFC 9496, group laws and the rules of each global version."""

from __future__ import annotations

from tonlake.ingest.derive.tvm.crypto import ristretto

MULTIPLES = (  # RFC 9496, A.1: 0, 1 and 2 times the generator
    "0000000000000000000000000000000000000000000000000000000000000000",
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
)
REFUSED = (  # RFC 9496, A.2: not canonical, and negative
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0100000000000000000000000000000000000000000000000000000000000000",
)


def test_multiples_of_the_generator() -> None:
    for number, expected in enumerate(MULTIPLES):
        assert f"{ristretto.multiply_base(number):064x}" == expected


def test_sums_products_and_differences_agree() -> None:
    one, many = ristretto.multiply_base(12345), ristretto.multiply_base(-99)
    assert ristretto.add(one, many) == ristretto.multiply_base(12246)
    assert ristretto.subtract(one, many) == ristretto.multiply_base(12444)
    assert ristretto.multiply(one, -7, 15) == ristretto.multiply_base(-7 * 12345)
    assert ristretto.subtract(one, one) == 0


def test_invalid_encodings_are_refused() -> None:
    for text in REFUSED:
        assert ristretto.decode(int(text, 16)) is None
    assert ristretto.decode(1 << 256) is None
    assert ristretto.decode(-1) is None


def test_the_identity_counts_as_a_point_since_version_14() -> None:
    assert ristretto.multiply(0, 5, 14) == 0
    assert ristretto.multiply(0, 5, 13) is None
    assert ristretto.multiply(int(REFUSED[0], 16), ristretto.ORDER, 14) is None


def test_the_highest_bit_is_ignored_as_by_the_node() -> None:
    assert ristretto.decode(0xD6) is not None

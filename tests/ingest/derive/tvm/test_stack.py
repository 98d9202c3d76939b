"""Encoding of values between processes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.ingest.derive.tvm.values import HIGH, LOW, VALUES
from tonlake.ingest.derive.tvm.call import TvmNan, TvmOpaque, fits_integer, pack_value, unpack_value


@given(VALUES)
def test_values_arrive_as_they_were(value: Any) -> None:
    packed = msgspec.msgpack.decode(msgspec.msgpack.encode(pack_value(value)))
    assert unpack_value(packed) == value


@pytest.mark.parametrize("value", [TvmNan(), TvmOpaque(), (TvmNan(), [TvmOpaque()])])
def test_values_that_only_come_back(value: Any) -> None:
    assert unpack_value(pack_value(value)) == value


def test_unsupported_values() -> None:
    with pytest.raises(TypeError, match="float is not a stack value"):
        pack_value((1, 2.5))


@pytest.mark.parametrize("packed", ["x", [], [9, b""], [4], 5, {"a": 1}])
def test_data_that_are_no_value(packed: Any) -> None:
    with pytest.raises((ValueError, TypeError, IndexError, KeyError)):
        unpack_value(packed)


def test_integers_have_257_bits() -> None:
    assert fits_integer(LOW)
    assert fits_integer(HIGH)
    assert not fits_integer(LOW - 1)
    assert not fits_integer(HIGH + 1)

"""Content codings: the choice for any Accept-Encoding, and round-trips of any body."""

import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonlake.api.http.representation import GZIP, IDENTITY, ZSTD, Coding, choose_coding, pack

NAMES = ("gzip", "zstd", "br", "deflate", "identity", "*")
WEIGHTS = {"": 1.0, ";q=0": 0.0, ";q=0.001": 0.001, "; Q=0.5": 0.5, ";q=1.000": 1.0, ";q=1": 1.0}

MEMBERS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(sorted(WEIGHTS)))


def unpack(coding: str, body: bytes) -> bytes:
    if coding == GZIP:
        return gzip.decompress(body)
    with pa.input_stream(io.BytesIO(body), compression=coding) as stream:
        return bytes(stream.read())


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        (b"", None),
        (b"gzip", GZIP),
        (b"GZip ;Q=1", GZIP),
        (b"x-gzip", GZIP),
        (b"gzip, deflate, br, zstd", ZSTD),
        (b"gzip;q=1.0, zstd;q=0.9", GZIP),
        (b"zstd;q=0, *", GZIP),
        (b"*;q=0", None),
        (b"*", ZSTD),
        (b"gzip;q=0.5, identity;q=1", None),
        (b"gzip, identity", GZIP),
        (b"br, deflate", None),
        (b"gzip;q=2", None),
        (b"gzip;q=nan, zstd;q=-1", None),
        (b"gzip;q=0.1234", None),
        (b",, gzip ,", GZIP),
        (b"gzip;level=9;q=0.5", GZIP),
        (b"\xff\xfe, gzip", GZIP),
    ],
)
def test_a_coding_is_chosen(accepted: bytes, coding: str | None) -> None:
    assert choose_coding(accepted).coding == coding


def test_only_a_coding_that_can_be_sent_makes_up_for_identity() -> None:
    assert choose_coding(b"gzip, identity;q=0") == Coding(GZIP, refuses_identity=True)
    assert choose_coding(b"gzip, *;q=0") == Coding(GZIP, refuses_identity=True)
    assert choose_coding(b"br, identity;q=0") == Coding(None)


@given(MEMBERS, st.randoms(use_true_random=False))
def test_no_coding_is_sent_that_is_liked_less_than_another(
    members: dict[str, str], order: object
) -> None:
    names = list(members)
    order.shuffle(names)  # type: ignore[attr-defined]
    choice = choose_coding(", ".join(name + members[name] for name in names).encode())
    weights = {name: WEIGHTS[text] for name, text in members.items()}
    others = weights.get("*", 0.0)
    ours = {coding: weights.get(coding, others) for coding in (GZIP, ZSTD)}
    plain = weights.get(IDENTITY, 0.0)
    if choice.coding is None:
        assert max(ours.values()) == 0 or plain > max(ours.values())
    else:
        assert ours[choice.coding] == max(ours.values()) > 0
        assert ours[choice.coding] >= plain
    assert not choice.refuses_identity or weights.get(IDENTITY, weights.get("*")) == 0


@given(st.binary(max_size=100))
def test_any_header_has_a_choice(accepted: bytes) -> None:
    assert choose_coding(accepted).coding in (None, GZIP, ZSTD)


@given(st.sampled_from((GZIP, ZSTD)), st.binary(), st.integers(1, 300))
def test_a_body_comes_back(coding: str, body: bytes, times: int) -> None:
    assert unpack(coding, pack(coding, body * times)) == body * times

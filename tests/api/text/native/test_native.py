"""The extension writes the same as Python: text, numbers, hashes, checksums; or refuses."""

from collections import namedtuple
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.api.text.native.glance import peek_opcode
from tonlake.api.chain.cells import add_checksum
from tonlake.api.text import encoding
from tonlake.api.text.encoding import Address, encode_bytes, render_friendly
from tonlake.api.text.native import NATIVE
from tonlake.api.v3.layout.field import Kind
from tonlake.ingest.decode.cell.writer import add_crc32c, serialize_single
from tonlake.lake.index.segment.declared import Record

if NATIVE is None:
    pytest.skip("the extension is not built", allow_module_level=True)


class Field(NamedTuple):
    """A field as the extension takes it."""

    kind: str
    source: int
    columns: tuple[object, ...]
    prefix: bytes
    missing: bytes | None
    other: object


def field(
    kind: Kind,
    name: str,
    column: str | tuple[str, ...] | None = None,
    *,
    missing: bytes | None = None,
    other: object = None,
    source: int = -1,
) -> Field:
    """Return a field; of the column of the same name, if it needs one and none is named."""
    if column is None:
        column = () if kind in {Kind.OBJECT, Kind.LIST, Kind.BODY, Kind.CONSTANT} else name
    columns = (column,) if isinstance(column, str) else column
    places = tuple(map(_place, columns))
    return Field(kind.value, source, places, f'"{name}":'.encode(), missing, _place(other))


def _place(column: object) -> object:
    """Return a column as the extension takes it; the number in its name is its place in lists."""
    if not isinstance(column, str):
        return column
    return column, int(column[1:]) if column[1:].isdigit() else -1


def compile_layout(*fields: Field) -> Any:
    """Return a layout of the extension."""
    return NATIVE.compile_layout(tuple(map(tuple, fields)))


def _write(kind: Kind, row: object, **options: Any) -> Any:
    write = partial(NATIVE.write_row, compile_layout(field(kind, "x", **options)))
    return msgspec.json.decode(write((row,)))


@given(
    st.fixed_dictionaries({"bounceable": st.booleans(), "test_only": st.booleans()}),
    st.integers(-128, 127),
    st.binary(min_size=32, max_size=32),
)
def test_friendly_addresses(flags: dict[str, bool], workchain: int, account: bytes) -> None:
    address = Address(workchain, account)
    with mock.patch.object(encoding, "NATIVE", None):
        plain = render_friendly(address, **flags)
    assert render_friendly(address, **flags) == plain
    for wrong in ((256, 0, account), (17, 128, account), (17, 0, account[1:])):
        with pytest.raises(ValueError, match="friendly"):
            NATIVE.write_friendly(*wrong)


@given(st.binary(min_size=2, max_size=3000))
def test_checksums(data: bytes) -> None:
    bag = serialize_single(bytes(2)) + data
    assert NATIVE.add_crc32c(bag) == add_crc32c(bag)


def test_numbers_stand_for_values() -> None:
    """Instead of bytes, a row may have the number of one of the 32-byte values given."""
    layout = compile_layout(
        field(Kind.NAMED_ACCOUNT, "x", other="a"),
        field(Kind.BASE64, "h", missing=b"null"),
        field(Kind.BASE64_UNLESS, "n", other="h", missing=b"null"),
        field(Kind.OBJECT, "s", source=3, other=compile_layout(field(Kind.TEXT, "s"))),
    )
    keys = _keys({"s": "none"}, {"s": "unknown"})
    write = partial(NATIVE.write_records, layout, (*keys[:5], b"n" * 32, *keys[6:]))
    values = [b"a" * 32, b"n" * 32, b"h" * 32]
    row = {"x": 0, "a": 0, "h": 2, "n": 0, "account_state_hash_after": 2}
    numbered = row | {"account_state_hash_before": 1}

    def resolve(name: str, value: Any) -> Any:
        return value if name == "x" or value is None else values[value]

    plain = {name: resolve(name, value) for name, value in numbered.items()}
    texts, named = [], set[tuple[int, bytes]]()
    for each, held in ((numbered, b"".join(values)), (plain, b"")):
        texts += write([_record(row=each)], named, held)
    assert texts[0] == texts[1]
    assert msgspec.json.decode(texts[0])["s"] == {"s": "none"}
    assert named == {(0, values[0])}
    for wrong in (3, -1, 1 << 70):
        with pytest.raises((IndexError, OverflowError)):
            write([_record(row=numbered | {"h": wrong})], named, b"".join(values))


def test_a_record_may_be_a_list() -> None:
    """Its values have their places; so have those of its messages and states."""
    number = compile_layout(field(Kind.NUMBER, "n", "n1"))
    layout = compile_layout(
        field(Kind.BASE64, "h", "h0"),
        field(Kind.NUMBER, "none", "absent"),
        field(Kind.OBJECT, "in", source=1, other=number, missing=b"null"),
        field(Kind.LIST, "out", source=2, other=number),
        field(Kind.OBJECT, "before", source=3, other=number, missing=b"null"),
        field(Kind.OBJECT, "after", source=4, other=number, missing=b"null"),
    )
    keys = (*(("direction", 0), ("before", 4), ("after", 0), 1, "in", b"n" * 32), {"n1": 0}, None)
    write = partial(NATIVE.write_records, layout, keys)
    messages = [["in", 5], ["out", 6], ["out", 7]]
    values = b"h" * 32 + b"n" * 32
    texts = write([[0, messages, ["", 8], ["", 9], 1], [0, [], None, ["", 9], 0]], set(), values)
    shown = {"h": encode_bytes(b"h" * 32), "after": {"n": 9}}
    assert list(map(msgspec.json.decode, texts)) == [
        shown | {"in": {"n": 5}, "out": [{"n": 6}, {"n": 7}], "before": {"n": 0}},
        shown | {"in": None, "out": [], "before": None},
    ]
    with pytest.raises(IndexError):
        write([[0, messages]], set(), values)


def test_a_wrong_book_is_refused() -> None:
    pair, facts = (0, bytes(32)), (17, b"[]")
    text = NATIVE.write_book([pair], [facts], {pair: b'"a"'})
    friendly = render_friendly(Address(*pair), bounceable=True, test_only=False)
    assert msgspec.json.decode(text) == {
        f"0:{bytes(32).hex()}": {"user_friendly": friendly, "domain": "a", "interfaces": []}
    }
    wrongs: list[Any] = [
        ([pair], [], {}),
        ([(0, bytes(31))], [facts], {}),
        ([pair], [(17, "[]")], {}),
        ([pair], [facts], {pair: "a"}),
        ([b"pair"], [facts], {}),
        ([pair], [17], {}),
        ([pair], [None], {}),
        ([(1 << 64, bytes(32))], [facts], {}),
    ]
    for wrong in wrongs:
        with pytest.raises((TypeError, ValueError, OverflowError, IndexError)):
            NATIVE.write_book(*wrong)


def _record(**parts: Any) -> Record:
    row = {"account_state_hash_before": b"n", "account_state_hash_after": b"s"}
    return Record(row=row, messages=[], before=None, after=None)._replace(**parts)


def _keys(nonexist: object, unknown: object) -> tuple[Any, ...]:
    hashes = "account_state_hash_before", "account_state_hash_after"
    return (*((name, -1) for name in ("direction", *hashes)), 0, "in", b"n", nonexist, unknown)


def test_records_are_taken_apart() -> None:
    """The in message stands first, if there is one; a nonexistent state is known by its hash."""
    layout = compile_layout(
        *(
            field(Kind.OBJECT, name, source=source, missing=b"null", other=other)
            for name, source, other in (
                ("in", 1, compile_layout(field(Kind.NUMBER, "n"))),
                ("before", 3, compile_layout(field(Kind.TEXT, "s"))),
                ("after", 4, compile_layout(field(Kind.TEXT, "s"))),
            )
        ),
        field(Kind.LIST, "out", source=2, other=compile_layout(field(Kind.NUMBER, "n"))),
    )
    write = partial(NATIVE.write_records, layout, _keys({"s": "none"}, {"s": "unknown"}))
    received, sent = {"direction": "in", "n": 1}, {"direction": "out", "n": 2}
    known = {"s": "known"}
    texts = write(
        [
            _record(messages=[received, sent], before=known, after=known),
            _record(messages=[sent, sent]),
            _record(),
        ],
        set(),
        b"",
    )
    states = {"before": {"s": "none"}, "after": {"s": "unknown"}}
    assert [msgspec.json.decode(text) for text in texts] == [
        {"in": {"n": 1}, "before": {"s": "none"}, "after": {"s": "known"}, "out": [{"n": 2}]},
        {"in": None, **states, "out": [{"n": 2}, {"n": 2}]},
        {"in": None, **states, "out": []},
    ]
    wrongs: list[Any] = [
        _record(messages=()),
        _record(messages=[5]),
        _record(messages=[{}]),
        _record(row={}),
        ({}, [], None),
        5,
    ]
    for wrong in wrongs:
        with pytest.raises((TypeError, KeyError, AttributeError, SystemError)):
            write([wrong], set(), b"")
    wrong_keys: list[Any] = [(), (*_keys({}, {})[:2], (b"", -1), 0, "in", b"n", {}, {})]
    for keys in wrong_keys:
        with pytest.raises(TypeError):
            NATIVE.write_records(layout, keys, [], set(), b"")
    with pytest.raises(ValueError, match="Capsule"):
        NATIVE.write_records(object(), _keys({}, {}), [], set(), b"")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.BASE64, "text"),
        (Kind.TEXT, 1),
        (Kind.TEXT, "\ud800"),
        (Kind.SHARD, "text"),
        (Kind.NUMBER, "\ud800"),
        (Kind.OPCODE, 1 << 70),
        (Kind.LIST, 5),
    ],
)
def test_a_wrong_value_is_refused(kind: Kind, value: object) -> None:
    other = compile_layout() if kind is Kind.LIST else None
    write = partial(
        NATIVE.write_row, compile_layout(field(kind, "x", other=other, missing=b"null", source=1))
    )
    with pytest.raises((TypeError, ValueError, OverflowError, SystemError)):
        write(({}, value if kind is Kind.LIST else {"x": value}))


def test_an_error_on_the_way_is_passed_on() -> None:
    def fail(*_body: object) -> tuple[bytes, bytes]:
        raise ZeroDivisionError

    write = partial(NATIVE.write_row, _lay_out_body(fail))
    with pytest.raises(ZeroDivisionError):
        write(({"h": b"", "b": None, "k": "int"},))


_NAMED_OPCODE = 0x0F8A7EA5
_BODY = serialize_single(b"\0\x0c" + _NAMED_OPCODE.to_bytes(4) + b"\x01\x02")
_BODIES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.binary(max_size=60).map(serialize_single),
    st.integers(0, len(_BODY) - 1).map(lambda end: _BODY[:end]),
    # One byte is another: roots, index, descriptors, sizes.
    st.tuples(st.integers(0, len(_BODY) - 1), st.integers(0, 255)).map(
        lambda change: _BODY[: change[0]] + bytes([change[1]]) + _BODY[change[0] + 1 :]
    ),
    st.just(add_crc32c(serialize_single(b"\0\x08\xde\xad\xbe\xef"))),
)


def _lay_out_body(decode: Any, kept: Any = ({}, {})) -> Any:
    other = (("k", -1), "ext_in", {_NAMED_OPCODE}, decode, kept, ("h", -1))
    content = compile_layout(
        field(Kind.BASE64, "hash", "h"), field(Kind.BAG, "body", "b", missing=b"null")
    )
    return compile_layout(
        field(Kind.OPCODE_NAME, "name", "b", other=other),
        field(Kind.NUMBER, "between", missing=b"null"),
        field(Kind.BODY, "content", other=content),
    )


@given(st.binary(min_size=32, max_size=32), _BODIES, st.sampled_from(["int", "ext_in"]))
def test_bodies(body_hash: bytes, body: bytes | None, kind: str) -> None:
    """Without the function a body is written only where it would say nothing about it."""
    write = partial(NATIVE.write_row, _lay_out_body(lambda *_: (b'"called"', b"1", None)))
    written = msgspec.json.decode(write(({"h": body_hash, "b": body, "k": kind, "between": None},)))
    opcode = None if body is None or kind == "ext_in" else peek_opcode(body)
    if body is None or opcode in (None, _NAMED_OPCODE):
        assert written == {"name": "called", "between": None, "content": 1}
    else:
        content = {"hash": encode_bytes(body_hash), "body": encode_bytes(add_checksum(body))}
        assert written == {"name": None, "between": None, "content": content}


def test_a_body_is_decoded_once() -> None:
    """What was kept under a hash is written where all that it follows from is the same."""
    kept: Any = {b"hash": (b'"kept"', b"2", _BODY)}, {b"signed": (b'"signed"', b"2", _BODY)}
    write = partial(NATIVE.write_row, _lay_out_body(lambda *_: (b'"called"', b"1", _BODY), kept))
    row = {"h": b"hash", "b": _BODY, "k": "int", "between": None}
    called = {"h": b"another"}, {"b": _BODY + b"\0"}, {"b": None}, {"k": "ext_in"}
    signed = {"h": b"signed", "k": "ext_in"}, "signed"
    for changed, name in (({}, "kept"), signed, *((each, "called") for each in called)):
        assert msgspec.json.decode(write((row | changed,)))["name"] == name
    kept[0][b"hash"] = b"no tuple"
    assert msgspec.json.decode(write((row,)))["name"] == "called"


def test_a_wrong_decoder_is_refused() -> None:
    row = {"h": bytes(32), "b": None, "k": "int", "between": None}
    for wrong in (b"bytes", (b"1", b"2"), (b"1", "2", None), ("1", b"2", None), (b"1",) * 4):
        with pytest.raises(TypeError):
            partial(NATIVE.write_row, _lay_out_body(lambda *_, found=wrong: found))((row,))


def test_rows_are_dicts_named_tuples_or_lists() -> None:
    named = namedtuple("named", ("x",))  # noqa: PYI024 - any type of named tuples
    liar: Any = type("liar", (tuple,), {"_fields": ("a", "x")})
    assert _write(Kind.NUMBER, named(7)) == {"x": 7}
    assert _write(Kind.NUMBER, [6, 7], column="x1") == {"x": 7}
    write = partial(NATIVE.write_row, compile_layout(field(Kind.NUMBER, "x", missing=b"null")))
    other: Any = namedtuple("other", ("y",))  # noqa: PYI024
    for wrong in (liar((7,)), (7,), [7], object(), {}, other(7)):
        with pytest.raises((IndexError, AttributeError, TypeError, KeyError)):
            write((wrong,))

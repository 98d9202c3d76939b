"""Both writers follow one layout: they give the same bytes for generated rows."""

from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from jsonschema import Draft202012Validator

from tonlake.api.text.native import NATIVE
from tonlake.api.v3.layout.build import compile_struct, make_builder
from tonlake.api.v3.layout.field import HEX, INTEGER, Field, Kind, list_fields
from tonlake.api.v3.layout.transaction import EXTERNAL, INTERNAL, Block, Message, Transaction
from tonlake.ingest.decode.cell.writer import serialize_single

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the extension is not built")

_HASHES = st.binary(min_size=32, max_size=32)
_INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
_CURRENCIES = st.sampled_from(["{}", '{"100":"7"}', '{"1":"2","3":"4"}'])
_BAGS = st.binary(max_size=60).map(lambda data: serialize_single(bytes([0, 2 * len(data)]) + data))
_VALUES: dict[Kind, SearchStrategy[Any]] = {
    Kind.NUMBER: _INT32,
    Kind.TEXT_NUMBER: st.integers(0, 1 << 120),
    Kind.BASE64: _HASHES,
    Kind.BASE64_UNLESS: _HASHES,
    Kind.FLAG: st.booleans(),
    Kind.TEXT: st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    Kind.SHARD: st.integers(-(1 << 63), (1 << 63) - 1),
    Kind.OPCODE: _INT32,
    Kind.JSON: _CURRENCIES,
    Kind.CURRENCIES: _CURRENCIES,
    Kind.BAG: _BAGS,
    Kind.OPCODE_NAME: _BAGS,
}


class _Columns:
    """The columns that a struct reads, by source."""

    def __init__(self, struct: Any) -> None:
        self.sources: dict[int, dict[str, SearchStrategy[Any]]] = {}
        self.lists: set[int] = set()
        self.nullable: set[int] = set()
        self._collect(list_fields(struct), 0)

    def _collect(self, fields: list[Field], row: int) -> None:
        columns = self.sources.setdefault(row, {})
        for field in fields:
            if field.kind in {Kind.OBJECT, Kind.LIST, Kind.BODY}:
                self._collect_part(field, row)
            elif field.kind in {Kind.ACCOUNT, Kind.NAMED_ACCOUNT}:
                may_lack = field.is_nullable or field.is_optional
                columns.setdefault(field.column.name, st.sampled_from([-1, 0]))
                columns[field.column.beside] = (st.none() | _HASHES) if may_lack else _HASHES
            elif field.kind in _VALUES:
                values, may_lack = _VALUES[field.kind], field.is_nullable or field.is_optional
                place = self.sources[max(field.source, 0)] if field.source >= 0 else columns
                place[field.column.name] = st.none() | values if may_lack else values
                if field.column.equals:
                    columns["kind"] = st.sampled_from([INTERNAL, EXTERNAL, "ext_out"])

    def _collect_part(self, field: Field, row: int) -> None:
        at = field.inner.source if field.inner.source >= 0 else row
        if field.kind is Kind.LIST:
            self.lists.add(at)
        elif field.is_nullable and at != row:
            self.nullable.add(at)
        self._collect(list_fields(field.struct, field.inner), at)
        if field.kind is Kind.BODY:
            self.sources[at]["body_hash"] = _HASHES
        for name in field.inner.when:
            self.sources[at][name] = st.none() | self.sources[at][name]

    def rows(self) -> SearchStrategy[tuple[Any, ...]]:
        """Return tuples of the sources of the struct."""
        found: list[SearchStrategy[Any]] = []
        for at in sorted(self.sources):
            each: SearchStrategy[Any] = st.fixed_dictionaries(self.sources[at])
            if at in self.lists:
                each = st.lists(each, max_size=2)
            found.append(each)
        return st.tuples(*found)


@pytest.mark.parametrize("opcodes", [HEX, INTEGER])
@pytest.mark.parametrize("struct", [Block, Message, Transaction])
def test_both_writers_give_the_same_bytes(struct: Any, opcodes: str) -> None:
    write = partial(NATIVE.write_row, compile_struct(struct, opcodes))
    build = make_builder(struct, opcodes)
    validator = Draft202012Validator(
        msgspec.json.schema(struct, schema_hook=lambda _: {"description": "Any JSON."})
    )

    @settings(max_examples=40, deadline=None)
    @given(_Columns(struct).rows())
    def compare(sources: tuple[Any, ...]) -> None:
        written = write(sources)
        assert written == msgspec.json.encode(build(sources))
        validator.validate(msgspec.json.decode(written))

    compare()

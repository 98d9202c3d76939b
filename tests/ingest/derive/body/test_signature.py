"""User-defined layouts: their results, and their errors."""

from __future__ import annotations

import json

import pytest

from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.ingest.derive.body.signature import (
    MAX_CHARACTERS,
    MAX_CONSTRUCTORS,
    parse_signature,
)
from tonlake.ingest.errors import SignatureInvalid

TRANSFER = """
    // TEP-74, in the notation of block.tlb
    transfer#0F8A7EA5 query_id:(## 64) amount:(VarUInteger 16) destination:MsgAddressInt
      response_destination:MsgAddress custom_payload:(Maybe ^Cell)
      forward_ton_amount:(VarUInteger 16) forward_payload:(Either Cell ^Cell)
      = InternalMsgBody;
"""
KINDS = {
    "query_id": "amount",
    "amount": "amount",
    "destination": "address",
    "response_destination": "address",
    "custom_payload": "json",
    "forward_ton_amount": "amount",
    "forward_payload": "json",
}


def test_the_notation_of_block_tlb() -> None:
    [table] = read_tables([TRANSFER])
    [layout] = table.layouts
    assert (table.name, layout.opcode) == ("transfer", 0x0F8A7EA5)
    assert {field.name: field.kind for field in layout.fields} == KINDS


def test_a_signature_may_define_types_in_addition_to_shipped_ones() -> None:
    text = """
        point$_ x:int16 y:int16 = Point;
        move#00000010 by:Point price:Coins flags:# more:flags.3?^Point chain:^Link = Body;
        link$_ at:Point next:(Maybe ^Link) = Link;
        stop#80000001 = Body;
    """
    tables = {table.name: table.layouts[0] for table in read_tables([text])}
    assert {name: layout.opcode for name, layout in tables.items()} == {
        "move": 0x10,
        "stop": 0x80000001,
    }
    kinds = [field.kind for field in tables["move"].fields]
    assert kinds == ["json", "amount", "int", "json", "json"]


def test_every_shipped_name_is_a_signature() -> None:
    shipped = {
        (name, opcode)
        for opcode, records in load_scheme().layouts.items()
        for record in records
        for name in record.name.split(",")
    }
    tables = read_tables(sorted({name for name, _opcode in shipped}))
    assert {(table.name, layout.opcode) for table in tables for layout in table.layouts} == shipped


def test_an_abi_of_tact() -> None:
    abi = {
        "name": "Counter",
        "types": [
            {
                "name": "Point",
                "header": None,
                "fields": [{"name": "x", "type": {"kind": "simple", "type": "int", "format": 16}}],
            },
            {
                "name": "Add",
                "header": 2335447074,
                "fields": [
                    {"name": name, "type": {"kind": "simple", "optional": optional, **kind}}
                    for name, optional, kind in (
                        ("queryId", False, {"type": "uint", "format": 64}),
                        ("amount", False, {"type": "uint", "format": "coins"}),
                        ("step", True, {"type": "int", "format": 32}),
                        ("to", True, {"type": "address"}),
                        ("note", False, {"type": "string"}),
                        ("id", False, {"type": "fixed-bytes", "format": 32}),
                        ("at", False, {"type": "Point"}),
                        ("rest", False, {"type": "slice", "format": "remainder"}),
                    )
                ]
                + [{"name": "seen", "type": {"kind": "dict", "key": "address", "value": "bool"}}],
            },
        ],
        "receivers": [],
    }
    [table] = read_tables([json.dumps(abi)])
    assert (table.name, table.layouts[0].opcode) == ("Add", 2335447074)
    kinds = [field.kind for field in table.layouts[0].fields]
    assert kinds == [
        *("amount", "amount", "int", "address", "string", "bytes", "json", "json", "json"),
    ]


ABI_FIELD = '{"types": [{"name": "A", "header": 1, "fields": [%s]}]}'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no constructor"),
        ("no_such_layout", "no layout is called no_such_layout"),
        ("transfer#0f8a7ea5 query_id:uint64", "invalid TL-B statement"),
        ("transfer query_id:uint64 = Body", "no opcode|no constructor"),
        ("transfer#0f8a query_id:uint64 = Body", "no constructor"),
        ("a#0123456789abcdef = B; b#00000001 = B", "more than 32 bits"),
        ("a#00000001 x:uint64 x:uint8 = B", "two fields 'x'"),
        ("a#00000001 x:uint64 X:uint8 = B", "two fields 'X'"),
        ("a#00000001 x:uint999 = B", "uint has 1 to 256 bits"),
        ("a#00000001 x:int0 = B", "int has 1 to 257 bits"),
        (f"a#00000001 x:uint{'9' * 5000} = B", "uint has 1 to 256 bits"),
        ("a#00000001 x:Nothing = B", "no type Nothing"),
        ("a#00000001 x:(Maybe) = B", "arguments"),
        ("a#00000001 x:(Chunks x uint8) = B", "arguments"),
        ("a#00000001 x:(VarUInteger 999) = B", "2 to 32"),
        ("a#00000001 x:(HashmapE 99999 uint8) = B", "1 to 1023 bits"),
        ("a#00000001 x:(HashmapE y uint8) = B", "1 to 1023 bits"),
        ("a#00000001 x:MsgAddress y:x?uint8 = B", "not an earlier number"),
        ("a#00000001 y:x?uint8 = B", "not an earlier number"),
        ("a#00000001 x:uint8 y:x.8?uint8 = B", "no bit 8"),
        ("a#00000001 x:uint8 y:x.z?uint8 = B", "invalid literal"),
        ("a#00000001 x:A = A", "contains itself"),
        ("t$_ x:(Maybe T) = T; a#00000001 x:T = B", "contains itself"),
        ("a#00000001 {X:Type} x:X = B", "parameters"),
        ("a#00000001 x:" + "^" * 5000 + "Cell = B", "nested too deep"),
        ("a#00000001 x:" + "[ y:" * 5000 + "= B", "nested too deep"),
        ("a#00000001 " + "".join(f"x{i}:Bool " for i in range(65)) + "= B", "more than 64 fields"),
        ("a,b#00000001 = B", "not a valid table name"),
        ("x" * 64 + "#00000001 = B", "not a valid table name"),
        ("a#00000001 = B; " * (MAX_CONSTRUCTORS + 1), f"at most {MAX_CONSTRUCTORS}"),
        (" " * (MAX_CHARACTERS + 1), "at most 65,536"),
        ("{", "not a Tact ABI"),
        ('{"types": 1}', "not a Tact ABI"),
        (
            ABI_FIELD % '{"name": "a b", "type": {"kind": "simple", "type": "bool"}}',
            "not a valid field name",
        ),
        (ABI_FIELD % '{"name": "a", "type": {"kind": "simple", "type": "Z"}}', "type 'Z'"),
        (ABI_FIELD % '{"name": "a", "type": {"kind": "simple", "type": "A"}}', "contains itself"),
    ],
)
def test_errors_name_the_unusable_part(text: str, complaint: str) -> None:
    with pytest.raises(SignatureInvalid, match=complaint) as refused:
        read_tables([text])
    assert len(str(refused.value)) < 400


def test_types_that_double_in_every_line_are_rejected() -> None:
    text = "".join(f"t{i}$_ x:T{i + 1} y:T{i + 1} = T{i}; " for i in range(11))
    text += "t$_ = T11; a#00000001 x:T0 = B"
    with pytest.raises(SignatureInvalid, match="more than 1000 fields"):
        parse_signature(text)
    chain = "".join(f"t{i}$_ x:T{i + 1} = T{i}; " for i in range(20))
    with pytest.raises(SignatureInvalid, match="nested in each other"):
        parse_signature(chain + "t$_ = T20; a#00000001 x:T0 = B")

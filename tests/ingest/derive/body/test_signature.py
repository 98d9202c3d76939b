"""User-defined layouts: their results, and their errors."""

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pytoniq_core import Cell, begin_cell

from tonlake.ingest.derive.body.fields import read_tables
from tonlake.ingest.derive.body.scheme import load_scheme
from tonlake.ingest.derive.body.signature import MAX_CHARACTERS, MAX_CONSTRUCTORS, parse_signature
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
    [table] = read_tables(["\ufeffa#11223344 _:uint8 _:Coins = B;"])
    assert [field.name for field in table.layouts[0].fields] == ["field_1", "field_2"]


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
        if name
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
                        ("delta", False, {"type": "int", "format": "varint16"}),
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
        *("amount", "amount", "int", "amount", "address", "string", "bytes"),
        *("json", "json", "json"),
    ]


def test_a_message_of_tact_in_several_cells() -> None:
    """Bodies of bindings that the compiler wrote: what has no room is in the last reference."""
    pair = [("first", "address"), ("second", "address"), ("note", "string")]
    deal = [
        *(("pair", "Pair"), ("buyer", "address"), ("seller", "address"), ("amount", "uint")),
        *(
            ("more", "Pair"),
            ("memo", "cell"),
            ("proof", "cell"),
            ("extra", "cell"),
            ("last", "uint"),
        ),
    ]
    types = [
        {"name": name, "header": header, "fields": [make_tact(*field) for field in fields]}
        for name, header, fields in (("Pair", None, pair), ("Deal", 0x12345678, deal))
    ]
    [table] = read_tables([json.dumps({"types": types})])
    fields = {field.name: field for field in table.layouts[0].fields}
    names = [name for name, _kind in deal]
    assert list(fields) == [*names[:2], "field_3", *names[2:]]
    bodies = pa.array(map(base64.b64decode, DEALS), pa.binary())
    assert table.layouts[0].fit(bodies).to_pylist() == [True, True]
    rest = [json.loads(text) for text in fields["last"].decode(bodies).to_pylist()]
    assert [each["last"] for each in rest] == ["9", "9"]
    assert [each["seller"].get("address") for each in rest] == [None, "04" * 32]
    assert rest[1]["more"]["value"]["first"]["address"] == "05" * 32


def make_tact(name: str, kind: str) -> dict[str, Any]:
    formats = {"amount": "coins", "last": 8}
    of = {"type": kind, "format": formats.get(name), "optional": name in {"seller", "more"}}
    return {"name": name, "type": {"kind": "simple", **of}}


DEALS = [
    (
        "te6cckEBBAEAewAC0RI0VniAACAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAwAAgICAgICAgICAgICAgICAgI"
        "CAgICAgICAgICAgICAgKAAGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBwAECAARoaQMFBBwTAwMDAAAcGjkQ"
    ),
    (
        "te6cckEBBAEA4AAC0RI0VniAACAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAwAAgICAgICAgICAgICAgICAgI"
        "CAgICAgICAgICAgICAgKAAGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBgYGBwAIBBM2AAICAgICAgICAgICAgICA"
        "gICAgICAgICAgICAgICAgICCD4AAoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoLAACAgICAgICAgICAgICAgI"
        "CAgICAgICAgICAgICAgICAgmAgMDAwAEaGkAAHTUqC4="
    ),
]


def make_tolk(types: list[dict[str, Any]], *declarations: dict[str, Any]) -> str:
    abi = {"abi_schema_version": "1.0", "contract_name": "c", "unique_types": types}
    return json.dumps({**abi, "declarations": declarations})


def declare(name: str, prefix: tuple[int, int] | None, *fields: tuple[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": "struct", "name": name}
    if prefix is not None:
        found["prefix"] = {"prefix_num": prefix[0], "prefix_len": prefix[1]}
    return found | {"fields": [{"name": field, "ty_idx": at} for field, at in fields]}


BOOL = [{"kind": "bool"}]
ABI_FIELD = '{"types": [{"name": "A", "header": 1, "fields": [%s]}]}'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no constructor"),
        ("no_such_layout", "no layout is called no_such_layout"),
        ("transfer#0f8a7ea5 query_id:uint64", "invalid TL-B statement"),
        ("transfer$_ query_id:uint64 = Body", "no constructor"),
        ("transfer#0f8a query_id:uint64 = Body", "no constructor"),
        ("a#0123456789abcdef = B; b#00000001 = B", "more than 32 bits"),
        ("a#00000001 x:uint64 x:uint8 = B", "two fields 'x'"),
        ("a#00000001 x:uint64 X:uint8 = B", "two fields 'x'"),
        ("a#00000001 x:uint999 = B", "uint takes a number from 0 to 256"),
        ("a#00000001 x:int258 = B", "from 0 to 257"),
        (f"a#00000001 x:uint{'9' * 5000} = B", "no type uint9"),
        ("a#00000001 x:Nothing = B", "no type Nothing"),
        ("a#00000001 x:(Maybe) = B", "arguments"),
        ("a#00000001 x:(Chunks uint8) = B", "2 arguments"),
        ("a#00000001 x:(VarUInteger 999) = B", "2 to 32"),
        ("a#00000001 x:(HashmapE 99999 uint8) = B", "from 1 to 1023"),
        ("a#00000001 x:(HashmapE y uint8) = B", "not an earlier number"),
        ("a#00000001 {y:#} x:(HashmapE y uint8) = B", "not an earlier number"),
        ("a#00000001 y:(## 8) x:(bits z) = B", "z in a is not an earlier number"),
        ("a#00000001 y:uint8 x:(bits (y" + " + 1" * 65 + ")) = B", "more than 64 operations"),
        ("a#00000001 x:((Maybe Bool) Bool) = B", "another type"),
        ("a#00000001 x:ShardIdent:Bool = B", "expected"),
        ("a#00000001 x:MsgAddress y:x?uint8 = B", "not an earlier number"),
        ("a#00000001 y:x?uint8 = B", "not an earlier number"),
        ("a#00000001 x:uint8 y:x.8?uint8 = B", "no bit 8"),
        ("a#00000001 x:uint8 y:x.z?uint8 = B", "not the number of a bit"),
        ("a#00000001 x:A = A", "contains itself"),
        ("t$_ x:U = T; u$_ x:T = U; a#00000001 x:T = B", "contains itself"),
        ("a#00000001 {X:Type} x:X = B", "no type X"),
        ("p$_ {X:Type} x:X = P X; a#00000001 p:(P uint8 uint8) = B", "takes 1 arguments"),
        ("p$_ {X:Type} x:^(P (Maybe X)) = P X; a#00000001 p:(P Bool) = B", "more than 500"),
        ("a#00000001 {x <= 3} x:uint8 = B", "not an earlier number"),
        ("a#00000001 x:uint8 {x ? 3} = B", "conditions compare"),
        ("a#00000001 x:(n * uint8) = B", "not an earlier number"),
        ("a#00000001 x:(9999 * Bool) = B", "more than 1000 fields"),
        ("a#00000001 x:(900 * ^[ y:uint8 z:uint8 ]) y:(900 * Bool) = B", "more than 1000"),
        ("a#00000001 x:(#<= y) = B", "not an earlier number"),
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
        ('{"abi_schema_version": "1.0"}', "not a Tolk ABI"),
        (make_tolk([], declare("A", (1, 32), ("x", 0))), "no type 0"),
        (make_tolk([], declare("A", (-1, 32))), "prefix of A does not have 32 bits"),
        (make_tolk([], declare("A", (1 << 32, 32))), "prefix of A does not have 32 bits"),
        (make_tolk(BOOL, declare("A", (1, 32), ("a b", 0))), "not a valid field name"),
        (make_tolk(BOOL, declare("A", (1, 8), ("a", 0))), "no constructor"),
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


REPORTED = """
# what people write
pay_fee#1f00aa01 query_id:uint64 ^[ fee:Coins payer:MsgAddressInt ] = Body;
set_mode#1f00aa02 query_id:uint64 mode:(## 8) { mode <= 3 } = Body;
sign#1f00aa03 query_id:uint64 sig:(512 * Bit) = Body;
depth#1f00aa04 d:(#<= 30) = Body;
relay#1f00aa05 query_id:uint64 msg:^(MessageRelaxed Any) = Body; // as in block.tlb
note#1f00aa06 query_id:uint64 /* number; of
  the note */ n:# = Body;
refund query_id:uint64 amount:(VarUInteger 16) = Body;
pair$_ {X:Type} {Y:Type} first:X second:^Y = Pair X Y;
swap#1F00AA07 of:(Pair uint8 (Pair (uint 16) Bool)) count:(## 4) items:(count * int8) = Body;
bare#1f00aa08 uint16 [ a:Bool b:Bool ] below:(#< 8) = Body;
send#1f00aa09 {n:#} query_id:uint64 actions:^(OutList n) done:(Maybe True) = InternalMsgBody n;
"""


def make_body(opcode: int) -> Any:
    return begin_cell().store_uint(opcode, 32)


def read_row(name: str, body: Cell) -> dict[str, str | None] | None:
    """Return the JSON of each column of a table for a body; None if it misfits."""
    tables = {table.name: table.layouts[0] for table in read_tables([REPORTED])}
    bodies = pa.array([body.to_boc()], pa.binary())
    if not tables[name].fit(bodies)[0].as_py():
        return None
    return {field.name: field.decode(bodies)[0].as_py() for field in tables[name].fields}


def test_reported_notation_is_accepted(shared: Path) -> None:
    folder = shared / "data" / "reports" / "10-tlb-standard-syntax"
    text = (folder / "signatures.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [len(read_tables([line])) for line in lines] == [1] * 7
    names = [table.name for table in read_tables([text])]
    assert len(names) == 7
    assert read_tables([lines[-1]])[0].layouts[0].opcode == 0x4DC0933A


def test_groups_without_a_name_have_columns() -> None:
    fee = begin_cell().store_coins(5).store_uint(0, 2).end_cell()
    row = read_row("pay_fee", make_body(0x1F00AA01).store_uint(9, 64).store_ref(fee).end_cell())
    assert row is not None
    assert list(row) == ["query_id", "field_2", "fee", "payer"]
    assert row["query_id"] == "9"
    assert '"value":"5"' in str(row["fee"])
    bare = make_body(0x1F00AA08).store_uint(7, 16).store_bits("10").store_uint(5, 3).end_cell()
    row = read_row("bare", bare)
    assert row is not None
    assert (row["field_1"], row["below"]) == ("7", "5")


@pytest.mark.parametrize(("mode", "fits"), [(0, True), (3, True), (4, False), (255, False)])
def test_conditions_are_checked(*, mode: int, fits: bool) -> None:
    body = make_body(0x1F00AA02).store_uint(9, 64).store_uint(mode, 8).end_cell()
    row = read_row("set_mode", body)
    assert row == ({"query_id": "9", "mode": str(mode)} if fits else None)


@pytest.mark.parametrize(("number", "fits"), [(0, True), (30, True), (31, False)])
def test_bounded_numbers_are_checked(*, number: int, fits: bool) -> None:
    row = read_row("depth", make_body(0x1F00AA04).store_uint(number, 5).end_cell())
    assert row == ({"d": str(number)} if fits else None)


def test_bits_repeated_values_and_parameters() -> None:
    row = read_row("sign", make_body(0x1F00AA03).store_uint(9, 64).store_uint(255, 512).end_cell())
    assert row == {"query_id": "9", "sig": f"{255:0128X}"}
    inner = begin_cell().store_bit(1).end_cell()
    second = begin_cell().store_uint(300, 16).store_ref(inner).end_cell()
    body = make_body(0x1F00AA07).store_uint(4, 8).store_ref(second).store_uint(2, 4)
    row = read_row("swap", body.store_int(-1, 8).store_int(5, 8).end_cell())
    assert row is not None
    assert (row["count"], row["items"]) == ("2", '["-1","5"]')
    assert json.loads(str(row["of"])) == {
        "@type": "pair",
        "first": "4",
        "second": {"@type": "pair", "first": "300", "second": True},
    }
    assert read_row("note", make_body(0x1F00AA06).store_uint(9, 64).store_uint(1, 32).end_cell())
    sent = begin_cell().store_ref(begin_cell().end_cell()).store_uint(0xAD4DE08E, 32)
    sent = sent.store_ref(inner).end_cell()
    body = make_body(0x1F00AA09).store_uint(9, 64).store_ref(sent).store_bit(1).end_cell()
    assert "action_set_code" in str((read_row("send", body) or {})["actions"])
    assert read_row("refund", make_body(0x4DC0933A).store_uint(9, 64).store_coins(1).end_cell())


def test_a_reported_abi_of_tolk(shared: Path) -> None:
    text = (shared / "data" / "reports" / "13-tolk-abi" / "counter.json").read_text()
    [table] = read_tables([text])
    assert (table.name, table.layouts[0].opcode) == ("Increase", 0x1F00BB01)
    assert [field.name for field in table.layouts[0].fields] == ["queryId", "by"]


def test_types_of_tolk() -> None:
    types: list[dict[str, Any]] = [
        *({"kind": "uintN", "n": 64}, {"kind": "coins"}, {"kind": "address"}, {"kind": "bool"}),
        {"kind": "nullable", "inner_ty_idx": 2},
        {"kind": "nullable", "inner_ty_idx": 8},
        {"kind": "StructRef", "struct_name": "Point"},
        {"kind": "cellOf", "inner_ty_idx": 6},
        {"kind": "cell"},
        {"kind": "AliasRef", "alias_name": "Amount"},
        {"kind": "EnumRef", "enum_name": "Colour"},
        {"kind": "union", "variants": []},
        {"kind": "intN", "n": 16},
    ]
    fields = [
        *(("queryId", 0), ("amount", 9), ("to", 2), ("response", 4), ("payload", 5)),
        *(("point", 7), ("colour", 10), ("what", 11), ("after", 3)),
    ]
    text = make_tolk(
        types,
        declare("Point", None, ("x", 12), ("y", 12)),
        {"kind": "alias", "name": "Amount", "target_ty_idx": 1},
        {"kind": "enum", "name": "Colour", "encoded_as_ty_idx": 12},
        declare("Send", (0x1F00BB02, 32), *fields),
        declare("Stop", (0x1F00BB03, 32)),
    )
    tables = {table.name: table.layouts[0] for table in read_tables([text])}
    assert {name: table.opcode for name, table in tables.items()} == {
        "Send": 0x1F00BB02,
        "Stop": 0x1F00BB03,
    }
    kinds = {field.name: field.kind for field in tables["Send"].fields}
    assert list(kinds) == [name for name, _at in fields[:-1]]
    assert (kinds["to"], kinds["response"], kinds["amount"]) == ("address", "address", "amount")
    point = begin_cell().store_int(-1, 16).store_int(2, 16).end_cell()
    body = make_body(0x1F00BB02).store_uint(1, 64).store_coins(9).store_uint(0, 4).store_bit(0)
    body = body.store_ref(point).store_int(3, 16).store_uint(5, 7)
    bodies = pa.array([body.end_cell().to_boc()], pa.binary())
    assert tables["Send"].fit(bodies).to_pylist() == [True]
    shown = {field.name: field.decode(bodies)[0].as_py() for field in tables["Send"].fields}
    assert (shown["queryId"], shown["colour"], '"y":"2"' in shown["point"]) == ("1", "3", True)
    assert '"value":"9"' in shown["amount"]

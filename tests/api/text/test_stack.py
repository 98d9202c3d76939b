"""The stack codec: every accepted spelling, every written form."""

import base64
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from pytoniq_core import begin_cell

from tests.ingest.derive.tvm.values import HIGH, LOW, SHOWN, normalize
from tonlake.api.errors import RequestInvalid, StackTypeUnknown
from tonlake.api.text import encoding
from tonlake.api.text.encoding import decode_stack, encode_legacy, encode_typed, encode_v3
from tonlake.ingest.derive.tvm.call import TvmBuilder, TvmCell, TvmNan, TvmOpaque, TvmSlice

CELL = begin_cell().store_uint(5, 8).store_ref(begin_cell().store_uint(1, 3).end_cell()).end_cell()
BOC = CELL.to_boc(hash_crc32=True)
TEXT = base64.b64encode(BOC).decode()
SPELT = {
    "data": {"b64": "BQ==", "len": 8},
    "refs": [{"data": {"b64": "IA==", "len": 3}, "refs": []}],
}


def decode(*items: Any) -> tuple[Any, ...]:
    return decode_stack(items)


def as_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def without_slices(value: Any) -> Any:
    """Return the value as a form tells it that tags slices as cells."""
    return TvmCell(value.boc) if isinstance(value, TvmSlice) else value


@settings(deadline=None)
@given(SHOWN)
def test_what_is_written_is_read(value: Any) -> None:
    assert decode(as_json(encode_typed(value))) == (value,)
    for encode in (encode_legacy, encode_v3):
        assert decode(as_json(encode(value))) == (without_slices(value),)


@settings(deadline=None)
@given(SHOWN)
def test_lists_and_pairs_are_one_thing(value: Any) -> None:
    same = normalize(value)
    assert normalize(decode(encode_typed(same))[0]) == same


@pytest.mark.parametrize(
    ("item", "value"),
    [
        (["num", 5], 5),
        (["int", "-5"], -5),
        (["number", "0x1f"], 31),
        (["integer", "-0X1F"], -31),
        (["num", str(LOW)], LOW),
        (["num", hex(HIGH)], HIGH),
        (["tvm.Cell", TEXT], TvmCell(BOC)),
        (["tvm.Slice", TEXT], TvmSlice(BOC)),
        (["tvm.Builder", TEXT], TvmBuilder(BOC)),
        (["tvm.Cell", TEXT.replace("+", "-").replace("/", "_").rstrip("=")], TvmCell(BOC)),
        (["cell", {"bytes": TEXT}], TvmCell(BOC)),
        (["slice", {"bytes": TEXT}], TvmSlice(BOC)),
        (["cell", SPELT], TvmCell(BOC)),
        (["slice", SPELT], TvmSlice(BOC)),
        (["null", None], None),
        (["null"], None),
        (["list", {"@type": "tvm.list", "elements": []}], None),
        (["tuple", {"elements": [["num", "1"], ["tvm.Cell", TEXT]]}], (1, TvmCell(BOC))),
        (
            [
                "tvm.Tuple",
                {
                    "@type": "tvm.tuple",
                    "elements": [
                        {
                            "@type": "tvm.stackEntryNumber",
                            "number": {"@type": "tvm.numberDecimal", "number": "7"},
                        },
                        {"@type": "tvm.stackEntryList", "list": {"elements": [["num", 1]]}},
                    ],
                },
            ],
            (7, [1]),
        ),
        (["tvm.List", {"elements": [["num", 1], ["num", 2]]}], [1, 2]),
        ({"type": "num", "value": "0x10"}, 16),
        ({"type": "cell", "value": TEXT}, TvmCell(BOC)),
        ({"type": "slice", "value": TEXT}, TvmSlice(BOC)),
        ({"type": "tuple", "value": [{"type": "num", "value": "1"}]}, (1,)),
        ({"@type": "tvm.stackEntrySlice", "slice": {"bytes": TEXT}}, TvmSlice(BOC)),
    ],
)
def test_every_spelling(item: Any, value: Any) -> None:
    assert decode(item) == (value,)


LEAF = {"@type": "tvm.stackEntryNumber", "number": {"@type": "tvm.numberDecimal", "number": "-1"}}


@pytest.mark.parametrize(
    ("value", "legacy", "v3"),
    [
        (31, ["num", "0x1f"], {"type": "num", "value": "0x1f"}),
        (-31, ["num", "-0x1f"], {"type": "num", "value": "-0x1f"}),
        (0, ["num", "0x0"], {"type": "num", "value": "0x0"}),
        (TvmNan(), ["num", "NaN"], {"type": "num", "value": "NaN"}),
        (TvmCell(BOC), ["cell", {"bytes": TEXT}], {"type": "cell", "value": TEXT}),
        (TvmSlice(BOC), ["cell", {"bytes": TEXT}], {"type": "cell", "value": TEXT}),
        (None, ["list", {"@type": "tvm.list", "elements": []}], {"type": "list", "value": []}),
        (
            [-1],
            ["list", {"@type": "tvm.list", "elements": [LEAF]}],
            {"type": "list", "value": [{"type": "num", "value": "-0x1"}]},
        ),
        (
            (-1, TvmSlice(BOC)),
            [
                "tuple",
                {
                    "@type": "tvm.tuple",
                    "elements": [
                        LEAF,
                        {
                            "@type": "tvm.stackEntrySlice",
                            "slice": {"@type": "tvm.slice", "bytes": TEXT},
                        },
                    ],
                },
            ],
            {
                "type": "tuple",
                "value": [{"type": "num", "value": "-0x1"}, {"type": "slice", "value": TEXT}],
            },
        ),
        (TvmBuilder(BOC), ["unsupported", ""], {"type": "unsupported", "value": ""}),
        (TvmOpaque(), ["unsupported", ""], {"type": "unsupported", "value": ""}),
    ],
)
def test_every_form(value: Any, legacy: Any, v3: Any) -> None:
    assert encode_legacy(value) == legacy
    assert encode_v3(value) == v3


def test_typed_forms_without_content() -> None:
    assert encode_typed(TvmOpaque()) == {"@type": "tvm.stackEntryUnsupported"}
    assert encode_typed(None)["list"]["elements"] == []
    assert encode_typed(TvmNan())["number"]["number"] == "NaN"


@pytest.mark.parametrize(
    "item",
    [
        5,
        [],
        {},
        {"type": 5},
        [5, 5],
        ["num", None],
        ["num", True],
        ["num", 1.5],
        ["num", "x"],
        ["num", "0x"],
        ["num", str(HIGH + 1)],
        ["num", str(LOW - 1)],
        ["num", "9" * 5000],
        ["tvm.Cell", "no base64!"],
        ["tvm.Cell", "AAAA"],
        ["tvm.Cell", None],
        ["tvm.Cell", TEXT[:-8]],
        ["cell", {"data": {"b64": "BQ==", "len": 9}}],
        ["cell", {"data": {"b64": "BQ==", "len": -1}}],
        ["cell", {"data": {"b64": "BQ==", "len": "8"}}],
        ["cell", {"data": 5}],
        ["cell", {"data": {"b64": "", "len": 0}, "refs": [{}] * 5}],
        ["cell", {"data": {"b64": "AQ==", "len": 8}, "special": True}],
        ["tuple", None],
        ["tuple", {"elements": [["num", 1]] * 256}],
        ["list", {"elements": 5}],
    ],
)
def test_what_is_refused(item: Any) -> None:
    with pytest.raises(RequestInvalid):
        decode(item)


def test_exotic_cells_are_cells_alone() -> None:
    spelt = {"data": {"b64": base64.b64encode(b"\2" + bytes(32)).decode(), "len": 264}}
    (cell,) = decode(["cell", {**spelt, "special": True}])
    assert isinstance(cell, TvmCell)
    for kind in ("slice", "tvm.Builder"):
        with pytest.raises(RequestInvalid, match="exotic"):
            decode([kind, {**spelt, "special": True}])
    pruned = {"b64": base64.b64encode(b"\1\1" + bytes(34)).decode(), "len": 288}
    with pytest.raises(RequestInvalid, match="pruned"):
        decode(["cell", {"data": pruned, "special": True}])


def test_unknown_types() -> None:
    for item in (["x" * 100, 1], {"type": "x" * 100}, {"@type": "x" * 100}):
        with pytest.raises(StackTypeUnknown) as caught:
            decode(item)
        assert str(caught.value) == "Unsupported stack entry type: " + "x" * 80


def test_arguments_are_bounded() -> None:
    nested: Any = ["num", 1]
    for _ in range(99):
        nested = ["tuple", {"elements": [nested]}]
    assert decode(nested)
    with pytest.raises(RequestInvalid, match="nested too deep"):
        decode(["tuple", {"elements": [nested]}])
    with (
        mock.patch.object(encoding, "STACK_ENTRIES", 10),
        pytest.raises(RequestInvalid, match="too many entries"),
    ):
        decode(*[["null"]] * 11)


def test_deep_values_are_written() -> None:
    value: Any = 1
    for _ in range(99):
        value = (value,)
    for encode in (encode_legacy, encode_typed, encode_v3):
        assert decode(as_json(encode(value))) == (value,)

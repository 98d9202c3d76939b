"""Types of block.tlb in layouts of users: dictionaries, trees, stacks, transactions."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytoniq_core import Cell, VmStack, VmTuple, begin_cell

from tonlake.ingest.derive.body.fields import read_tables

BLOCK = files("tonlake.ingest.derive.body").joinpath("block.tlb").read_text()


def decode(types: str, body: Cell, definitions: str = "") -> Any:
    """Return the value of a body of one field; None if it misfits."""
    table = read_tables([f"{definitions} a#1f00aa01 {{n:#}} x:({types}) = B;"])[-1]
    cell = begin_cell().store_uint(0x1F00AA01, 32).store_cell(body).end_cell()
    [text] = table.layouts[0].fields[0].decode(pa.array([cell.to_boc()])).to_pylist()
    return text and json.loads(text)


def store_edge(entries: dict[str, int], width: int, *, is_prefix: bool) -> Any:
    """Build a dictionary by the text of block.tlb; extra values are sums of values."""
    first, last = min(entries), max(entries)
    size = next((at for at, bit in enumerate(first) if bit != last[at]), len(first))
    cell, label, length = begin_cell(), first[:size], f"{size:0{width.bit_length()}b}"
    if len(set(label)) == 1 and size > 2:
        cell = cell.store_bits("11" + label[0] + length)
    else:
        start = "0" + "1" * size + "0" if size < 4 else "10" + length
        cell = cell.store_bits(start + label)
    is_leaf = len(entries) == 1
    cell = cell.store_bits(str(int(not is_leaf)) if is_prefix else "")
    for side in "" if is_leaf else "01":
        below = {key[size + 1 :]: each for key, each in entries.items() if key[size] == side}
        cell = cell.store_ref(store_edge(below, width - size - 1, is_prefix=is_prefix))
    cell = cell if is_prefix else cell.store_uint(sum(entries.values()), 16)
    return (cell.store_uint(entries[first], 8) if is_leaf else cell).end_cell()


def read_edge(edge: Any, prefix: str = "") -> dict[str, tuple[str, str | None]]:
    """Return the values of a decoded dictionary, with the extra ones, by key."""
    label, node = edge["label"], edge["node"]
    size = int(label.get("n", json.dumps(label).count("unary_succ")))
    number = int(label.get("s", "").removesuffix("_") or "0", 16) >> -size % 4
    key = prefix + (label["v"] * size if "v" in label else f"{number:b}".zfill(size)[:size])
    if "value" in node:
        return {key: (node["value"], node.get("extra"))}
    return read_edge(node["left"], f"{key}0") | read_edge(node["right"], f"{key}1")


@pytest.mark.parametrize("is_prefix", [False, True])
@given(data=st.data())
def test_dictionaries_go_there_and_back(*, is_prefix: bool, data: st.DataObject) -> None:
    keys = st.text("01", min_size=1 if is_prefix else 9, max_size=9)
    drawn = data.draw(st.dictionaries(keys, st.integers(0, 255), min_size=1, max_size=12))
    entries = {  # no key of a prefix dictionary begins another one
        key: value
        for key, value in drawn.items()
        if not any(other.startswith(key) for other in drawn.keys() - {key})
    }
    root = store_edge(entries, 9, is_prefix=is_prefix)
    body = begin_cell().store_bit(1).store_ref(root).store_bits("" if is_prefix else "0" * 16)
    types = "PfxHashmapE 9 uint8" if is_prefix else "HashmapAugE 9 uint8 uint16"
    for definitions in ("", BLOCK):
        found = read_edge(decode(types, body.end_cell(), definitions)["root"])
        assert found == {
            key: (str(value), None if is_prefix else str(value)) for key, value in entries.items()
        }


@given(st.recursive(st.integers(0, 255), lambda inner: st.tuples(inner, inner), max_leaves=20))
def test_trees_go_there_and_back(tree: Any) -> None:
    def store(node: Any) -> Any:
        if isinstance(node, int):
            return begin_cell().store_bit(0).store_uint(node, 8).end_cell()
        left, right = map(store, node)
        return begin_cell().store_bit(1).store_ref(left).store_ref(right).end_cell()

    def read(node: Any) -> Any:
        return int(node["leaf"]) if "leaf" in node else (read(node["left"]), read(node["right"]))

    assert read(decode("BinTree uint8", store(tree))) == tree


@given(st.lists(st.integers(-(1 << 200), 1 << 200) | st.lists(st.integers(0, 9)), max_size=30))
def test_stacks_of_the_sdk(values: Any) -> None:
    wanted = [len(value) if isinstance(value, list) else value for value in values]
    stack = [VmTuple(value) if isinstance(value, list) else value for value in values]
    item, shown = decode("VmStack", VmStack.serialize(stack))["stack"], []
    while "tos" in item:
        shown.append(item["tos"])
        item = item["rest"]
    assert wanted == [int(value.get("len", value.get("value"))) for value in shown[::-1]]


def test_a_reported_transaction(shared: Path) -> None:
    line = (shared / "data" / "reports" / "11-extin-addr-var" / "tx.jsonl").read_text()
    found = decode("Transaction", Cell.one_from_boc(json.loads(line)["boc"]))
    message = found["field_9"]["in_msg"]["value"]["cell_reference"]
    assert (found["lt"], message["info"]["@type"]) == ("216000001", "ext_in_msg_info")
    assert found["account_addr"] == message["info"]["dest"]["address"]
    assert found["description"]["compute_ph"]["field_5"]["gas_used"]["value"] == "2994"


@pytest.mark.parametrize(
    ("types", "bits", "shown"),
    [
        ("Both uint8 (Maybe Bool)", "00000111" + "11", "7"),
        ("ShardIdent", "00" + "000010" + "1" * 32 + "1" + "0" * 63, "9223372036854775808"),
        ("Unary ~n", "1110", "unary_succ"),
        ("int (4 + 4)", "11111001", "-7"),
        ("VarUInteger (2 * 8)", "0001" + "00000111", "7"),
        ("Anycast", "00011" + "101", "B_"),
        ("Either uint8 (3 * Bit)", "1" + "101", "B_"),
    ],
)
def test_other_types(types: str, bits: str, shown: str) -> None:
    body = begin_cell().store_bits(bits).end_cell()
    assert shown in json.dumps(decode(types, body))
    assert decode(types, begin_cell().store_bits(bits[:-1]).end_cell()) is None


@pytest.mark.parametrize("bits", ["1" * 990, "1" * 900 + "0" * 90])
def test_a_body_that_nests_types_too_deeply_misfits(bits: str) -> None:
    types = "".join(f"x{at}$_ k:(## 1) a:k?X{at + 1} = X{at};" for at in range(9))
    definitions = f"{types} end$0 = X9; more$1 a:X0 = X9; l$0 = L; m$1 a:L b:L = L;"
    assert decode("X0", begin_cell().store_bits(bits).end_cell(), definitions) is None
    assert decode("L", begin_cell().store_bits(bits).end_cell(), definitions) is None

"""Interface names: by code hash, else by methods."""

import base64
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.hashmaps import build_hashmap
from tonlake.ingest.decode.cell.build import CellBuilder
from tonlake.ingest.decode.cell.tree import CellTree
from tonlake.ingest.derive.contract.record import (
    METHOD_BITS,
    find_method_ids,
    keep_first_codes,
    load_interfaces,
    make_table,
    name_interfaces,
    read_method_ids,
)
from tonlake.ingest.derive.tvm.call import method_id
from tonlake.lake.schema import INTERFACES

UNKNOWN = bytes(32)
V4R2 = bytes.fromhex("feb5ff6820e2ff0d9483e7e0d62c817d846789fb4ae580c878866d959dabd5c0")


def build_code(head: int, head_bits: int, methods: list[int]) -> tuple[CellTree, int]:
    """Return a code with these leading bits, followed by a dictionary of methods."""
    tree = CellTree()
    leaves = {method: lambda leaf: leaf.store_uint(0, 8) for method in methods}
    root = build_hashmap(tree, leaves, METHOD_BITS)
    return tree, CellBuilder(tree).store_uint(head, head_bits).store_ref(root).end()


def test_the_table_has_the_names_that_clients_know() -> None:
    table = load_interfaces()
    assert len(table.by_code) == 56
    assert len({*table.by_code.values(), *table.by_methods}) == 103
    assert "dedust_liquidity_deposit " in table.by_methods


def test_a_known_code_has_one_name_regardless_of_its_methods() -> None:
    assert name_interfaces(V4R2, [method_id("get_nft_data")]) == ["wallet_v4r2"]


def test_other_codes_have_every_name_that_their_methods_satisfy() -> None:
    methods = [method_id(name) for name in ("get_nft_data", "get_editor", "dnsresolve", "more")]
    assert name_interfaces(UNKNOWN, methods) == ["dns", "editable", "nft_item"]
    assert name_interfaces(UNKNOWN, [method_id("more")]) is None
    assert name_interfaces(UNKNOWN, None) is None


@given(methods=st.lists(st.integers(0, 2**METHOD_BITS - 1), min_size=1, unique=True))
def test_methods_are_read_from_the_selector(methods: list[int]) -> None:
    tree, code = build_code(0xFF00F4A413F4BCF2C80B, 80, methods)
    assert read_method_ids(tree, code) == sorted(methods)
    assert find_method_ids(tree, code) == sorted(methods)


def test_a_selector_after_other_instructions_is_found_but_not_shown() -> None:
    tree, code = build_code(0xFF008E88F4A413F4BCF2C80BED53, 112, [0, 85143])
    assert read_method_ids(tree, code) is None
    assert find_method_ids(tree, code) == [0, 85143]


def test_a_table_of_shared_cells_is_not_written_out() -> None:
    """All cells of a commit are in one tree, so that its size bounds no single dictionary."""
    tree = CellTree()
    for other in range(20_000):
        CellBuilder(tree).store_uint(other, 32).end()
    leaf = CellBuilder(tree).store_uint(0b10, 2).store_uint(METHOD_BITS - 13, 3)
    node = leaf.store_uint(0, METHOD_BITS - 13).end()
    for _ in range(13):
        node = CellBuilder(tree).store_uint(0, 2).store_ref(node).store_ref(node).end()
    code = CellBuilder(tree).store_uint(0xFF00F4A413F4BCF2C80B, 80).store_ref(node).end()
    assert read_method_ids(tree, code) is find_method_ids(tree, code) is None


def test_code_without_a_table_may_have_any_method() -> None:
    builder = CellBuilder().store_uint(0xFF0020, 24)
    code = builder.end()
    assert read_method_ids(builder.tree, code) is find_method_ids(builder.tree, code) is None
    exotic = CellBuilder().store_uint(2, 8).store_bytes(bytes(32))
    assert read_method_ids(exotic.tree, exotic.end(exotic=True)) is None


def test_recorded_labels(shared: Path) -> None:
    """Every account with a recorded interface name has that interface by its code hash."""
    labels = json.loads((shared / "data/contracts/interface_labels.json").read_text())
    named = [label for label in labels if label["interfaces"] and label["code_hash"]]
    table = load_interfaces()
    for label in named:
        code_hash = base64.b64decode(label["code_hash"])
        assert name_interfaces(code_hash, None) == label["interfaces"], label["account"]
        assert table.by_code[code_hash] == label["interfaces"][0]
    assert named


def test_a_code_of_several_parts_stays_where_it_came_first() -> None:
    rows = [
        {"code_hash": bytes([code]) * 32, "mc_seqno": at, "methods": [code], "names": None}
        for code, at in ((1, 5), (2, 9), (1, 3), (3, 4), (2, 9))
    ]
    kept = keep_first_codes(make_table(INTERFACES, rows))
    found = {row["code_hash"][0]: row["mc_seqno"] for row in kept.to_pylist()}
    assert kept.num_rows == len(found)
    assert found == {1: 3, 2: 9, 3: 4}


LIBRARIES = {
    "6305a8061c856c2ccf05dcb0df5815c71475870567cab5f049e340bcf59251f3": ["get_order_data"],
    "00" * 32: None,
}
"""Library hashes, of a known code (orders of multisig wallets) and of another, with methods."""


def test_methods_of_a_library_that_is_missing() -> None:
    for library, names in LIBRARIES.items():
        builder = CellBuilder().store_uint(2, 8).store_bytes(bytes.fromhex(library))
        ids = None if names is None else list(map(method_id, names))
        assert find_method_ids(builder.tree, builder.end(exotic=True)) == ids

"""The configuration and libraries, against the zero state and an independent implementation."""

import base64
import hashlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from litestar.testing import TestClient
from pytoniq_core import Builder, Cell, HashMap

from tests.api.v2.conftest import Asker
from tests.api.v3.scene import MASTER_SHARD, Scene
from tests.lake.chain import commit_made
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.packed import pack_cell
from tonlake.ingest.derive.tvm.call import join_params
from tonlake.ingest.source.node.source import open_node
from tonlake.lake.log.state import NetworkId
from tonlake.lake.schema import TABLES


def _bytes(result: dict[str, Any]) -> bytes:
    assert result["@type"] == "configInfo"
    assert result["config"]["@type"] == "tvm.cell"
    return base64.b64decode(result["config"]["bytes"])


def _all_hashes(boc: bytes) -> set[bytes]:
    tree = parse_boc(boc)
    return {tree.hash(cell) for cell in range(tree.count)}


def test_the_configuration_is_a_cell_of_the_zero_state(ask: Asker, demo_facts: Path) -> None:
    """The dictionary is rebuilt and must have the chain's own hash."""
    boc = _bytes(ask("getConfigAll"))
    tree = parse_boc(boc)
    assert tree.hash(tree.roots[0]) in _all_hashes((demo_facts / "zerostate.boc").read_bytes())
    assert _bytes(ask("getConfigAll", seqno=1)) == boc


def test_every_parameter_is_in_the_configuration(ask: Asker) -> None:
    whole = Cell.one_from_boc(_bytes(ask("getConfigAll")))
    params = HashMap.parse(whole.begin_parse(), 32)
    assert params is not None
    assert {0, 1, 15, 34} <= params.keys()
    for number, value in params.items():
        boc = _bytes(ask("getConfigParam", config_id=number))
        assert Cell.one_from_boc(boc).hash == value.load_ref().hash
        assert _bytes(ask("getConfigParam", param=number, seqno=100)) == boc


def test_rules_of_parameters(ask: Asker) -> None:
    rule = "failed to validate request: only one of config_id or param should be specified"
    assert ask.refused("getConfigParam") == (422, rule)
    assert ask.refused("getConfigParam", param=1, config_id=1) == (422, rule)
    rule = "failed to validate request: param should be non-negative"
    assert ask.refused("getConfigParam", param=-1) == (422, rule)
    rule = "failed to validate request: seqno should be positive"
    assert ask.refused("getConfigAll", seqno=0) == (422, rule)
    unknown = (500, "LITE_SERVER_NOTREADY: seqno not in db")
    assert ask.refused("getConfigAll", seqno=1000) == unknown
    assert ask.refused("getConfigParam", param=0, seqno=1000) == unknown
    assert ask.refused("getConfigParam", param=12345)[0] == 500


@given(
    st.dictionaries(
        st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-9, 90),
        st.binary(max_size=60),
        min_size=1,
        max_size=40,
    )
)
def test_a_dictionary_is_written_as_others_write_it(params: dict[int, bytes]) -> None:
    cells = {key: Builder().store_bytes(value).end_cell() for key, value in params.items()}
    oracle = HashMap(32, value_serializer=lambda cell, into: into.store_ref(cell))
    for key, cell in cells.items():
        oracle.set_int_key(key & 0xFFFFFFFF, cell)
    expected = oracle.serialize()
    assert expected is not None
    found = Cell.one_from_boc(join_params({key: cell.to_boc() for key, cell in cells.items()}))
    assert found.hash == expected.hash


def test_libraries_that_are_not_public_are_left_out(ask: Asker) -> None:
    wanted = [hashlib.sha256(b"1").hexdigest(), base64.b64encode(bytes(32)).decode()]
    for libraries in (wanted[0], wanted):
        found = ask("getLibraries", libraries=libraries)
        assert found == {"@type": "smc.libraryResult", "result": []}
        assert ask.post("getLibraries", libraries=libraries) == found
    text = "failed to parse get request: invalid hash: 'x'"
    assert ask.refused("getLibraries", libraries="x") == (422, text)
    assert ask.refused("getLibraries")[0] == 422


KEPT = Builder().store_uint(1, 8).store_ref(Builder().store_uint(7, 16).end_cell()).end_cell()
TAKEN_BACK = Builder().store_uint(2, 8).end_cell()


def _cells(*roots: Cell) -> pa.Table:
    rows = []
    for root in roots:
        tree = parse_boc(root.to_boc())
        for cell in range(tree.count):
            packed, refs = pack_cell(tree, cell)
            rows.append({"hash": tree.hash(cell), "mc_seqno": 1, "cell": packed, "refs": refs})
    return pa.Table.from_pylist(rows, schema=TABLES["state_cells"].arrow)


def _changes(mc_seqno: int, **present: Cell) -> pa.Table:
    rows = [
        {
            "mc_seqno": mc_seqno,
            "hash": cell.hash,
            "present": not name.startswith("not"),
            "publishers": [],
        }
        for name, cell in present.items()
    ]
    return pa.Table.from_pylist(rows, schema=TABLES["libraries"].arrow)


def test_libraries_that_are_public_now(demo_node: Path, asker: type[Asker], tmp_path: Path) -> None:
    libraries = {
        1: _changes(1, one=KEPT, two=TAKEN_BACK),
        2: _changes(2, not_two=TAKEN_BACK),
    }
    with closing(open_node(demo_node)) as source:
        for seqno, changes in libraries.items():
            tables = decode_bundles([source.read_bundle(seqno)])
            tables["libraries"] = changes
            if seqno == 1:
                known = set(tables["state_cells"]["hash"].to_pylist())
                extra = _cells(KEPT, TAKEN_BACK)
                assert not known & set(extra["hash"].to_pylist())
                cells = pa.concat_tables([tables["state_cells"], extra])
                tables["state_cells"] = cells.sort_by("hash")
            commit_made(tmp_path, seqno, seqno, tables, network=NetworkId(-1414))
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        ask = asker(client)
        wanted = [cell.hash.hex() for cell in (TAKEN_BACK, KEPT, KEPT, Builder().end_cell())]
        (found,) = ask("getLibraries", libraries=wanted)["result"]
        assert found["@type"] == "smc.libraryEntry"
        assert base64.b64decode(found["hash"]) == KEPT.hash
        assert Cell.one_from_boc(base64.b64decode(found["data"])).hash == KEPT.hash
        before = ask("getLibraries", libraries=wanted, snapshot=1)["result"]
        assert [base64.b64decode(row["hash"]) for row in before] == [TAKEN_BACK.hash, KEPT.hash]


def test_every_shard_and_the_masterchain(ask: Asker, demo_node: Path) -> None:
    with closing(open_node(demo_node)) as source:
        last = source.last_mc_seqno()
        bundles = [source.read_bundle(seqno) for seqno in range(1, last + 1)]
        rows = decode_bundles(bundles)["queue_sizes"]
    sizes = {
        (row["workchain"], row["shard"], row["seqno"]): row["out_queue_size"]
        for row in rows.to_pylist()
    }
    for method in ("getOutMsgQueueSize", "getOutMsgQueueSizes"):
        found = ask(method)
        assert set(found) == {"@type", "shards", "ext_msg_queue_size_limit"}
        assert (found["@type"], found["ext_msg_queue_size_limit"]) == (
            "blocks.outMsgQueueSizes",
            8000,
        )
        ids = [one["id"] for one in found["shards"]]
        assert ids == [ask("getMasterchainInfo")["last"], *ask("getShards", seqno=last)["shards"]]
        for one in found["shards"]:
            assert set(one) == {"@type", "id", "size"}
            assert one["@type"] == "blocks.outMsgQueueSize"
            key = (one["id"]["workchain"], int(one["id"]["shard"]), one["id"]["seqno"])
            assert one["size"] == sizes[key]


def test_what_is_not_known_is_no_empty_queue(tmp_path: Path) -> None:
    for number, size in enumerate((None, 0, 17)):
        scene = Scene(1)
        master = {"workchain": -1, "shard": MASTER_SHARD, "seqno": 1, "mc_seqno": 1}
        scene.put("shard_blocks", **master)
        if size is not None:
            scene.put("queue_sizes", **master, out_queue_size=size)
        lake = scene.commit(tmp_path / str(number))
        with TestClient(create_app(lake, PATIENT)) as client:
            answer = client.get("/api/v2/getOutMsgQueueSize")
        if size is None:
            assert answer.status_code == 500
            assert "is not known" in answer.json()["error"]
        else:
            assert [one["size"] for one in answer.json()["result"]["shards"]] == [size]

"""Public libraries that are published and removed, in a lake of two blocks."""

import base64
from contextlib import closing
from pathlib import Path

import pyarrow as pa
from litestar.testing import TestClient
from pytoniq_core import Builder, Cell

from tests.api.v2.conftest import Asker
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.ingest.decode.block.block import decode_bundles
from tonlake.ingest.decode.cell.boc import parse_boc
from tonlake.ingest.decode.cell.packed import pack_cell
from tonlake.ingest.source.node.source import open_node
from tonlake.lake.commit.commit import Network, commit_range
from tonlake.lake.schema import TABLES

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
            commit_range(
                tmp_path,
                tables,
                first_mc_seqno=seqno,
                last_mc_seqno=seqno,
                day="2026-11-21",
                source=source.describe(),
                network=Network(-1414),
            )
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        ask = asker(client)
        wanted = [cell.hash.hex() for cell in (TAKEN_BACK, KEPT, KEPT, Builder().end_cell())]
        (found,) = ask("getLibraries", libraries=wanted)["result"]
        assert found["@type"] == "smc.libraryEntry"
        assert base64.b64decode(found["hash"]) == KEPT.hash
        assert Cell.one_from_boc(base64.b64decode(found["data"])).hash == KEPT.hash
        before = ask("getLibraries", libraries=wanted, snapshot=1)["result"]
        assert [base64.b64decode(row["hash"]) for row in before] == [TAKEN_BACK.hash, KEPT.hash]

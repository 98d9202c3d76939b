"""Version 2 over a network of 2026: Simplex signatures, blocks of one second, an older TVM."""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from litestar.testing import TestClient

from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.settings import Settings
from tonlake.ingest.decode.block.simplex import write_candidate
from tonlake.ingest.run.pipeline import ingest
from tonlake.ingest.source.node.source import open_node
from tonlake.ingest.span import Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.api.v2.conftest import Asker

WHERE = {"workchain": -1, "shard": -(1 << 63)}


@pytest.fixture(scope="module")
def ask(newest_lake: Path, asker: type[Asker]) -> Iterator[Asker]:
    with TestClient(create_app(newest_lake, PATIENT)) as client:
        yield asker(client)


def test_simplex_signatures(ask: Asker, shared: Path) -> None:
    expected = json.loads((shared / "node-2026" / "expected.json").read_text())["signatures"]
    for seqno, wanted in expected.items():
        found = ask("getMasterchainBlockSignatures", seqno=seqno)
        assert found["@type"] == "blocks.blockSignatures.simplex"
        assert found["id"] == ask("lookupBlock", **WHERE, seqno=seqno)
        assert base64.b64decode(found["session_id"]).hex() == wanted["session_id"]
        assert found["slot"] == wanted["slot"]
        assert base64.b64decode(found["candidate"]) == write_candidate(wanted["candidate"])
        (one,) = found["signatures"]
        assert one["signature"] == wanted["sig0"]
        assert base64.b64decode(one["node_id_short"]).hex() == wanted["node0"]


def test_the_first_block_of_a_second(
    ask: Asker, asker: type[Asker], newest_node: Path, shared: Path, tmp_path: Path
) -> None:
    path = shared / "node-2026" / "expected-blocks.jsonl.gz"
    rows = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    times = {row["seqno"]: row["gen_utime"] for row in rows if row["workchain"] == -1}
    second = next(seqno for seqno in range(100, 200) if times[seqno] == times[seqno - 1])
    for seqno in range(second - 3, second + 9):
        first = min(each for each in times if times[each] >= times[seqno])
        assert ask("lookupBlock", **WHERE, unixtime=times[seqno])["seqno"] == first
    with closing(open_node(newest_node, proofs=True)) as source:
        ingest(source, tmp_path, Span(second, second + 20), Settings())
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        part = asker(client)
        refused = part.refused("lookupBlock", **WHERE, unixtime=times[second])
        assert refused[1].endswith("ts not in db")
        later = next(seqno for seqno in range(second, second + 20) if times[seqno] > times[second])
        assert part("lookupBlock", **WHERE, unixtime=times[later])["seqno"] == later


@pytest.mark.usefixtures("tvm")
def test_an_older_tvm_is_named(ask: Asker, shared: Path) -> None:
    path = shared / "node-2026" / "expected-contracts.json.gz"
    recorded = json.loads(gzip.decompress(path.read_bytes()))["second"]
    params = {"address": recorded["tolk_jetton_minter"]["address"], "stack": []}
    answer = ask.client.post("/api/v2/runGetMethod", json=params | {"method": "get_jetton_data"})
    assert answer.status_code == 503
    assert "tonpy) supports global version 11, and the network has 15" in answer.json()["error"]
    wallet = {"address": recorded["v4r2_1"]["address"], "method": "seqno", "stack": []}
    assert ask.post("runGetMethod", **wallet)["exit_code"] == 0

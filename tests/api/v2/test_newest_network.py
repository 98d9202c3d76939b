"""Version 2 over a network of 2026: Simplex signatures, blocks of one second, get-methods."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar.testing import TestClient

from tests.api.v2.conftest import Asker
from tests.conftest import read_lines
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.settings import Settings
from tonlake.api.text.encoding import encode_legacy
from tonlake.ingest.derive.tvm.call import StackLimits
from tonlake.ingest.derive.tvm.machine.vmstack import read_stack
from tonlake.ingest.source.liteserver.query import write_candidate

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
    rows = read_lines(path)
    times = {row["seqno"]: row["gen_utime"] for row in rows if row["workchain"] == -1}
    second = next(seqno for seqno in range(100, 200) if times[seqno] == times[seqno - 1])
    for seqno in range(second - 3, second + 9):
        first = min(each for each in times if times[each] >= times[seqno])
        assert ask("lookupBlock", **WHERE, unixtime=times[seqno])["seqno"] == first
    ingest_node(newest_node, tmp_path, Settings(), second, second + 20, proofs=True)
    with TestClient(create_app(tmp_path, PATIENT)) as client:
        part = asker(client)
        refused = part.refused("lookupBlock", **WHERE, unixtime=times[second])
        assert refused[1].endswith("ts not in db")
        later = next(seqno for seqno in range(second, second + 20) if times[seqno] > times[second])
        assert part("lookupBlock", **WHERE, unixtime=times[later])["seqno"] == later


NO_ACCOUNT = -256
LIMITS = StackLimits(entries=8000, depth=100, boc_bytes=16 << 20)


@pytest.mark.parametrize("moment", ["first", "second"])
def test_get_methods_equal_those_of_the_lite_server(ask: Asker, shared: Path, moment: str) -> None:
    """Exit code and stack of every recorded get-method, at the block that it was asked at."""
    path = shared / "node-2026" / "expected-contracts.json.gz"
    recorded = json.loads(gzip.decompress(path.read_bytes()))[moment]
    count = 0
    for contract in recorded.values():
        for method, wanted in contract["get"].items():
            if wanted["exit_code"] == NO_ACCOUNT:
                continue
            asked = {"address": contract["address"], "method": method, "stack": []}
            found = ask.post("runGetMethod", **asked, seqno=wanted["mc"])
            if "boc" in wanted:
                values = read_stack(base64.b64decode(wanted["boc"]), LIMITS)
            else:  # a seqno, as text
                values = tuple(json.loads(wanted["stack"]))
            stack = [encode_legacy(value) for value in values]
            assert (found["exit_code"], found["stack"]) == (wanted["exit_code"], stack), method
            count += 1
    assert count > 20

"""Get-methods as the lite servers of two networks answered: one of each kind, all if long."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.api.recorded import RecordedCall, list_calls, read_recorded, read_typed
from tests.conftest import unpack
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app

pytestmark = pytest.mark.usefixtures("tvm")

SECOND = ("node/celldb-v2/localnet-celldbv2", 440)
NETWORKS = [("node/localnet-db", 705), SECOND]


def check(client: TestClient[Any], what: str, call: RecordedCall) -> None:
    body, answer = call
    found = client.post("/api/v2/runGetMethodStd", json=body).json()
    assert found["ok"], (what, found)
    result = found["result"]
    assert result["exit_code"] == answer["exit_code"], what
    assert [read_typed(entry) for entry in result["stack"]] == read_recorded(answer), what


def read_calls(folder: Path) -> list[tuple[str, RecordedCall]]:
    return list(list_calls(json.loads((folder / "expected.json").read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    ("name", "count", "every"),
    [(*SECOND, False), *(pytest.param(*one, True, marks=pytest.mark.long) for one in NETWORKS)],
)
def test_calls(
    shared: Path, ingest_network: Callable[[str], Path], name: str, count: int, *, every: bool
) -> None:
    """All of them, or one of each kind."""
    lake_dir = ingest_network(name)
    calls = read_calls((shared / name).parent)
    assert len(calls) == count
    kinds = dict(calls)
    assert len(kinds) > 20
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        for what, call in calls if every else kinds.items():
            check(client, what, call)


def test_a_lake_that_begins_in_the_middle(shared: Path, tmp_path: Path) -> None:
    """A library published before the lake begins is not said to be missing."""
    packed = shared / f"{SECOND[0]}.tar.zst"
    lake_dir = tmp_path / "lake"
    ingest_node(unpack(packed, tmp_path / "node"), lake_dir, PATIENT, 99)  # a key block
    calls = dict(read_calls(packed.parent))
    with TestClient(create_app(lake_dir, PATIENT)) as client:
        body, _answer = calls["multisig_order_v2 get_order_data"]
        for path in ("/api/v2/runGetMethodStd", "/api/v3/runGetMethod"):
            refused = client.post(path, json=body)
            assert refused.status_code == 500
            assert refused.json()["error"].startswith(
                "LITE_SERVER_ERROR: state already gc'd: the lake covers masterchain 99..694, "
                "and library 6305a8061c856c2ccf05dcb0df5815c71475870567cab5f049e340bcf59251f3"
            )
        check(client, "wallet_v4r2 seqno", calls["wallet_v4r2 seqno"])

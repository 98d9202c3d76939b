"""A network with a global version that no engine supports: nothing is silent about it."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from litestar.testing import TestClient

from tests import commands
from tests.ingest.derive.contract.test_unanswered import replace_version
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.settings import Settings
from tonlake.ingest.derive.stages import rebuild
from tonlake.ingest.derive.tvm.machine.run import VERSION
from tonlake.ingest.derive.tvm.support import LIBRARY_MISSING
from tonlake.lake.commit.rewrite import commit_derived
from tonlake.lake.file.rows import read_rows
from tonlake.lake.log.place import Derivation, NewFile, list_files, read_place
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.log.state import LogState
from tonlake.lake.schema import CONFIG_PARAMS, TABLES, UNANSWERED_METHODS
from tonlake.lake.unanswered import Unanswered, count_unanswered

LISTS = ("jetton/masters", "jetton/wallets", "nft/collections", "nft/items", "jetton/transfers")
REASON = "an engine supports 15"


def rewrite(lake_dir: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Replace the file of a table, or add one at the place of the accounts' states."""

    def derive(state: LogState) -> Derivation:
        old = list_files(state, table)
        (place,) = {read_place(file.path) for file in list_files(state, "account_states")}
        rows = [read_rows(lake_dir, file) for file in old] or [TABLES[table].empty]
        new = NewFile(table, place, change(pa.concat_tables(rows)))
        return Derivation([new], frozenset(file.path for file in old))

    assert commit_derived(lake_dir, Settings().lake, derive) is not None


@pytest.fixture(scope="module")
def newer_lake(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo lake with a made-up configuration of version 99."""
    lake_dir: Path = shutil.copytree(demo_lake, tmp_path_factory.mktemp("newer") / "lake")
    rewrite(lake_dir, CONFIG_PARAMS.name, lambda rows: replace_version(rows, 99))
    return lake_dir


@pytest.fixture(scope="module")
def unanswered_lake(newer_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a jetton wallet of which the get-method could not be run."""
    lake_dir: Path = shutil.copytree(newer_lake, tmp_path_factory.mktemp("unanswered") / "lake")
    row = {"workchain": 0, "account": bytes(32), "mc_seqno": 5, "lt": 1, "utime": 1}
    row |= {"method": "get_wallet_data", "contract_table": "jetton_wallets", "reason": REASON}
    row |= {"asked_workchain": 0, "asked": bytes(32), "asked_method": "get_wallet_data"}
    made = pa.Table.from_pylist([row], schema=UNANSWERED_METHODS.arrow)
    rewrite(lake_dir, UNANSWERED_METHODS.name, lambda _none: made)
    return lake_dir


@pytest.fixture(scope="module")
def client(newer_lake: Path) -> Iterator[TestClient[Any]]:
    with TestClient(create_app(newer_lake, PATIENT)) as made:
        yield made


def replace_reason(rows: pa.Table, reason: str) -> pa.Table:
    """Return unanswered get-methods with another reason."""
    made = [row | {"reason": reason} for row in rows.to_pylist()]
    return pa.Table.from_pylist(made, schema=rows.schema)


def run(*words: object) -> tuple[int, str]:
    done = commands.run(*words)
    return done.exit_code, done.output


def test_status_says_it(newer_lake: Path, demo_lake: Path) -> None:
    code, text = run("status", "--lake", newer_lake)
    assert code == 0
    assert "the network has global version 99, and get-methods by" in text
    found = json.loads(run("status", "--lake", newer_lake, "--json")[1])["versions"]
    assert found["network"] == 99
    assert "upgrade tonlake" in found["gap"]
    assert {each["use"] for each in found["engines"]} == {"get-methods", "emulation"}
    assert "Global version: network 11; get-methods" in run("status", "--lake", demo_lake)[1]


def test_the_doctor_says_it(newer_lake: Path) -> None:
    code, text = run("doctor", "--lake", newer_lake, "--json")
    assert code == 3
    (found,) = (one for one in json.loads(text)["findings"] if one["subject"] == "global version")
    assert found["level"] == "warning"
    assert "the network has global version 99" in found["text"]
    assert "emulator_library" in found["advice"]


def test_readiness_and_metrics_say_it(client: TestClient[Any]) -> None:
    ready = client.get("/readyz").json()["versions"]
    assert ready["network"] == 99
    assert "upgrade tonlake" in ready["gap"]
    lines = client.get("/metrics").text.splitlines()
    assert "tonlake_network_global_version 99.0" in lines
    assert any(line.startswith("tonlake_engine_global_version{") for line in lines)


@pytest.mark.parametrize("path", LISTS)
def test_lists_of_contracts_say_it(client: TestClient[Any], path: str) -> None:
    warning = client.get(f"/api/v3/{path}").headers["x-tonlake-warning"]
    assert "contracts may be missing: the network has global version 99" in warning


def test_other_lists_do_not(client: TestClient[Any]) -> None:
    for path in ("transactions", "accountStates?address=" + "0" * 64):
        headers = client.get(f"/api/v3/{path}").headers
        assert "global version" not in headers.get("x-tonlake-warning", "")


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize("version", [2, 3])
def test_fees_of_an_older_emulator_say_so(client: TestClient[Any], version: int) -> None:
    asked = {"address": f"0:{'5' * 64}", "body": "te6cckEBAQEAAgAAAEysuc0="}
    found = client.post(f"/api/v{version}/estimateFee", json=asked)
    assert found.status_code == 200, found.text
    warning = found.headers["x-tonlake-warning"]
    assert warning.startswith("fees may differ from those of the network: tonpy supports global")
    assert "the network has 99" in warning


def test_an_unanswered_get_method_is_listed(unanswered_lake: Path) -> None:
    wanted = Unanswered("jetton_wallets", "get_wallet_data", REASON, 1)
    assert count_unanswered(open_snapshot(unanswered_lake)) == [wanted]
    text = run("status", "--lake", unanswered_lake)[1]
    assert "Unanswered: get_wallet_data of 1 states that may belong to jetton_wallets" in text
    status = json.loads(run("status", "--lake", unanswered_lake, "--json")[1])
    assert status["unanswered_methods"] == [msgspec.to_builtins(wanted)]
    findings = json.loads(run("doctor", "--lake", unanswered_lake, "--json")[1])["findings"]
    assert any(REASON in one["text"] for one in findings if one["subject"] == "get-methods")


def test_lists_that_it_could_belong_to_say_so(unanswered_lake: Path) -> None:
    with TestClient(create_app(unanswered_lake, PATIENT)) as client:
        for path in ("jetton/wallets", "jetton/transfers", "jetton/burns"):
            warning = client.get(f"/api/v3/{path}").headers["x-tonlake-warning"]
            assert f"get-methods of 1 states could not be run; {REASON}" in warning
        masters = client.get("/api/v3/jetton/masters").headers["x-tonlake-warning"]
        assert REASON not in masters
        actions = client.get("/api/v3/actions").headers["x-tonlake-warning"]
        assert actions.startswith("actions may have general types: get-methods of 1 states could")
        page = client.get(f"/nft/0:{'11' * 32}")
        assert page.status_code == 404
        assert "contracts may be missing: the network has global version 99" in page.text
        metrics = client.get("/metrics").text
        assert 'tonlake_unanswered_methods{table="jetton_wallets"} 1.0' in metrics


@pytest.mark.parametrize(
    ("reason", "is_retried"),
    [
        ("the process ended", True),
        (f"tonlake supports global version {VERSION - 1}, and the network has 99", True),
        (f"tonlake supports global version {VERSION}, and the network has 99", False),
        (LIBRARY_MISSING, False),
    ],
)
def test_an_upgrade_tries_what_an_earlier_engine_could_not(
    unanswered_lake: Path, tmp_path: Path, reason: str, *, is_retried: bool
) -> None:
    lake_dir: Path = shutil.copytree(unanswered_lake, tmp_path / "lake")
    rewrite(lake_dir, UNANSWERED_METHODS.name, lambda rows: replace_reason(rows, reason))
    code, text = run("upgrade", "--lake", lake_dir)
    assert code == 0
    assert ("contracts found" in text) == is_retried
    assert bool(count_unanswered(open_snapshot(lake_dir))) != is_retried


def test_a_rebuild_tries_again(unanswered_lake: Path, tmp_path: Path) -> None:
    lake_dir: Path = shutil.copytree(unanswered_lake, tmp_path / "lake")
    assert rebuild("contracts", lake_dir, Settings()) is not None
    assert count_unanswered(open_snapshot(lake_dir)) == []

"""Fixtures shared by the whole suite: the demo node database and the reference data.

Fixtures import what they use: a unit test of an inner room loads nothing else of the product.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import shutil
import ssl
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.s3 import S3Server
    from tonlake.ingest.blocks import McBundle


ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "tests" / "data" / "node-demo"
LONGEST = (
    "crash/",
    "clients/",
    "notebooks/",
    "api/sql/",
    "api/scan/",
    "ingest/run/",
    "ingest/dataset/",
    "queries/",
    "test_",
)
"""What takes a worker long: begun last, it would keep the other one waiting."""

# Results must depend neither on machine speed nor on luck: every run uses the same examples.
# `pytest --hypothesis-profile=luck` draws four times as many random ones.
settings.register_profile(
    "luck",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "suite",
    settings.get_profile("luck"),
    max_examples=25,
    derandomize=True,
    database=None,
    print_blob=True,
)
settings.load_profile("suite")


def _sync_nothing(*_descriptor: int) -> None:
    """Wait for no disk: `tests/crash/disk.py` proves what is synced, and no test loses power."""


for _name in ("os.fsync", "os.sync"):
    mock.patch(_name, _sync_nothing).start()

# The certificates of the machine are read once: each client of httpx takes 20 ms for them.
_new, _once = ssl.create_default_context, cache(ssl.create_default_context)
mock.patch.object(ssl, _new.__name__, lambda *to, **at: (_once if at else _new)(*to, **at)).start()

# What was compiled once is kept, whatever the environment says: tests start many processes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Test servers are local, so requests to them must bypass any proxy of the environment.
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = ",".join(filter(None, (os.environ.get(_name), "127.0.0.1", "localhost")))
for _name in ("all_proxy", "ALL_PROXY"):
    os.environ.pop(_name, None)


PLAIN = str(ROOT / "tests" / "plain")
"""Hides pandas from tests and from the processes that they start: 0.3 s of CPU for each."""

if PLAIN not in sys.path:  # the workers of a run find it in the environment
    sys.path.insert(0, PLAIN)
    os.environ["PYTHONPATH"] = os.pathsep.join([PLAIN, *filter(None, [os.getenv("PYTHONPATH")])])


PATIENT = ("api/", "crash/", "ingest/derive/", "ingest/run/", "queries/")
"""Rooms whose tests run get-methods or ask an upstream."""


def _place(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/")


def pytest_sessionstart() -> None:
    gc.disable()  # until tests are collected; programs that import this module keep it


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow tests first; have those wait long that wait for other processes."""
    items.sort(key=lambda item: not _place(item).startswith(LONGEST))
    for item in items:
        if isinstance(item, pytest.Function) and _place(item).startswith(PATIENT):
            item.fixturenames.insert(0, "patience")


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and never what modules have made: it took a tenth of all CPU."""
    gc.freeze()
    gc.set_threshold(300_000, 2, 3)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Let the modules go as they are used to."""
    gc.unfreeze()


def unpack(archive: Path, target: Path) -> Path:
    """Unpack a ``.tar.zst`` node database and return its ``db`` folder."""
    import pyarrow as pa

    with (
        pa.input_stream(str(archive), compression="zstd") as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        tar.extractall(target, filter="data")
    return find_node(target)


def find_node(folder: Path) -> Path:
    """Return the ``db`` folder below an unpacked archive."""
    return min(path.parents[1] for path in folder.rglob("globalindex") if path.is_dir())


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder for reading, which the first of all workers of a run makes."""
    base = factory.getbasetemp()
    home = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    target = home / name
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            half = target.with_name(f"{name}.half")
            make(half)
            half.rename(target)
    return target


def ingest_all(node: Path, lake_dir: Path, *ends: int) -> None:
    """Ingest all blocks of a node, or those from one to another, with its proofs."""
    from tests.ingest.whole import ingest_node
    from tonlake.api.settings import Settings

    ingest_node(node, lake_dir, Settings(), *ends, proofs=True)


@pytest.fixture(scope="session")
def patience() -> Iterator[None]:
    """Long timeouts, since the machine may be busy; tests of timeouts set their own."""
    from tonlake.api.chain import upstream
    from tonlake.ingest.derive.tvm import pool

    with (
        mock.patch.object(pool, "WAIT_MS", 60_000),
        mock.patch.object(upstream, "TIMEOUT_MS", 60_000),
    ):
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """What runs tests that are coroutines: the event loop of the product, not of others."""
    return "asyncio"


@pytest.fixture(scope="session")
def demo_facts() -> Path:
    """Folder with the demo node's expected facts (``expected*.json[l]``, zero states)."""
    return DEMO


@pytest.fixture(scope="session")
def demo_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo node's database folder, unpacked once per session."""
    return unpack(DEMO / "demo-node.tar.zst", tmp_path_factory.mktemp("demo-node"))


@pytest.fixture(scope="session")
def bundles(demo_node: Path) -> list[McBundle]:
    """All bundles of the demo node, in order."""
    from tonlake.ingest.source.node.source import open_node

    with closing(open_node(demo_node)) as source:
        return [source.read_bundle(seqno) for seqno in range(1, source.last_mc_seqno() + 1)]


def lend(lake_dir: Path) -> Iterator[Path]:
    """Give a lake for reading, and fail at the end if a test wrote into it."""

    def list_files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in lake_dir.rglob("*") if path.is_file()}

    before = list_files()
    yield lake_dir
    changed = {str(path) for path, _ in before.items() ^ list_files().items()}
    assert not changed, f"a test wrote into a lake that others read: {changed}"


@pytest.fixture(scope="session")
def demo_lake(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A read-only lake of the whole demo node, zero state included."""
    made = make_once(tmp_path_factory, "demo-made", partial(ingest_all, demo_node))
    folder = tmp_path_factory.mktemp("demo-lake")
    yield from lend(shutil.copytree(made, folder, dirs_exist_ok=True))


@pytest.fixture(scope="session")
def cut_lake(demo_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A read-only lake that begins in the middle, without the state before."""
    lake_dir = tmp_path_factory.mktemp("cut") / "lake"
    ingest_all(demo_node, lake_dir, 101, 110)
    yield from lend(lake_dir)


@pytest.fixture(scope="session")
def indexed(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The demo lake with its index; only for reading."""
    from tonlake.lake.index.builder.rebuild import rebuild_index

    def make(folder: Path) -> None:
        rebuild_index(shutil.copytree(demo_lake, folder))

    yield from lend(make_once(tmp_path_factory, "indexed-made", make))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data beside the checkout; tests that need it are skipped without it."""
    folder = ROOT.parent / "shared"
    if not (folder / "data" / "manifest.json").exists():
        pytest.skip("reference data (../shared/data) is not on this machine")
    return folder


@pytest.fixture(scope="session")
def ingest_network(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the lake of a genuine network of the reference data; only for reading."""

    def bring(name: str) -> Path:
        packed = shared / f"{name}.tar.zst"
        node = find_node(make_once(tmp_path_factory, packed.name, partial(unpack, packed)))
        return make_once(tmp_path_factory, f"{packed.name}.lake", partial(ingest_all, node))

    return bring


@pytest.fixture(scope="session")
def newest_node(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a network of 2026: version 15, Simplex, contracts of the Tolk compiler."""
    archive = shared / "node-2026" / "localnet4-db.tar.zst"
    if not archive.exists():
        pytest.skip("the network of 2026 (../shared/node-2026) is not on this machine")
    return find_node(make_once(tmp_path_factory, "newest-node", partial(unpack, archive)))


@pytest.fixture(scope="session")
def newest_lake(newest_node: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A read-only lake of that network."""
    return make_once(tmp_path_factory, "newest-lake", partial(ingest_all, newest_node))


@pytest.fixture
def pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test and its processes have pandas."""
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != PLAIN])
    paths = os.environ["PYTHONPATH"].split(os.pathsep)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(each for each in paths if each != PLAIN))


@pytest.fixture(scope="session")
def tvm() -> None:
    """Skip tests that run get-methods where the optional TVM package is not installed."""
    if find_spec("tonpy") is None:
        pytest.skip("no TVM is installed (extra [tvm])")


@dataclass(frozen=True)
class Facts:
    """The contents of a node database, as reported by its own lite server."""

    blocks: list[dict[str, Any]]
    transactions: list[dict[str, Any]]
    accounts: list[dict[str, Any]]
    summary: dict[str, Any]

    def __repr__(self) -> str:
        """Return a short text: Hypothesis prints every argument of a failing test."""
        return f"<{len(self.transactions)} transactions>"

    def history(self, workchain: int, account: str) -> list[dict[str, Any]]:
        """Return the transactions of an account, newest first."""
        found = [
            row
            for row in self.transactions
            if (row["workchain"], row["account"]) == (workchain, account)
        ]
        return sorted(found, key=lambda row: -row["lt"])


def read_lines(path: Path) -> list[Any]:
    """Return the objects of a file of JSON lines, which may be compressed."""
    import pyarrow as pa

    with pa.input_stream(str(path)) as stream:
        return [json.loads(line) for line in stream.read().splitlines()]


@pytest.fixture(scope="session")
def pairs(shared: Path) -> list[dict[str, Any]]:
    """Transactions of the main network, each as cells and as the public service shows it."""
    return read_lines(shared / "data" / "tx_pairs" / "v3_tx_pairs.jsonl.zst")


@pytest.fixture(scope="session")
def facts(demo_facts: Path) -> Facts:
    """Facts about the demo node."""
    return Facts(
        blocks=read_lines(demo_facts / "expected-blocks.jsonl"),
        transactions=read_lines(demo_facts / "expected-transactions.jsonl"),
        accounts=read_lines(demo_facts / "expected-accounts.jsonl"),
        summary=json.loads((demo_facts / "expected.json").read_text(encoding="utf-8")),
    )


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A local S3 server."""
    from tests.s3 import S3Server

    with S3Server().running() as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The environment variables that select the S3 server, which has a bucket ``lakes``."""
    import httpx

    from tests.s3 import CREDENTIALS

    for name, value in (CREDENTIALS | {"AWS_ENDPOINT_URL": s3_server.endpoint}).items():
        monkeypatch.setenv(name, value)
    httpx.put(f"{s3_server.endpoint}/lakes")
    s3_server.requests.clear()
    return s3_server


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """An Apache Spark session on two cores; skipped where Spark or Java is missing."""
    missing = [name for name in ("pyspark", "sqlglot") if find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (extra [spark])")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("no Java on this machine (Debian: openjdk-17-jre-headless)")
    from tonlake.lake.spark.tables import open_session

    with open_session("local[2]", {"spark.sql.shuffle.partitions": "1"}) as session:
        yield session

"""A pruned lake gives the same answers about later blocks, and claims nothing about others."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from litestar.testing import TestClient

from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.lake.duck.connection import connect
from tonlake.lake.index.builder.rebuild import rebuild_index
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.maintenance.removal import prune_lake
from tonlake.lake.maintenance.verify import verify_lake
from tonlake.lake.settings import LakeSettings

BORDERS = (12, 111, 137)
LARGER_BORDERS = (500, 961, 1500)
MOST = 12
"""Of accounts, traces and so on that are asked about."""

SETTINGS = LakeSettings()
NEVER_SEEN = "0:" + "AB" * 32
ALL = "limit=1000"
METHODS = ("seqno", "get_jetton_data", "get_wallet_data", "get_nft_data")
OF_ACCOUNTS = (
    *("v3/accountStates?include_boc=true&address=", "v3/walletStates?address="),
    *("v3/addressInformation?address=", "v3/metadata?address=", "v3/addressBook?address="),
    *("v3/jetton/wallets?owner_address=", "v3/nft/items?owner_address="),
    *("v3/jetton/masters?address=", "v3/dns/records?wallet="),
    *("v2/getAddressInformation?address=", "v2/getExtendedAddressInformation?address="),
    *("v2/getWalletInformation?address=", "v2/getTokenData?address="),
)
LISTS = (
    *(f"v3/jetton/masters?{ALL}", f"v3/jetton/wallets?{ALL}", f"v3/nft/collections?{ALL}"),
    *(f"v3/nft/items?{ALL}", f"v3/topAccountsByBalance?{ALL}"),
    *("v2/getMasterchainInfo", "v2/getConfigAll", "v2/getOutMsgQueueSizes"),
)
OF_BLOCKS = (
    *("v3/transactions?limit=1000&mc_seqno=", "v3/blocks?mc_seqno=", "v3/traces?mc_seqno="),
    *("v3/actions?mc_seqno=", "v3/masterchainBlockShards?seqno=", "v2/shards?seqno="),
    *("v2/getConfigAll?seqno=", "v2/getMasterchainBlockSignatures?seqno="),
    "v2/getBlockHeader?workchain=-1&shard=-9223372036854775808&seqno=",
)
SPANS = ("transactions", "messages", "traces", "actions", "blocks")
MOVES = ("jetton/transfers", "jetton/burns", "nft/transfers")


class Lake(NamedTuple):
    """A lake that is asked through its API, and between which blocks it is asked."""

    client: TestClient[Any]
    border: int
    last: int

    def get(self, path: str) -> tuple[int, Any]:
        """Return status and body, without what names the moment."""
        answer = self.client.get(f"/api/{path}")
        body = answer.json()
        if isinstance(body, dict):
            body.pop("@extra", None)
        return answer.status_code, body

    def run(self, address: str, method: str, **more: int) -> tuple[int, Any]:
        """Return status and body of a get-method."""
        asked = {"address": address, "method": method, "stack": [], **more}
        answer = self.client.post("/api/v2/runGetMethod", json=asked)
        body = answer.json()
        body.pop("@extra", None)
        return answer.status_code, body


class Pair(NamedTuple):
    """A lake, and its copy that was pruned; with the rows of the former to ask about."""

    whole: Lake
    pruned: Lake
    rows: dict[str, list[str]]


@pytest.fixture(scope="module")
def localnet(
    ingest_network: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A larger network, with libraries, multisigs and vesting, and with its index."""
    made = ingest_network("node/localnet-db")
    lake = shutil.copytree(made, tmp_path_factory.mktemp("localnet") / "lake")
    rebuild_index(lake)
    return lake


@pytest.fixture(
    scope="module",
    params=[
        ("indexed", BORDERS[-1]),
        *(pytest.param(("indexed", at), marks=pytest.mark.long) for at in BORDERS[:-1]),
        *(pytest.param(("localnet", at), marks=pytest.mark.long) for at in LARGER_BORDERS),
    ],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Prune a copy of a lake."""
    source: Path = request.getfixturevalue(request.param[0])
    border: int = request.param[1]
    copy = shutil.copytree(source, tmp_path_factory.mktemp("pruned") / "lake")
    assert prune_lake(copy, border, SETTINGS).bytes_freed > 0
    assert not verify_lake(copy).damage
    last = open_snapshot(source).last_mc_seqno
    with ExitStack() as stack:
        whole, pruned = (
            Lake(stack.enter_context(TestClient(create_app(lake, PATIENT))), border, last)
            for lake in (source, copy)
        )
        yield Pair(whole, pruned, read_rows(source, border))


QUESTIONS = {
    "accounts": "select distinct ton_address(workchain, account) from account_states",
    "traces": "select lower(hex(trace_id)) from traces where mc_seqno_end >= $border",
    "transactions": "select lower(hex(hash)) from transactions where mc_seqno >= $border",
    "messages": """
        select lower(hex(msg_hash)) from messages group by all having min(mc_seqno) >= $border
    """,
    "lt": "select min(start_lt)::varchar from blocks where mc_seqno = $border + 2",
    "begin": "select min(gen_utime)::varchar from blocks where mc_seqno = $border",
    "utime": "select min(gen_utime)::varchar from blocks where mc_seqno = $border + 4",
}


def read_rows(lake: Path, border: int) -> dict[str, list[str]]:
    with connect(open_snapshot(lake), statement=" ".join(QUESTIONS.values())) as connection:
        found = {}
        for name, text in QUESTIONS.items():
            asked = {"border": border} if "$border" in text else {}
            found[name] = sorted(row[0] for row in connection.execute(text, asked).fetchall())
        return found


def sample(rows: list[str]) -> list[str]:
    """Return some of many, evenly."""
    return rows[:: max(1, len(rows) // MOST)]


def check(pair: Pair, *paths: str) -> None:
    for path in paths:
        status, body = pair.whole.get(path)
        assert (status, body) == pair.pruned.get(path), path


def test_accounts_and_what_they_are(pair: Pair) -> None:
    for address in (*sample(pair.rows["accounts"]), NEVER_SEEN):
        check(pair, *(f"{path}{address}" for path in OF_ACCOUNTS))
        at = f"v2/getAddressInformation?address={address}&seqno="
        check(pair, f"{at}{pair.whole.border}", f"{at}{pair.whole.last}")
    check(pair, *LISTS)


@pytest.mark.usefixtures("tvm")
def test_get_methods_of_accounts_last_changed_before_the_border(pair: Pair) -> None:
    ended = set()
    for address in sample(pair.rows["accounts"]):
        for method in METHODS:
            for at in ({}, {"seqno": pair.whole.border}):
                found = pair.whole.run(address, method, **at)
                assert pair.pruned.run(address, method, **at) == found, (address, method)
                ended.add(found[1].get("result", {}).get("exit_code"))
    assert 0 in ended


def test_traces_transactions_and_messages(pair: Pair) -> None:
    for trace_id in sample(pair.rows["traces"]):
        check(pair, f"v3/traces?trace_id={trace_id}&include_actions=true")
        check(pair, f"v3/actions?trace_id={trace_id}")
    for tx_hash in sample(pair.rows["transactions"]):
        check(pair, f"v3/transactions?hash={tx_hash}", f"v3/traces?tx_hash={tx_hash}")
    for msg_hash in sample(pair.rows["messages"]):
        check(pair, f"v3/messages?msg_hash={msg_hash}")
        check(pair, f"v3/transactionsByMessage?msg_hash={msg_hash}")


def test_blocks_and_spans(pair: Pair) -> None:
    for seqno in (*range(pair.whole.border, pair.whole.border + 8), pair.whole.last):
        check(pair, *(f"{path}{seqno}" for path in OF_BLOCKS))
    (lt,), (utime,) = pair.rows["lt"], pair.rows["utime"]
    for name in (*SPANS, *MOVES):
        for order in ("asc", "desc"):
            check(pair, f"v3/{name}?start_lt={lt}&limit=60&sort={order}")
            check(pair, f"v3/{name}?start_utime={utime}&limit=60&sort={order}")
    for address in sample(pair.rows["accounts"]):
        for name in ("transactions", "actions", "traces"):
            check(pair, f"v3/{name}?account={address}&start_lt={lt}")


def test_what_is_before_the_border_is_unknown(pair: Pair) -> None:
    covered = f"{pair.pruned.border}..{pair.pruned.last}"
    before, before_utime = pair.pruned.border - 1, int(pair.rows["begin"][0]) - 1
    for path in (
        "v3/transactions?mc_seqno=",
        "v3/traces?mc_seqno=",
        "v3/masterchainBlockShards?seqno=",
    ):
        status, body = pair.pruned.get(f"{path}{before}")
        assert status == 404, path
        assert covered in body["error"]
    status, body = pair.pruned.get(f"v2/shards?seqno={before}")
    assert (status, body["error"]) == (500, "LITE_SERVER_NOTREADY: seqno not in db")
    address = pair.rows["accounts"][0]
    status, body = pair.pruned.get(f"v2/getAddressInformation?address={address}&seqno={before}")
    assert (status, body["error"]) == (500, "LITE_SERVER_NOTREADY: seqno not in db")
    status, _body = pair.pruned.get(f"v2/getTransactions?address={NEVER_SEEN}")
    assert status == 500
    status, body = pair.pruned.get(f"v3/transactions?account={NEVER_SEEN}")
    assert status == 404
    assert covered in body["error"]
    for name in ("transactions", "messages", "traces", "actions", "jetton/transfers"):
        status, body = pair.pruned.get(f"v3/{name}?end_utime={before_utime}")
        assert status == 404, name
        assert "is not indexed" in body["error"]
    answer = pair.pruned.client.get("/api/v3/transactions?limit=1")
    assert covered in answer.headers["x-tonlake-warning"]

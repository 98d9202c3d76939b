"""The lakes of the shared networks, in the form of the data set and back."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from litestar.testing import TestClient

from tests.bench.mixture import SHARES, Mixture
from tests.ingest.dataset.generate import write_dataset
from tests.ingest.dataset.test_pipeline import LACKING, bring, compare, list_holes
from tests.ingest.whole import ingest_node
from tests.patience import PATIENT
from tonlake.api.app import create_app
from tonlake.api.settings import Settings
from tonlake.lake.index.builder.rebuild import rebuild_index

pytestmark = pytest.mark.long

CURRENCIES = dict.fromkeys(("actions", "action_accounts"), ("type", "value_extra_currencies"))
"""Transfers of extra currencies are transfers of TON, as the form has no extra currencies."""


ASKED = 3000
MORE = """
blocks?mc_seqno={block} masterchainBlockShards?seqno={block} traces?mc_seqno={block}
actions?mc_seqno={block} transactions?account={account}&end_lt={lt}&sort=asc
transactionsByMessage?opcode={opcode} adjacentTransactions?hash={transaction}
messages?source={account} messages?destination={account}&sort=asc dns/records?wallet={account}
addressInformation?address={account} walletInformation?address={account}
metadata?address={account} topAccountsByBalance?limit=50 jetton/masters?address={account}
jetton/wallets?address={account} jetton/wallets?jetton_address={account}
jetton/transfers?jetton_master={account} jetton/burns?address={account}
nft/items?collection_address={account} nft/collections?collection_address={account}
nft/transfers?item_address={account} nft/sales?address={account}
multisig/wallets?wallet_address={account} multisig/orders?address={account}
vesting?wallet_address={account}
"""
QUESTIONS = dict.fromkeys((path for path in SHARES if "/v3/" in path), 1)
QUESTIONS |= {f"/api/v3/{path}": 1 for path in MORE.split()}
UNKNOWN = {name for names in LACKING.values() for name in names}


def ask(lake: Path, paths: list[str]) -> list[tuple[str, int, Any]]:
    rebuild_index(lake)
    with TestClient(create_app(lake, PATIENT)) as client:
        answers = ((path, client.get(path)) for path in paths)
        return [(path, answer.status_code, drop(answer.json())) for path, answer in answers]


def drop(value: Any) -> Any:
    """Return an answer without the fields that the form does not determine."""
    if isinstance(value, list):
        return [drop(part) for part in value]
    if isinstance(value, dict):
        return {name: drop(part) for name, part in value.items() if name not in UNKNOWN}
    return "ton_transfer" if value == "extra_currency_transfer" else value


@pytest.mark.parametrize("name", ["main", "celldb-v2", "newest"])
def test_a_shared_network(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> None:
    is_newest = name == "newest"
    node = request.getfixturevalue("newest_node" if is_newest else "genuine")
    lake, imported = tmp_path / "lake", tmp_path / "imported"
    ingest_node(node if is_newest else node(name)[0], lake, Settings())
    reports = bring(write_dataset(lake, tmp_path / "dataset"), imported)
    assert list_holes(reports) == {}
    compare(lake, imported, more=CURRENCIES)
    paths = list(islice(Mixture(lake, seed=1, shares=QUESTIONS).paths(), ASKED))
    pairs = zip(ask(lake, paths), ask(imported, paths), strict=True)
    assert [pair for pair in pairs if pair[0] != pair[1]][:1] == []

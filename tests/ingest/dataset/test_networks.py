"""The lakes of the shared networks, in the form of the data set and back."""

from pathlib import Path

import pytest

from tests.ingest.dataset.generate import write_dataset
from tests.ingest.dataset.test_pipeline import bring, compare, list_holes
from tests.ingest.whole import ingest_node
from tonlake.api.settings import Settings

pytestmark = pytest.mark.long

CURRENCIES = dict.fromkeys(("actions", "action_accounts"), ("type", "value_extra_currencies"))
"""Transfers of extra currencies are transfers of TON, as the form has no extra currencies."""


@pytest.mark.parametrize("name", ["main", "celldb-v2", "newest"])
def test_a_shared_network(request: pytest.FixtureRequest, tmp_path: Path, name: str) -> None:
    is_newest = name == "newest"
    node = request.getfixturevalue("newest_node" if is_newest else "genuine")
    lake, imported = tmp_path / "lake", tmp_path / "imported"
    ingest_node(node if is_newest else node(name)[0], lake, Settings())
    reports = bring(write_dataset(lake, tmp_path / "dataset"), imported)
    assert list_holes(reports) == {}
    compare(lake, imported, more=CURRENCIES)

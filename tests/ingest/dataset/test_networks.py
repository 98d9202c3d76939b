"""The lakes of the shared networks, in the form of the data set and back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ingest.dataset.generate import write_dataset
from tests.ingest.dataset.test_pipeline import bring, compare, list_holes
from tests.ingest.whole import ingest_node
from tonlake.api.settings import Settings

pytestmark = pytest.mark.long

CURRENCIES = dict.fromkeys(("actions", "action_accounts"), ("type", "value_extra_currencies"))
"""Transfers of extra currencies are transfers of TON, as the form has no extra currencies."""


def check(node: Path, scratch: Path) -> None:
    lake, imported = scratch / "lake", scratch / "imported"
    ingest_node(node, lake, Settings())
    reports = bring(write_dataset(lake, scratch / "dataset"), imported)
    assert list_holes(reports) == {}
    compare(lake, imported, more=CURRENCIES)


@pytest.mark.parametrize("name", ["main", "celldb-v2"])
def test_a_network_of_2025(
    genuine: Callable[[str], tuple[Path, Path]], tmp_path: Path, name: str
) -> None:
    check(genuine(name)[0], tmp_path)


def test_the_network_of_2026(newest_node: Path, tmp_path: Path) -> None:
    check(newest_node, tmp_path)

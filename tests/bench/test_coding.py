"""Savings of compressed responses on the demo lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.coding import PAGES, measure_codings

if TYPE_CHECKING:
    from pathlib import Path


def test_codings_of_every_page_are_measured(demo_lake: Path) -> None:
    found = measure_codings(demo_lake)
    assert found.keys() == PAGES.keys()
    for figures in found.values():
        assert figures["bytes zstd"] < figures["bytes plain"] / 2
        assert figures["bytes gzip"] < figures["bytes plain"] / 2

"""Blocks newer than all runs: composed in memory, each a few times as the lake grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lake.lookup import opening
from lake.lookup.opening import open_lookups
from lake.settings import Settings
from lake.snapshot import open_snapshot
from tests.lake.chain import Chain, commit_chain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest

    from lake.lookup.run import Run

COMMITS = 17


def test_a_growing_lake_composes_each_commit_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    composed = 0
    real = opening.compose_run

    def count(lake_dir: Path, files: Any, mc_range: tuple[int, int]) -> Run:
        nonlocal composed
        composed += mc_range[1] - mc_range[0] + 1
        return real(lake_dir, files, mc_range)

    monkeypatch.setattr(opening, "compose_run", count)
    chain = Chain(3, accounts=2)
    for last in range(1, COMMITS + 1):
        commit_chain(tmp_path, chain, last, last)
        found = open_lookups(open_snapshot(tmp_path), Settings())
        assert found is not None
        assert list_blocks(found.runs) == list(range(1, last + 1))
        assert len(found.runs) < 16
    assert COMMITS < composed <= 3 * COMMITS  # few blocks of the chain have no transactions


def list_blocks(runs: Iterable[Run]) -> list[int]:
    """Return the masterchain blocks of runs, one run after another."""
    return [at for run in runs for at in range(run.first_mc_seqno, run.last_mc_seqno + 1)]

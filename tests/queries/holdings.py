"""Readers of a lake of jettons and NFTs: by look-ups alone, and by the named queries alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lake.lookup.opening import open_lookups
from lake.lookup.rebuild import rebuild_lookups
from lake.settings import Settings
from lake.snapshot import open_snapshot
from queries.reader import Reader
from tests.lake.holdings import Holdings, commit_holdings

if TYPE_CHECKING:
    import random
    from pathlib import Path

SETTINGS = Settings()
LAST, SEED = 6, 3


class Held(NamedTuple):
    """``by_runs`` cannot ask a query: its connection is closed."""

    by_runs: Reader
    by_queries: Reader
    accounts: list[tuple[int, bytes]]

    def draw_accounts(self, rng: random.Random, prefix: str) -> dict[str, list[Any]]:
        """Return the two parameters that list some of the accounts, or none of them."""
        chosen = rng.sample(self.accounts, rng.choice((0, 0, 1, 3)))
        column, ids = (
            ("workchains", "accounts")
            if prefix == "account"
            else (f"{prefix}_workchains", f"{prefix}s")
        )
        return {column: [one for one, _ in chosen], ids: [one for _, one in chosen]}


def open_held(lake_dir: Path, run_at: int | None) -> Held:
    """Commit block by block, with a run made after one of them."""
    for at in range(1, LAST + 1):
        commit_holdings(lake_dir, at, at, seed=SEED)
        if at == run_at:
            rebuild_lookups(lake_dir, SETTINGS)
    snapshot = open_snapshot(lake_dir)
    closed = snapshot.connect(tables=())
    closed.close()
    by_runs = Reader(snapshot, closed, lookups=open_lookups(snapshot, SETTINGS))
    return Held(by_runs, Reader(snapshot, snapshot.connect()), Holdings(SEED).accounts)

"""Readers of a lake of jettons and NFTs: by look-ups alone, and by the named queries alone."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

from lake.lookup.opening import open_lookups
from lake.lookup.rebuild import rebuild_lookups
from lake.settings import LakeSettings
from lake.snapshot import open_snapshot
from queries.reader import Reader
from tests.lake.holdings import Holdings, commit_holdings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = LakeSettings()
LAST, SEED, TRIES = 6, 3, 12


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


def check_pages(
    held: Held,
    name: str,
    draw: Callable[[random.Random, Held, str], dict[str, Any]],
    find: Callable[..., list[dict[str, Any]]],
) -> None:
    """Compare pages of drawn parameters with those of the named query."""
    rng = random.Random(name)  # noqa: S311 - a repeatable test
    sizes = set()
    for _ in range(TRIES):
        parameters = draw(rng, held, name)
        wanted = held.by_queries.rows(f"v3/{name}", **parameters)
        assert find(held.by_runs, name, **parameters) == wanted, parameters
        sizes.add(len(wanted))
    assert max(sizes) > 1


def open_held(lake_dir: Path, run_at: int | None) -> Held:
    """Commit block by block, with a run made after one of them."""
    for at in range(1, LAST + 1):
        commit_holdings(lake_dir, at, at, seed=SEED)
        if at == run_at:
            rebuild_lookups(lake_dir)
    snapshot = open_snapshot(lake_dir)
    closed = snapshot.connect(tables=())
    closed.close()
    by_runs = Reader(snapshot, closed, lookups=open_lookups(snapshot, SETTINGS))
    return Held(by_runs, Reader(snapshot, snapshot.connect()), Holdings(SEED).accounts)

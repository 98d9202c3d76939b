"""Random but valid rows of jettons and NFTs, of few accounts, so that accounts recur."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.lake.chain import FIRST_UTIME, LT_STEP, Chain, commit_made
from tests.lake.rows import make_value
from tonlake.lake.index.segment.declared import CONTRACTS, TRANSFERS
from tonlake.lake.schema import TABLES

Row = dict[str, Any]
WORKCHAIN = "_workchain"


class Holdings:
    """Generates rows of masterchain blocks; some accounts share their first bytes."""

    def __init__(self, seed: int) -> None:
        """Choose the accounts."""
        self.rng = random.Random(seed)  # noqa: S311 - no secret, but a seed
        self._seed = seed
        near = [bytes(8) + self.rng.randbytes(24) for _ in range(2)]
        far = [self.rng.randbytes(32) for _ in range(3)]
        self.accounts = [(0, near[0]), (-1, near[0]), (0, near[1]), *((0, one) for one in far)]
        self._contents = [f'{{"uri":"{number}"}}' for number in range(3)]

    def make(self, first: int, last: int) -> dict[str, pa.Table]:
        """Return rows of all indexed tables, which depend only on the seed and the first block."""
        self.rng.seed(f"{self._seed} {first}")
        return {
            name: pa.Table.from_pylist(
                [
                    self._make_row(name, account, mc_seqno)
                    for mc_seqno in range(first, last + 1)
                    for account in self.rng.sample(self.accounts, self.rng.randrange(4))
                ],
                schema=TABLES[name].arrow,
            )
            for name in (table.name for table in (*CONTRACTS, *TRANSFERS))
        }

    def _make_row(self, name: str, account: tuple[int, bytes], mc_seqno: int) -> Row:
        rng = self.rng
        row = {column.name: make_value(rng, column) for column in TABLES[name].columns}
        for column, value in tuple(row.items()):
            other = column.removesuffix(WORKCHAIN)
            if other != column:
                known = value is not None and row[other] is not None
                row[column], row[other] = rng.choice(self.accounts) if known else (None, None)
        row |= {
            "workchain": account[0],
            "account": account[1],
            "mc_seqno": mc_seqno,
            "lt": mc_seqno * LT_STEP + rng.choice((0, 0, 10)),
        }
        possible: dict[str, Callable[[], object]] = {
            "now": lambda: FIRST_UTIME + mc_seqno // 2 + rng.randrange(2),
            "balance": lambda: rng.choice((0, 1, 10**30)),
            "item_index": lambda: str(rng.randrange(12)),
            "kind": lambda: rng.choice(("getgems_sale", "telemint")),
            "content": lambda: rng.choice((None, *self._contents)),
        }
        return row | {column: make() for column, make in possible.items() if column in row}


def commit_holdings(lake_dir: Path, first: int, last: int, *, seed: int = 3) -> None:
    """Commit blocks with transactions and holdings, the same for the same seed and block."""
    for at in range(first, last + 1):
        made = Chain(seed + at).make(at, at)
        traces = _trace_each(made["transactions"])
        commit_made(lake_dir, at, at, made | Holdings(seed).make(at, at) | traces)


def _trace_each(transactions: pa.Table) -> dict[str, pa.Table]:
    """Make each transaction but the first a trace of its own."""
    columns = ("workchain", "account", "lt", "hash", "mc_seqno")
    rows = [row | {"trace_id": row["hash"]} for row in transactions.select(columns).to_pylist()]
    schema = TABLES["transaction_traces"].arrow
    return {"transaction_traces": pa.Table.from_pylist(rows[1:], schema=schema)}

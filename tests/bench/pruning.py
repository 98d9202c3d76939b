"""Compares filters on views with the same filters on their base tables, in CPU of this process.

    python -m tests.bench.pruning [LAKE] [--transactions N] [--rounds N]

Without LAKE, a lake of made-up transactions is written and removed. A ratio of 0.5 is twice the
cost.
"""

import tempfile
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from tests.bench.clock import sample
from tests.bench.figure import Figure, at_least, print_figures
from tests.made.rows import make_lake
from tonlake.api.settings import Settings
from tonlake.ingest.derive.stages import rebuild
from tonlake.lake.duck.connection import connect
from tonlake.lake.log.snapshot import open_snapshot

RATIO = 0.5
MILLION = 1_000_000
_PLACE = """\
select
    (
        select account from transactions group by account order by count(*), account
        limit 1 offset (select count(distinct account) // 2 from transactions)
    ),
    (select max(mc_seqno) // 2 from transactions)"""

FILTERED = (
    *(
        (view, "messages", kind, own, base)
        for view in ("v_messages", "v_transfers")
        for kind, own, base in (
            ("account", "sender_id = {account}", "source = {account}"),
            ("block", "mc_seqno = {block}", "mc_seqno = {block}"),
        )
    ),
    *(
        (view, table, kind, condition, condition)
        for view, table, column in (
            ("decoded_messages", "messages", "source"),
            ("traced_messages", "messages", "source"),
            ("v_transactions", "transactions", "account"),
            ("traced_transactions", "transactions", "account"),
            ("v_balances", "account_states", "account"),
            ("latest_account_states", "account_states", "account"),
        )
        for kind, condition in (
            ("account", f"{column} = {{account}}"),
            ("block", "mc_seqno = {block}"),
        )
    ),
)
"""View, base table, what is filtered, and the condition on each."""


def measure_pruning(lake_dir: Path, *, rounds: int) -> list[Figure]:
    """Return what every filter costs on a view, beside the base table."""
    connection = connect(open_snapshot(lake_dir))
    account, block = connection.execute(_PLACE).fetchall()[0]
    values = {"account": f"unhex('{account.hex()}')", "block": str(block)}

    def ask(statement: str, _: None) -> None:
        connection.execute(statement).fetchall()

    figures = []
    for view, table, kind, condition, base_condition in FILTERED:
        costs = [
            sample(
                partial(ask, f"from {relation} where {where.format(**values)}"), [None] * rounds
            ).median_ms
            for relation, where in ((view, condition), (table, base_condition))
        ]
        figure = Figure(
            area="filters on views, beside the base table",
            name=f"{view}, one {kind}",
            unit="ms",
            value=costs[0],
            targets={"ratio": at_least(RATIO)},
        )
        figures.append(figure.beside(costs[1]))
    return figures


@click.command()
@click.argument("lake", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--transactions", default=MILLION, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def main(*, lake: Path | None, transactions: int, rounds: int) -> None:
    """Print the costs of all filters."""
    with tempfile.TemporaryDirectory(prefix="tonlake-bench-") as name:
        if lake is None:
            lake = Path(name) / "lake"
            make_lake(lake, transactions=transactions, seed=1, lookups=False)
            for stage in ("bodies", "traces"):
                rebuild(stage, lake, Settings())
        print_figures(measure_pruning(lake, rounds=rounds), Console(width=170))


if __name__ == "__main__":
    main()

"""One account: balance over time, coins in and out, counterparties."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Wallet report")


@app.cell
def _():
    import os
    from pathlib import Path

    import altair as alt
    import marimo as mo
    import polars as pl

    from tonlake.api.command.loading import compose_settings
    from tonlake.lake.duck.connection import connect
    from tonlake.lake.log.snapshot import open_snapshot

    arguments = mo.cli_args()
    folder = Path(arguments.get("lake") or os.environ.get("LAKE", ".demo/lake"))
    lake = connect(open_snapshot(folder), compose_settings().lake)
    return alt, arguments, folder, lake, mo, pl


@app.cell
def _(arguments, lake, mo):
    busiest = lake.sql("""
        select ton_address(tx_workchain, tx_account)
        from messages
        where kind = 'ext_in'
        group by all
        order by count(*) desc, ton_address(tx_workchain, tx_account)
        limit 1
    """).fetchall()
    asked = arguments.get("account") or (busiest[0][0] if busiest else "0:" + "00" * 32)
    address = mo.ui.text(value=asked, label="account, raw or friendly", full_width=True)
    address
    return (address,)


@app.cell
def _(address, folder, lake, mo):
    who = {"account": address.value.strip()}
    moves = lake.sql(
        """
        select
            make_timestamp(now * 1000000) as time,
            direction,
            value / 1e9 as value_ton,
            case direction
                when 'in' then ton_address(source_workchain, source)
                else ton_address(destination_workchain, destination)
            end as partner
        from messages
        where
            tx_workchain = ton_workchain($account)
            and tx_account = ton_account($account)
            and kind = 'int'
        order by tx_lt, direction, msg_index
        """,
        params=who,
    ).pl()
    sums = lake.sql(
        """
        select
            count(*) as transactions,
            coalesce(sum(total_fees), 0) / 1e9 as fees_ton,
            min(time) as first_seen,
            max(time) as last_seen
        from transactions
        where workchain = ton_workchain($account) and account = ton_account($account)
        """,
        params=who,
    ).fetchall()[0]
    mo.md(f"""
    # Wallet report

    Lake `{folder}`, account `{who["account"]}`: {sums[0]:,} transactions between {sums[2]} and
    {sums[3]} UTC, {sums[1]:,.6f} TON of fees. The default of `--account` is the account
    that received the most external messages.
    """)
    return moves, who


@app.cell
def _(alt, lake, who):
    balances = lake.sql(
        """
        select make_timestamp(utime * 1000000) as time, balance / 1e9 as balance_ton, mc_seqno
        from account_states
        where workchain = ton_workchain($account) and account = ton_account($account) and utime > 0
        order by mc_seqno, block_seqno
        """,
        params=who,
    ).pl()
    balance_chart = (
        alt.Chart(balances, title="Balance after each block that touched the account")
        .mark_line(interpolate="step-after", point=True)
        .encode(
            x=alt.X("time:T", title="time (UTC)"),
            y=alt.Y("balance_ton:Q", title="balance (TON)").scale(zero=False),
            tooltip=["time:T", "balance_ton:Q", "mc_seqno:Q"],
        )
        .properties(width="container", height=240)
    )
    balance_chart
    return balance_chart, balances


@app.cell
def _(alt, moves, pl):
    flows = moves.filter(pl.col("value_ton") > 0).select(
        "time",
        "direction",
        pl.when(pl.col("direction") == "in")
        .then(pl.col("value_ton"))
        .otherwise(-pl.col("value_ton"))
        .alias("ton"),
    )
    flows_chart = (
        alt.Chart(flows, title="Coins in (up) and out (down), per message")
        .mark_bar(width=3)
        .encode(
            x=alt.X("time:T", title="time (UTC)"),
            y=alt.Y("ton:Q", title="value (TON, symlog scale)").scale(type="symlog"),
            color=alt.Color("direction:N", title="direction"),
            tooltip=["time:T", "direction:N", "ton:Q"],
        )
        .properties(width="container", height=220)
    )
    flows_chart
    return flows, flows_chart


@app.cell
def _(alt, moves, pl):
    partners = (
        moves.drop_nulls("partner")
        .group_by("partner", "direction")
        .agg(pl.col("value_ton").sum(), pl.len().alias("messages"))
        .sort(["value_ton", "partner"], descending=[True, False])
        .head(20)
    )
    partners_chart = (
        alt.Chart(partners, title="Counterparties with the largest sums")
        .mark_bar()
        .encode(
            x=alt.X("value_ton:Q", title="total value (TON, symlog scale)").scale(type="symlog"),
            y=alt.Y("partner:N", title="counterparty (raw address)", sort="-x").axis(
                labelLimit=120
            ),
            color=alt.Color("direction:N", title="direction"),
            tooltip=["partner:N", "direction:N", "value_ton:Q", "messages:Q"],
        )
        .properties(width="container")
    )
    partners_chart
    return partners, partners_chart


if __name__ == "__main__":
    app.run()

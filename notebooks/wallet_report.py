"""One account: balance over time, coins in and out, counterparties."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Wallet report")


@app.cell
def _():
    import os

    import altair as alt
    import marimo as mo
    import polars as pl

    import tonlake

    # Hours from 0 to 24; where days change, the axis names them.
    clock = {"hours": "%H:%M", "minutes": "%H:%M", "day": "%b %d", "date": "%b %d"}
    clock |= {"month": "%b %Y", "quarter": "%b %Y"}
    folder = mo.cli_args().get("lake") or os.environ.get("LAKE", ".demo/lake")
    lake = tonlake.open(folder)
    return alt, clock, folder, lake, mo, pl


@app.cell
def _(lake, mo):
    busiest = lake.sql("""
        select ton_friendly(tx_workchain, tx_account)
        from messages
        where kind = 'ext_in'
        group by all
        order by count(*) desc, ton_friendly(tx_workchain, tx_account)
        limit 1
    """).fetchall()
    asked = mo.cli_args().get("account") or (busiest[0][0] if busiest else "0:" + "00" * 32)
    address = mo.ui.text(value=asked, label="account, raw or friendly", full_width=True)
    address
    return (address,)


@app.cell
def _(address, folder, lake, mo):
    account = address.value.strip()
    transactions, fees_ton, first, last = lake.sql(
        """
        select count(*), coalesce(sum(fee), 0), min(time), max(time)
        from v_transactions
        where workchain = ton_workchain($account) and account = ton_account($account)
        """,
        account=account,
    ).fetchall()[0]
    span = f"{transactions:,} transactions between {first} and {last} UTC"
    mo.md(f"""
    # Wallet report

    Lake `{folder}`, account `{account}`: {span if transactions else "no transactions"},
    {fees_ton:,.6f} TON of fees. The default of `--account` is the account that received the most
    external messages.
    """)
    return (account,)


@app.cell
def _(account, alt, clock, lake, mo):
    balances = lake.sql(
        """
        select time, balance::double as balance_ton, mc_seqno
        from v_balances
        where
            workchain = ton_workchain($account)
            and account = ton_account($account)
            and asset is null
        order by mc_seqno, block_seqno
        """,
        account=account,
    ).pl()
    balance_chart = (
        alt.Chart(balances, title="Balance after each block that touched the account")
        .mark_line(interpolate="step-after", point=True)
        .encode(
            x=alt.X("time:T", title="time (UTC)").axis(format=clock),
            y=alt.Y("balance_ton:Q", title="balance (TON)"),
            tooltip=["time:T", "balance_ton:Q", "mc_seqno:Q"],
        )
        .properties(width="container", height=240)
    )
    balance_chart if balances.height else mo.md(
        "**Balance:** no state of the account in this lake."
    )
    return balance_chart, balances


@app.cell
def _(account, lake):
    moves = lake.sql(
        """
        with asked as (
            select ton_workchain($account) as workchain, ton_account($account) as account
        ),

        sides as (
            select
                v_messages.*,
                recipient_id = account and recipient_workchain = workchain as incoming
            from v_messages, asked
            where
                kind = 'int'
                and (
                    recipient_id = account and recipient_workchain = workchain
                    or sender_id = account and sender_workchain = workchain
                )
        ),

        partners as (
            select
                *,
                case when incoming then sender else recipient end as address,
                case when incoming then sender_label else recipient_label end as label,
                case
                    when incoming then ton_friendly(sender_workchain, sender_id)
                    else ton_friendly(recipient_workchain, recipient_id)
                end as friendly
            from sides
        )

        select
            time,
            case when incoming then 'in' else 'out' end as direction,
            amount::double as value_ton,
            coalesce(opcode_name, ton_opcode(opcode), 'no opcode') as called,
            address,
            coalesce(label, left(friendly, 6) || '…' || right(friendly, 4)) as partner
        from partners
        order by created_lt, direction, address
        """,
        account=account,
    ).pl()
    return (moves,)


@app.cell
def _(alt, clock, mo, moves, pl):
    flows = moves.filter(pl.col("value_ton") > 0).with_columns(
        pl.when(pl.col("direction") == "in")
        .then(pl.col("value_ton"))
        .otherwise(-pl.col("value_ton"))
        .alias("ton")
    )
    flows_chart = (
        alt.Chart(flows, title="Coins in (up) and out (down), one point per message")
        .mark_circle(size=50, opacity=0.7)
        .encode(
            x=alt.X("time:T", title="time (UTC)").axis(format=clock),
            y=alt.Y("ton:Q", title="value (TON, symlog scale)")
            .scale(type="symlog")
            .axis(values=[0, *(sign * 10**power for power in range(12) for sign in (1, -1))]),
            color=alt.Color("direction:N", title="direction"),
            tooltip=["time:T", "direction:N", "called:N", "partner:N", "ton:Q"],
        )
        .properties(width="container", height=220)
    )
    flows_chart if flows.height else mo.md("**Coins in and out:** no messages with coins.")
    return flows, flows_chart


@app.cell
def _(alt, mo, moves, pl):
    partners = (
        moves.drop_nulls("partner")
        .group_by("partner", "address", "direction")
        .agg(pl.col("value_ton").sum(), pl.len().alias("messages"))
        .sort(["value_ton", "address", "direction"], descending=[True, False, False])
        .head(20)
    )
    partners_chart = (
        alt.Chart(partners, title="Counterparties with the largest sums")
        .mark_bar()
        .encode(
            x=alt.X("value_ton:Q", title="total value (TON)"),
            y=alt.Y("partner:N", title="counterparty", sort="-x"),
            yOffset=alt.YOffset("direction:N"),
            color=alt.Color("direction:N", title="direction"),
            tooltip=["partner:N", "address:N", "direction:N", "value_ton:Q", "messages:Q"],
        )
        .properties(width="container")
    )
    partners_chart if partners.height else mo.md("**Counterparties:** none in this lake.")
    return partners, partners_chart


if __name__ == "__main__":
    app.run()

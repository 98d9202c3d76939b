"""Network activity: transactions, blocks, accounts and messages over the covered period."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Network activity")


@app.cell
def _():
    import os
    from pathlib import Path

    import altair as alt
    import marimo as mo

    from tonlake.api.command.loading import compose_settings
    from tonlake.lake.duck.connection import connect
    from tonlake.lake.log.snapshot import open_snapshot

    folder = Path(mo.cli_args().get("lake") or os.environ.get("LAKE", ".demo/lake"))
    snapshot = open_snapshot(folder)
    lake = connect(snapshot, compose_settings().lake)
    return alt, folder, lake, mo, snapshot


@app.cell
def _(folder, lake, mo, snapshot):
    covered = ", ".join(f"{first} to {last}" for first, last in snapshot.ranges)
    seconds = lake.sql("select max(gen_utime) - min(gen_utime) from blocks").fetchall()[0][0]
    steps = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
    step = next((name for name, size in steps.items() if seconds <= 200 * size), "day")
    mo.md(f"""
    # Network activity

    Lake `{folder}`, commit {snapshot.number}: masterchain blocks {covered}, {seconds:,} seconds of
    block time. Charts have one point per **{step}**; times are UTC.
    """)
    return (step,)


@app.cell
def _(lake, mo):
    totals = lake.sql("""
        select
            (select count(*) from blocks) as blocks,
            (select count(*) from transactions) as transactions,
            (select count(*) from messages where direction = 'in') as messages,
            (select count(distinct (workchain, account)) from transactions) as accounts,
            (select count(*) from transactions where aborted) as aborted
    """).pl()
    mo.hstack(
        [mo.stat(value=f"{totals[name][0]:,}", label=name) for name in totals.columns],
        widths="equal",
    )
    return (totals,)


@app.cell
def _(alt, lake, step):
    activity = lake.sql(
        """
        select
            date_trunc($step, time) as time,
            case workchain when -1 then 'masterchain' else 'workchain ' || workchain end as chain,
            count(*) as transactions,
            count(distinct account) as accounts
        from transactions
        group by all
        order by all
        """,
        params={"step": step},
    ).pl()
    transactions_chart = (
        alt.Chart(activity, title=f"Transactions per {step}")
        .mark_area(interpolate="step-after")
        .encode(
            x=alt.X("time:T", title="time (UTC)"),
            y=alt.Y("transactions:Q", title=f"transactions per {step}"),
            color=alt.Color("chain:N", title="chain"),
            tooltip=["time:T", "chain:N", "transactions:Q", "accounts:Q"],
        )
        .properties(width="container", height=240)
    )
    transactions_chart
    return activity, transactions_chart


@app.cell
def _(alt, lake, step):
    intervals = lake.sql(
        """
        with gaps as (
            select
                time,
                workchain,
                gen_utime - lag(gen_utime) over (
                    partition by workchain, shard order by seqno
                ) as gap_s
            from blocks
        )

        select
            date_trunc($step, time) as time,
            case workchain when -1 then 'masterchain' else 'workchain ' || workchain end as chain,
            avg(gap_s) as mean_gap_s,
            max(gap_s) as longest_gap_s
        from gaps
        where gap_s is not null
        group by all
        order by all
        """,
        params={"step": step},
    ).pl()
    intervals_chart = (
        alt.Chart(intervals, title="Time between blocks of one shard")
        .mark_line(point=True)
        .encode(
            x=alt.X("time:T", title="time (UTC)"),
            y=alt.Y("mean_gap_s:Q", title="mean gap (seconds)"),
            color=alt.Color("chain:N", title="chain"),
            tooltip=["time:T", "chain:N", "mean_gap_s:Q", "longest_gap_s:Q"],
        )
        .properties(width="container", height=200)
    )
    intervals_chart
    return intervals, intervals_chart


@app.cell
def _(alt, lake):
    opcodes = lake.sql("""
        select
            coalesce(ton_opcode(opcode), 'none') as opcode,
            count(*) as messages,
            sum(value) / 1e9 as value_ton
        from messages
        where direction = 'in'
        group by all
        order by messages desc, opcode
        limit 15
    """).pl()
    opcodes_chart = (
        alt.Chart(opcodes, title="The 15 most common opcodes")
        .mark_bar()
        .encode(
            x=alt.X("messages:Q", title="messages received (count)"),
            y=alt.Y("opcode:N", title="opcode (first 32 bits of the body)", sort="-x"),
            tooltip=["opcode:N", "messages:Q", "value_ton:Q"],
        )
        .properties(width="container")
    )
    opcodes_chart
    return opcodes, opcodes_chart


@app.cell
def _(alt, lake):
    busiest = lake.sql("""
        select
            ton_address(workchain, account) as account,
            count(*) as transactions,
            sum(total_fees) / 1e9 as fees_ton
        from transactions
        group by all
        order by transactions desc, account
        limit 15
    """).pl()
    busiest_chart = (
        alt.Chart(busiest, title="The 15 busiest accounts")
        .mark_bar()
        .encode(
            x=alt.X("transactions:Q", title="transactions (count)"),
            y=alt.Y("account:N", title="account (raw address)", sort="-x").axis(labelLimit=120),
            tooltip=["account:N", "transactions:Q", "fees_ton:Q"],
        )
        .properties(width="container")
    )
    busiest_chart
    return busiest, busiest_chart


if __name__ == "__main__":
    app.run()

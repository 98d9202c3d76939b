"""Network activity: transactions, blocks, accounts and messages over the covered period."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Network activity")


@app.cell
def _():
    import os

    import altair as alt
    import marimo as mo

    import tonlake

    # Hours from 0 to 24; where days change, the axis names them.
    clock = {"hours": "%H:%M", "minutes": "%H:%M", "day": "%b %d", "date": "%b %d"}
    clock |= {"month": "%b %Y", "quarter": "%b %Y"}
    folder = mo.cli_args().get("lake") or os.environ.get("LAKE", ".demo/lake")
    lake = tonlake.open(folder)
    return alt, clock, folder, lake, mo


@app.cell
def _(folder, lake, mo):
    covered = ", ".join(f"{first} to {last}" for first, last in lake.ranges)
    seconds = lake.sql("""
        select coalesce(max(gen_utime) - min(gen_utime), 0) from blocks
    """).fetchall()[0][0]
    steps = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
    step = next((name for name, size in steps.items() if seconds <= 200 * size), "day")
    mo.md(f"""
    # Network activity

    Lake `{folder}`, commit {lake.snapshot}: masterchain blocks {covered}, {seconds:,} seconds of
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
    mo.md(
        "| " + " | ".join(totals.columns) + " |\n" + "|--:" * totals.width + "|\n"
        "| " + " | ".join(f"**{number:,}**" for number in totals.row(0)) + " |"
    )
    return (totals,)


@app.cell
def _(alt, clock, lake, mo, step):
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
        step=step,
    ).pl()
    units = {
        "second": "yearmonthdatehoursminutesseconds",
        "minute": "yearmonthdatehoursminutes",
        "hour": "yearmonthdatehours",
        "day": "yearmonthdate",
    }
    transactions_chart = (
        alt.Chart(activity, title=f"Transactions per {step}")
        .mark_bar()
        .encode(
            x=alt.X(f"{units[step]}(time):T", title="time (UTC)").axis(
                format=clock, labelSeparation=8
            ),
            y=alt.Y("transactions:Q", title=f"transactions per {step}"),
            color=alt.Color("chain:N", title="chain"),
            tooltip=["time:T", "chain:N", "transactions:Q", "accounts:Q"],
        )
        .properties(width="container", height=240)
    )
    transactions_chart if activity.height else mo.md("**Transactions:** none in this lake.")
    return activity, transactions_chart


@app.cell
def _(alt, clock, lake, mo, step):
    intervals = lake.sql(
        """
        with gaps as (
            select
                time,
                workchain,
                gen_utime - lag(gen_utime) over shard_blocks as gap_s,
                seqno - lag(seqno) over shard_blocks as step
            from blocks
            window shard_blocks as (partition by workchain, shard order by seqno)
        )

        select
            date_trunc($step, time) as time,
            case workchain when -1 then 'masterchain' else 'workchain ' || workchain end as chain,
            avg(gap_s) as mean_gap_s,
            max(gap_s) as longest_gap_s
        from gaps
        where step = 1 -- a shard that was merged or split has none for a while
        group by all
        order by all
        """,
        step=step,
    ).pl()
    intervals_chart = (
        alt.Chart(intervals, title="Time between blocks of one shard")
        .mark_circle(size=50)
        .encode(
            x=alt.X("time:T", title="time (UTC)").axis(format=clock),
            y=alt.Y("mean_gap_s:Q", title="mean gap (seconds)"),
            color=alt.Color("chain:N", title="chain"),
            tooltip=["time:T", "chain:N", "mean_gap_s:Q", "longest_gap_s:Q"],
        )
        .properties(width="container", height=200)
    )
    intervals_chart if intervals.height else mo.md(
        "**Time between blocks:** fewer than two blocks."
    )
    return intervals, intervals_chart


@app.cell
def _(alt, lake, mo):
    opcodes = lake.sql("""
        select
            coalesce(opcode_name, ton_opcode(opcode), 'no opcode') as called,
            ton_opcode(opcode) as opcode,
            count(*) as messages,
            sum(amount)::double as value_ton
        from v_messages
        group by all
        order by messages desc, called
        limit 15
    """).pl()
    opcodes_chart = (
        alt.Chart(opcodes, title="The 15 most common messages")
        .mark_bar()
        .encode(
            x=alt.X("messages:Q", title="messages received (count)").axis(tickMinStep=1),
            y=alt.Y("called:N", title="opcode", sort="-x"),
            tooltip=["called:N", "opcode:N", "messages:Q", "value_ton:Q"],
        )
        .properties(width="container")
    )
    opcodes_chart if opcodes.height else mo.md("**Opcodes:** no messages in this lake.")
    return opcodes, opcodes_chart


@app.cell
def _(alt, lake, mo):
    busiest = lake.sql("""
        select
            coalesce(label, left(friendly, 6) || '…' || right(friendly, 4)) as account,
            address,
            transactions,
            fees_ton
        from (
            select
                address,
                label,
                ton_friendly(workchain, account) as friendly,
                count(*) as transactions,
                sum(fee)::double as fees_ton
            from v_transactions
            group by all
            order by transactions desc, address
            limit 15
        )
        order by transactions desc, address
    """).pl()
    busiest_chart = (
        alt.Chart(busiest, title="The 15 busiest accounts")
        .mark_bar()
        .encode(
            x=alt.X("transactions:Q", title="transactions (count)").axis(tickMinStep=1),
            y=alt.Y("account:N", title="account", sort="-x"),
            tooltip=["account:N", "address:N", "transactions:Q", "fees_ton:Q"],
        )
        .properties(width="container")
    )
    busiest_chart if busiest.height else mo.md("**Accounts:** no transactions in this lake.")
    return busiest, busiest_chart


if __name__ == "__main__":
    app.run()

"""Transaction fees by kind, gas by account, exit codes of failed transactions."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Fees and gas")


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
    lake = connect(open_snapshot(folder), compose_settings().lake)
    return alt, folder, lake, mo


@app.cell
def _(folder, lake, mo):
    span = lake.sql("select min(time), max(time), sum(total_fees) / 1e9 from transactions")
    first, last, fees_ton = span.fetchall()[0]
    mo.md(f"""
    # Fees and gas

    Lake `{folder}`, from {first} to {last} UTC: **{fees_ton:,.6f} TON** of fees in total.
    Forward fees are those charged in the action phase. `total_fees` includes only the share that
    goes to the validators of the transaction's shard, so the kinds below do not add up to it.
    """)
    return (fees_ton,)


@app.cell
def _(alt, lake):
    kinds = lake.sql("""
        unpivot (
            select
                sum(storage_fees_collected) / 1e9 as storage,
                sum(compute_gas_fees) / 1e9 as gas,
                sum(action_total_fwd_fees) / 1e9 as forward,
                sum(action_total_action_fees) / 1e9 as action,
                sum(bounce_msg_fees) / 1e9 as bounce
            from transactions
        )
        on storage, gas, forward, action, bounce
        into name kind value fees_ton
        order by fees_ton desc
    """).pl()
    kinds_chart = (
        alt.Chart(kinds, title="Fees by kind")
        .mark_bar()
        .encode(
            x=alt.X("fees_ton:Q", title="fees (TON)"),
            y=alt.Y("kind:N", title="kind of fee", sort="-x"),
            tooltip=["kind:N", "fees_ton:Q"],
        )
        .properties(width="container")
    )
    kinds_chart
    return kinds, kinds_chart


@app.cell
def _(alt, lake):
    gas = lake.sql("""
        select 2 ** floor(log2(compute_gas_used)) as gas_from, count(*) as transactions
        from transactions
        where compute_gas_used > 0
        group by all
        order by all
    """).pl()
    gas_chart = (
        alt.Chart(gas, title="Gas per transaction")
        .mark_bar()
        .encode(
            x=alt.X("gas_from:O", title="gas used (units, from this to twice this)").axis(
                format="~s"
            ),
            y=alt.Y("transactions:Q", title="transactions (count)"),
            tooltip=["gas_from:O", "transactions:Q"],
        )
        .properties(width="container", height=220)
    )
    gas_chart
    return gas, gas_chart


@app.cell
def _(alt, lake):
    spenders = lake.sql("""
        select
            ton_address(workchain, account) as account,
            sum(total_fees) / 1e9 as fees_ton,
            sum(compute_gas_used)::bigint as gas,
            count(*) as transactions
        from transactions
        where total_fees > 0
        group by all
        order by fees_ton desc, account
        limit 15
    """).pl()
    spenders_chart = (
        alt.Chart(spenders, title="The 15 accounts that paid the most fees")
        .mark_bar()
        .encode(
            x=alt.X("fees_ton:Q", title="fees paid (TON)"),
            y=alt.Y("account:N", title="account (raw address)", sort="-x").axis(labelLimit=120),
            tooltip=["account:N", "fees_ton:Q", "gas:Q", "transactions:Q"],
        )
        .properties(width="container")
    )
    spenders_chart
    return spenders, spenders_chart


@app.cell
def _(alt, lake):
    failures = lake.sql("""
        select
            case
                when compute_skipped then 'skipped: ' || compute_skip_reason
                when not compute_success then 'exit code ' || compute_exit_code
                when not action_success then 'action: result ' || action_result_code
                else 'aborted'
            end as reason,
            count(*) as transactions,
            sum(total_fees) / 1e9 as fees_ton
        from transactions
        where aborted or not action_success
        group by all
        order by transactions desc, reason
        limit 15
    """).pl()
    failures_chart = (
        alt.Chart(failures, title="Failed transactions by reason")
        .mark_bar()
        .encode(
            x=alt.X("transactions:Q", title="failed transactions (count)"),
            y=alt.Y("reason:N", title="phase and code", sort="-x").axis(labelLimit=220),
            tooltip=["reason:N", "transactions:Q", "fees_ton:Q"],
        )
        .properties(width="container")
    )
    failures_chart
    return failures, failures_chart


if __name__ == "__main__":
    app.run()

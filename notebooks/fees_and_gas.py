"""Transaction fees by kind, gas by account, failed transactions by reason."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Fees and gas")


@app.cell
def _():
    import os

    import altair as alt
    import marimo as mo

    import tonlake

    folder = mo.cli_args().get("lake") or os.environ.get("LAKE", ".demo/lake")
    lake = tonlake.open(folder)
    return alt, folder, lake, mo


@app.cell
def _(folder, lake, mo):
    first, last, fees_ton = lake.sql(
        "select min(time), max(time), coalesce(sum(fee), 0) from v_transactions"
    ).fetchall()[0]
    mo.md(f"""
    # Fees and gas

    Lake `{folder}`, from {first} to {last} UTC: **{fees_ton:,.6f} TON** of fees in total.
    The kinds below add up to it. Import fees, of messages from outside, are what the others leave.
    Of forward fees it has the share of the action phase; the rest travels with the messages.
    """)
    return (fees_ton,)


@app.cell
def _(alt, lake, mo):
    kinds = lake.sql("""
        from (
            unpivot (
                select
                    sum(storage_fees_collected) / 1e9 as storage,
                    sum(compute_gas_fees) / 1e9 as gas,
                    sum(action_total_action_fees) / 1e9 as action,
                    sum(bounce_msg_fees) / 1e9 as bounce,
                    sum(
                        total_fees
                        - coalesce(storage_fees_collected, 0)
                        - coalesce(compute_gas_fees, 0)
                        - coalesce(action_total_action_fees, 0)
                        - coalesce(bounce_msg_fees, 0)
                    ) / 1e9 as import
                from transactions
            )
            on storage, gas, action, bounce, import
            into name kind value fees_ton
        )
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
    kinds_chart if kinds.height else mo.md("**Fees by kind:** no transactions in this lake.")
    return kinds, kinds_chart


@app.cell
def _(alt, lake, mo):
    gas = lake.sql("""
        with used as (
            select floor(log2(gas_used))::int as power, count(*) as transactions
            from v_transactions
            where gas_used > 0
            group by all
        )

        select (2 ** powers.power)::bigint as gas_from, coalesce(transactions, 0) as transactions
        from (
            select unnest(generate_series(min(power), max(power))) as power from used
        ) as powers
        left join used using (power)
        order by all
    """).pl()
    gas_chart = (
        alt.Chart(gas, title="Gas per transaction")
        .mark_bar()
        .encode(
            x=alt.X("gas_from:O", title="gas used (units, from this to twice this)").axis(
                format=",", labelAngle=0, labelOverlap=True
            ),
            y=alt.Y("transactions:Q", title="transactions (count)").axis(tickMinStep=1),
            tooltip=["gas_from:O", "transactions:Q"],
        )
        .properties(width="container", height=220)
    )
    gas_chart if gas.height else mo.md("**Gas per transaction:** no transaction used gas.")
    return gas, gas_chart


@app.cell
def _(alt, lake, mo):
    spenders = lake.sql("""
        select
            coalesce(label, left(friendly, 6) || '…' || right(friendly, 4)) as account,
            address,
            fees_ton,
            gas,
            transactions
        from (
            select
                address,
                label,
                ton_friendly(workchain, account) as friendly,
                sum(fee)::double as fees_ton,
                sum(gas_used)::bigint as gas,
                count(*) as transactions
            from v_transactions
            where fee > 0
            group by all
            order by fees_ton desc, address
            limit 15
        )
        order by fees_ton desc, address
    """).pl()
    spenders_chart = (
        alt.Chart(spenders, title="The 15 accounts that paid the most fees")
        .mark_bar()
        .encode(
            x=alt.X("fees_ton:Q", title="fees paid (TON)"),
            y=alt.Y("account:N", title="account", sort="-x"),
            tooltip=["account:N", "address:N", "fees_ton:Q", "gas:Q", "transactions:Q"],
        )
        .properties(width="container")
    )
    spenders_chart if spenders.height else mo.md("**Fees by account:** no fees in this lake.")
    return spenders, spenders_chart


@app.cell
def _(alt, lake, mo):
    failures = lake.sql("""
        select
            coalesce(exit_code || ': ' || exit_words, exit_words, 'aborted') as reason,
            coalesce(failed_phase, 'none') as phase,
            count(*) as transactions,
            sum(fee)::double as fees_ton
        from v_transactions
        where not success
        group by all
        order by transactions desc, reason, phase
        limit 15
    """).pl()
    failures_chart = (
        alt.Chart(failures, title="Failed transactions by phase and reason")
        .mark_bar()
        .encode(
            x=alt.X("transactions:Q", title="failed transactions (count)").axis(tickMinStep=1),
            y=alt.Y("reason:N", title="code and reason", sort="-x").axis(labelLimit=260),
            color=alt.Color("phase:N", title="phase"),
            tooltip=["reason:N", "phase:N", "transactions:Q", "fees_ton:Q"],
        )
        .properties(width="container")
    )
    failures_chart if failures.height else mo.md("**Failures:** no transaction failed.")
    return failures, failures_chart


if __name__ == "__main__":
    app.run()

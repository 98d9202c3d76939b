"""One jetton: holders, concentration, transfers, mints and burns."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Jetton report")


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
    held = lake.sql("""
        select ton_address(jetton_workchain, jetton)
        from latest_jetton_wallets
        group by all
        order by count(*) desc, ton_address(jetton_workchain, jetton)
        limit 1
    """).fetchall()
    asked = arguments.get("jetton") or (held[0][0] if held else "0:" + "00" * 32)
    master = mo.ui.text(value=asked, label="jetton master, raw or friendly", full_width=True)
    master
    return (master,)


@app.cell
def _(folder, lake, master, mo):
    which = {"jetton": master.value.strip()}
    holders = lake.sql(
        """
        select
            coalesce(ton_address(owner_workchain, owner), 'unknown') as owner,
            balance::double as balance
        from latest_jetton_wallets
        where
            jetton_workchain = ton_workchain($jetton)
            and jetton = ton_account($jetton)
            and balance > 0
        order by balance desc, owner
        """,
        params=which,
    ).pl()
    known = lake.sql(
        """
        select
            total_supply::double as supply,
            content ->> 'symbol' as symbol,
            coalesce((content ->> 'decimals')::int, 9) as decimals
        from latest_jetton_masters
        where workchain = ton_workchain($jetton) and account = ton_account($jetton)
        """,
        params=which,
    ).fetchall()
    supply, symbol, decimals = known[0] if known else (holders["balance"].sum(), None, 9)
    unit = symbol or "whole jettons"
    scale = 10**decimals
    mo.md(f"""
    # Jetton report

    Lake `{folder}`, jetton `{which["jetton"]}`: {holders.height:,} holders,
    {(supply or 0) / scale:,.2f} {unit} in total. The default of `--jetton` is the jetton
    with the most wallets. Amounts are divided by 10^{decimals}, from its metadata.
    """)
    return holders, scale, supply, unit, which


@app.cell
def _(alt, holders, pl, scale, supply, unit):
    shares = holders.with_row_index("rank", offset=1).with_columns(
        (pl.col("balance") / scale).alias("jettons"),
        (pl.col("balance").cum_sum() / max(supply or 0, 1)).alias("share"),
    )
    holders_chart = (
        alt.Chart(shares.head(20), title="The 20 largest holders")
        .mark_bar()
        .encode(
            x=alt.X("jettons:Q", title=f"balance ({unit})"),
            y=alt.Y("owner:N", title="owner (raw address)", sort="-x").axis(labelLimit=120),
            tooltip=["owner:N", "jettons:Q", "share:Q"],
        )
        .properties(width="container")
    )
    holders_chart
    return holders_chart, shares


@app.cell
def _(alt, shares):
    concentration_chart = (
        alt.Chart(shares, title="Concentration: share of supply held by the largest holders")
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("rank:Q", title="largest holders (count)").scale(type="log"),
            y=alt.Y("share:Q", title="share of the supply (0 to 1)").scale(domain=[0, 1]),
            tooltip=["rank:Q", "share:Q"],
        )
        .properties(width="container", height=220)
    )
    concentration_chart
    return (concentration_chart,)


@app.cell
def _(alt, lake, scale, unit, which):
    flows = lake.sql(
        """
        select time, kind, sum(amount)::double / $scale as jettons, count(*) as messages
        from (
            select make_timestamp(now * 1000000) as time, 'transfer' as kind, amount
            from jetton_transfers
            where
                jetton_workchain = ton_workchain($jetton)
                and jetton = ton_account($jetton)
                and not aborted
            union all
            select make_timestamp(now * 1000000), 'burn', amount
            from jetton_burns
            where
                jetton_workchain = ton_workchain($jetton)
                and jetton = ton_account($jetton)
                and not aborted
        )
        group by all
        order by all
        """,
        params={**which, "scale": scale},
    ).pl()
    flows_chart = (
        alt.Chart(flows, title="Transfers and burns over time")
        .mark_bar(width=3)
        .encode(
            x=alt.X("time:T", title="time (UTC)"),
            y=alt.Y("jettons:Q", title=f"amount ({unit}, symlog scale)").scale(type="symlog"),
            color=alt.Color("kind:N", title="kind"),
            tooltip=["time:T", "kind:N", "jettons:Q", "messages:Q"],
        )
        .properties(width="container", height=220)
    )
    flows_chart
    return flows, flows_chart


if __name__ == "__main__":
    app.run()

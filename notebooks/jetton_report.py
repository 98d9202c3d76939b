"""One jetton: holders, concentration, transfers and burns."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Jetton report")


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
    max_held = lake.sql("""
        select ton_friendly(jetton_workchain, jetton)
        from latest_jetton_wallets
        group by all
        order by count(*) desc, ton_friendly(jetton_workchain, jetton)
        limit 1
    """).fetchall()
    asked = mo.cli_args().get("jetton") or (max_held[0][0] if max_held else "0:" + "00" * 32)
    master = mo.ui.text(value=asked, label="jetton master, raw or friendly", full_width=True)
    master
    return (master,)


@app.cell
def _(folder, lake, master, mo):
    jetton = master.value.strip()
    known = lake.sql(
        """
        select supply_units::double, coalesce(symbol, name), coalesce(decimals, 9)
        from v_jettons
        where workchain = ton_workchain($jetton) and account = ton_account($jetton)
        """,
        jetton=jetton,
    ).fetchall()
    holders = lake.sql(
        """
        select
            coalesce(label, left(friendly, 6) || '…' || right(friendly, 4), 'unknown') as owner,
            address,
            balance_units::double as units
        from (
            select
                *,
                ton_friendly(workchain, account) as friendly
            from jetton_holders($jetton)
        )
        where balance_units > 0
        order by balance_units desc, address
        """,
        jetton=jetton,
    ).pl()
    supply, symbol, decimals = known[0] if known else (None, None, 9)
    supply = supply or holders["units"].sum()
    unit = symbol or "whole jettons"
    scale = 10**decimals
    mo.md(f"""
    # Jetton report

    Lake `{folder}`, jetton `{jetton}`: {holders.height:,} holders,
    {supply / scale:,.2f} {unit} in total. The default of `--jetton` is the jetton with the most
    wallets. Amounts are divided by 10^{decimals}{"" if known else ", as the lake has no metadata"}.
    """)
    return holders, jetton, scale, supply, unit


@app.cell
def _(alt, holders, mo, pl, scale, supply, unit):
    shares = holders.with_row_index("rank", offset=1).with_columns(
        (pl.col("units") / scale).alias("jettons"),
        (pl.col("units").cum_sum() / max(supply, 1)).alias("share"),
    )
    holders_chart = (
        alt.Chart(shares.head(20), title="The 20 largest holders")
        .mark_bar()
        .encode(
            x=alt.X("jettons:Q", title=f"balance ({unit})"),
            y=alt.Y("owner:N", title="owner", sort="-x"),
            tooltip=["owner:N", "address:N", "jettons:Q", "share:Q"],
        )
        .properties(width="container")
    )
    holders_chart if shares.height else mo.md("**Holders:** this lake knows none.")
    return holders_chart, shares


@app.cell
def _(alt, mo, shares):
    concentration_chart = (
        alt.Chart(shares, title="Concentration: share of the supply held by the largest holders")
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("rank:Q", title="largest holders (count, logarithmic)").scale(
                type="log", nice=False
            ),
            y=alt.Y("share:Q", title="share of the supply (0 to 1)").scale(domain=[0, 1]),
            tooltip=["rank:Q", "share:Q"],
        )
        .properties(width="container", height=220)
    )
    concentration_chart if shares.height else mo.md(
        "**Concentration:** this lake knows no holders."
    )
    return (concentration_chart,)


@app.cell
def _(alt, clock, jetton, lake, mo, scale, unit):
    flows = lake.sql(
        """
        select
            time,
            'transfer' as kind,
            amount_units::double / $scale as jettons,
            coalesce(sender_label, sender) as sender,
            coalesce(recipient_label, recipient) as recipient
        from v_jetton_transfers
        where
            success
            and kind = 'transfer'
            and jetton_workchain = ton_workchain($jetton)
            and jetton_id = ton_account($jetton)
        union all
        select
            ton_time(now),
            'burn',
            amount::double / $scale,
            ton_address(owner_workchain, owner),
            null
        from jetton_burns
        where
            not aborted
            and jetton_workchain = ton_workchain($jetton)
            and jetton = ton_account($jetton)
        order by time, kind, jettons
        """,
        jetton=jetton,
        scale=scale,
    ).pl()
    flows_chart = (
        alt.Chart(flows, title="Transfers and burns, one point each")
        .mark_circle(size=50, opacity=0.7)
        .encode(
            x=alt.X("time:T", title="time (UTC)").axis(format=clock),
            y=alt.Y("jettons:Q", title=f"amount ({unit}, symlog scale)")
            .scale(type="symlog")
            .axis(values=[0, *(sign * 10**power for power in range(12) for sign in (1, -1))]),
            color=alt.Color("kind:N", title="kind"),
            tooltip=["time:T", "kind:N", "jettons:Q", "sender:N", "recipient:N"],
        )
        .properties(width="container", height=220)
    )
    flows_chart if flows.height else mo.md("**Transfers and burns:** none in this lake.")
    return flows, flows_chart


if __name__ == "__main__":
    app.run()

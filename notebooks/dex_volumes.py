"""DEX volumes: swaps and volume by exchange, traded pairs, outcomes."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="DEX volumes")


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
    swaps, traders, actions = lake.sql("""
        select
            (select count(*) from v_swaps),
            (select count(distinct sender) from v_swaps),
            (select count(*) from actions)
    """).fetchall()[0]
    mo.md(f"""
    # DEX volumes

    Lake `{folder}`: {swaps:,} swaps by {traders:,} senders among {actions:,} actions. Volume is
    the TON side of a swap; of a swap between two jettons it is the jetton given, at its last
    price within a day, where the lake knows one. Only complete traces have actions.
    """)
    return


@app.cell
def _(alt, clock, lake, mo):
    hours = lake.sql("""
        select coalesce(date_diff('hour', min(time), max(time)), 0) from v_swaps
    """).fetchall()[0][0]
    steps = {"hour": 1, "day": 24, "month": 720}
    step = next((name for name, size in steps.items() if hours <= 100 * size), "month")
    volumes = lake.sql(
        """
        select
            date_trunc($step, time) as time,
            dex,
            count(*) filter (where success) as swaps,
            coalesce(sum(value_ton) filter (where success), 0)::double as volume_ton,
            count(*) filter (where success and value_ton is null) as without_value
        from v_swaps
        group by all
        order by all
        """,
        step=step,
    ).pl()
    units = {"hour": "yearmonthdatehours", "day": "yearmonthdate", "month": "yearmonth"}
    volume_chart = (
        alt.Chart(volumes, title="Volume by exchange")
        .mark_bar()
        .encode(
            x=alt.X(f"{units[step]}(time):T", title=f"{step} (UTC)").axis(
                format=clock, labelSeparation=8
            ),
            y=alt.Y("volume_ton:Q", title=f"volume (TON) per {step}"),
            color=alt.Color("dex:N", title="exchange"),
            tooltip=["time:T", "dex:N", "volume_ton:Q", "swaps:Q", "without_value:Q"],
        )
        .properties(width="container", height=240)
    )
    lack = "no swap has a known value in TON." if volumes.height else "no swaps in this lake."
    volume_chart if volumes["volume_ton"].sum() else mo.md(f"**Volume by exchange:** {lack}")
    return volume_chart, volumes


@app.cell
def _(alt, lake, mo):
    pairs = lake.sql("""
        select
            coalesce(
                symbol_in,
                given.label,
                left(ton_friendly(asset_in_workchain, asset_in_id), 8) || '…',
                'TON'
            )
            || ' to '
            || coalesce(
                symbol_out,
                taken.label,
                left(ton_friendly(asset_out_workchain, asset_out_id), 8) || '…',
                'TON'
            ) as pair,
            dex,
            count(*) as swaps,
            coalesce(sum(value_ton), 0)::double as volume_ton
        from v_swaps
        left join labels as given on asset_in = given.address
        left join labels as taken on asset_out = taken.address
        where success
        group by all
        order by swaps desc, pair, dex
        limit 20
    """).pl()
    pairs_chart = (
        alt.Chart(pairs, title="Most traded pairs")
        .mark_bar()
        .encode(
            x=alt.X("swaps:Q", title="swaps (count)").axis(tickMinStep=1),
            y=alt.Y("pair:N", title="from and to", sort="-x"),
            color=alt.Color("dex:N", title="exchange"),
            tooltip=["pair:N", "dex:N", "swaps:Q", "volume_ton:Q"],
        )
        .properties(width="container")
    )
    pairs_chart if pairs.height else mo.md("**Most traded pairs:** no swaps in this lake.")
    return pairs, pairs_chart


@app.cell
def _(alt, lake, mo):
    outcomes = lake.sql("""
        select
            dex,
            case when success then 'succeeded' else 'failed' end as outcome,
            count(*) as swaps
        from v_swaps
        group by all
        order by all
    """).pl()
    outcomes_chart = (
        alt.Chart(outcomes, title="Swaps by outcome")
        .mark_bar()
        .encode(
            x=alt.X("swaps:Q", title="swaps (count)").axis(tickMinStep=1),
            y=alt.Y("dex:N", title="exchange"),
            color=alt.Color("outcome:N", title="outcome").scale(
                domain=["succeeded", "failed"], range=["#2a78c8", "#d1495b"]
            ),
            tooltip=["dex:N", "outcome:N", "swaps:Q"],
        )
        .properties(width="container")
    )
    outcomes_chart if outcomes.height else mo.md("**Swaps by outcome:** no swaps in this lake.")
    return outcomes, outcomes_chart


if __name__ == "__main__":
    app.run()

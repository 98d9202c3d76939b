"""DEX volumes: swaps and volume by exchange, traded pairs, failure rates."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="DEX volumes")


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
    swaps, traders, actions = lake.sql("""
        select
            (select count(*) from dex_swaps),
            (select count(distinct sender) from dex_swaps),
            (select count(*) from actions)
    """).fetchall()[0]
    mo.md(f"""
    # DEX volumes

    Lake `{folder}`: {swaps:,} swaps by {traders:,} senders among {actions:,} actions. Volume is
    the TON side of a swap; swaps between two jettons count as swaps, not as volume. Only complete
    traces have actions.
    """)
    return (swaps,)


@app.cell
def _(alt, lake):
    volumes = lake.sql("""
        select
            dex,
            make_timestamp(end_utime // 3600 * 3600 * 1000000) as hour,
            count(*) as swaps,
            count(*) filter (where not success) as failed,
            coalesce(sum(
                case
                    when asset_in is null then amount_in
                    when asset_out is null then amount_out
                end
            ) filter (where success), 0)::double / 1e9 as volume_ton
        from dex_swaps
        group by all
        order by all
    """).pl()
    volume_chart = (
        alt.Chart(volumes, title="Volume by exchange")
        .mark_bar()
        .encode(
            x=alt.X("hour:T", title="hour (UTC)"),
            y=alt.Y("volume_ton:Q", title="volume (TON) per hour"),
            color=alt.Color("dex:N", title="exchange"),
            tooltip=["hour:T", "dex:N", "volume_ton:Q", "swaps:Q", "failed:Q"],
        )
        .properties(width="container", height=240)
    )
    volume_chart
    return volume_chart, volumes


@app.cell
def _(alt, lake):
    pairs = lake.sql("""
        select
            coalesce(left(asset_in, 10), 'TON') || ' to ' || coalesce(left(asset_out, 10), 'TON')
                as pair,
            dex,
            count(*) as swaps
        from dex_swaps
        where success
        group by all
        order by swaps desc, pair, dex
        limit 20
    """).pl()
    pairs_chart = (
        alt.Chart(pairs, title="Most traded pairs")
        .mark_bar()
        .encode(
            x=alt.X("swaps:Q", title="swaps (count)"),
            y=alt.Y("pair:N", title="from and to (raw address, shortened)", sort="-x"),
            color=alt.Color("dex:N", title="exchange"),
            tooltip=["pair:N", "dex:N", "swaps:Q"],
        )
        .properties(width="container")
    )
    pairs_chart
    return pairs, pairs_chart


@app.cell
def _(alt, lake):
    outcomes = lake.sql("""
        select
            dex,
            case when success then 'succeeded' else 'failed' end as outcome,
            count(*) as swaps
        from dex_swaps
        group by all
        order by all
    """).pl()
    outcomes_chart = (
        alt.Chart(outcomes, title="Swaps by outcome")
        .mark_bar()
        .encode(
            x=alt.X("swaps:Q", title="swaps (count)"),
            y=alt.Y("dex:N", title="exchange"),
            color=alt.Color("outcome:N", title="outcome"),
            tooltip=["dex:N", "outcome:N", "swaps:Q"],
        )
        .properties(width="container")
    )
    outcomes_chart
    return outcomes, outcomes_chart


if __name__ == "__main__":
    app.run()

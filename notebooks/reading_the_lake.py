"""Read the Parquet files with DuckDB, Polars, pandas and pyarrow, and compare sums."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Reading the lake")


@app.cell
def _():
    import os
    from pathlib import Path

    import altair as alt
    import duckdb
    import marimo as mo
    import polars as pl
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    from tonlake.lake.log.snapshot import open_snapshot

    folder = Path(mo.cli_args().get("lake") or os.environ.get("LAKE", ".demo/lake"))
    return alt, ds, duckdb, folder, mo, open_snapshot, pc, pl


@app.cell
def _(folder, mo):
    mo.md(f"""
    # Reading the lake without tonlake

    A lake is a folder of Parquet files: `{folder}/<table>/day=YYYY-MM-DD/*.parquet`. The commit
    log in `_log/` names the files of the current snapshot; files it does not name are orphans.
    Three ways to get the list: `tonlake views` (a `views.sql` for DuckDB), `open_snapshot` as
    below, or the JSON files of the log.
    """)
    return


@app.cell
def _(folder, open_snapshot):
    snapshot = open_snapshot(folder)
    files = [str(folder / file.path) for file in snapshot.files["transactions"]]
    return (files,)


@app.cell
def _(mo):
    mo.md("## DuckDB")
    return


@app.cell
def _(duckdb, files):
    by_duckdb = duckdb.sql(
        """
        select end_status, count(*)::bigint as transactions, sum(total_fees)::bigint as fees_nano
        from read_parquet($files)
        group by all
        order by all
        """,
        params={"files": files},
    ).pl()
    by_duckdb
    return (by_duckdb,)


@app.cell
def _(mo):
    mo.md("## Polars")
    return


@app.cell
def _(files, pl):
    by_polars = (
        pl.scan_parquet(files, hive_partitioning=True)
        .group_by("end_status")
        .agg(
            pl.len().cast(pl.Int64).alias("transactions"),
            pl.col("total_fees").sum().alias("fees_nano"),
        )
        .sort("end_status")
        .collect()
    )
    by_polars
    return (by_polars,)


@app.cell
def _(mo):
    mo.md("## pandas")
    return


@app.cell
def _(files, pl):
    import pandas as pd

    frame = pd.concat(
        [pd.read_parquet(file, columns=["end_status", "total_fees"]) for file in files]
    )
    grouped = frame.groupby("end_status")["total_fees"]
    by_pandas = pl.from_pandas(
        grouped.agg(transactions="count", fees_nano="sum").reset_index()
    ).sort("end_status")
    by_pandas
    return (by_pandas,)


@app.cell
def _(mo):
    mo.md("## pyarrow")
    return


@app.cell
def _(ds, files, pc, pl):
    table = ds.dataset(files, format="parquet").to_table(columns=["end_status", "total_fees"])
    by_pyarrow = (
        pl.from_arrow(
            table.group_by("end_status").aggregate([("total_fees", "count"), ("total_fees", "sum")])
        )
        .select(
            "end_status",
            pl.col("total_fees_count").alias("transactions"),
            pl.col("total_fees_sum").alias("fees_nano"),
        )
        .sort("end_status")
    )
    assert pc.sum(table["total_fees"]).as_py() == by_pyarrow["fees_nano"].sum()
    by_pyarrow
    return (by_pyarrow,)


@app.cell
def _(by_duckdb, by_pandas, by_polars, by_pyarrow, mo):
    others = {"Polars": by_polars, "pandas": by_pandas, "pyarrow": by_pyarrow}
    for name, frame_of in others.items():
        assert frame_of.rows() == by_duckdb.rows(), name
    mo.md("All four agree to the nanoton.")
    return


@app.cell
def _(alt, by_duckdb):
    status_chart = (
        alt.Chart(by_duckdb, title="Transactions by the account's status after the transaction")
        .mark_bar()
        .encode(
            x=alt.X("transactions:Q", title="transactions (count)").axis(tickCount=6),
            y=alt.Y("end_status:N", title="status", sort="-x"),
            tooltip=["end_status:N", "transactions:Q", "fees_nano:Q"],
        )
        .properties(width="container")
    )
    status_chart
    return (status_chart,)


@app.cell
def _(mo):
    mo.md("""
    ## Spark

    ```python
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    spark.read.parquet(*files).groupBy("end_status").count().show()
    ```

    Hashes are 32-byte binaries, TON amounts 64-bit nanoton, jetton amounts `DECIMAL(38, 0)`. All
    engines read them with default settings. `tonlake schema --markdown` prints the data dictionary.
    """)
    return


if __name__ == "__main__":
    app.run()

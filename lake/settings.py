"""Settings of the lake: ``[lake]`` (files, index, maintenance, DuckDB) and ``[pull]``.

The text in a setting's annotation is its documentation, which ``tonlake config`` shows.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

CONFIG_VARIABLE = "TONLAKE_CONFIG"
"""The environment variable with the file of settings."""

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]


class LakeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a lake's files are written, maintained and queried."""

    row_group_rows: Annotated[Positive, "Most rows in a row group of a Parquet file"] = 65_536
    zstd_level: Annotated[
        int, Meta(ge=1, le=22), "Compression level of Parquet files; of bags in large ones, 4 more"
    ] = 3
    build_index: Annotated[bool, "Build the index after ingest, and while following"] = True
    delta: Annotated[
        bool, "Keep a Delta Lake log beside each table; false: remove those there are"
    ] = True
    index_memory_rows: Annotated[
        int,
        "Most transactions without an index segment that are indexed in memory; with more, SQL"
        " answers instead",
    ] = 50_000
    maintenance_commits: Annotated[
        Count,
        "While following, segments are built and small files merged at the first commit and after"
        " every this many commits, at most a minute later; 0: never",
    ] = 64
    compact_rows: Annotated[
        Positive, "Most rows of one table that compaction puts into one file"
    ] = 1_000_000
    compact_commits: Annotated[
        Count, "While following, this many small commits are merged at a time; 0: none"
    ] = 16
    keep_days: Annotated[
        int,
        Meta(ge=0, le=36_500),
        "While following, days before the newest this many UTC days are pruned; 0: all stay",
    ] = 0
    orphan_grace_s: Annotated[
        Count,
        "Seconds before a file that no commit lists may be removed: a writer may still need it",
    ] = 3600
    replaced_grace_s: Annotated[
        Count,
        "Seconds before a file that a commit replaced may be removed, at most orphan_grace_s;"
        " files of open snapshots stay longer",
    ] = 60
    log_entries: Annotated[
        Positive, "Newest commits whose log entries stay; older ones are summed up"
    ] = 1_000
    log_age_s: Annotated[Count, "Seconds for which log entries stay, however many there are"] = 600
    check_digests: Annotated[bool, "Check every file's digest when a lake is opened"] = True
    cells_in_memory: Annotated[
        Count, "Most cells of code and data kept in memory; with more, SQL finds them"
    ] = 500_000
    recheck_s: Annotated[
        Count,
        "While serving, every file is read again and compared with its digest once in this many"
        " seconds; 0: never",
    ] = 86_400
    duckdb_memory_mib: Annotated[int, Meta(ge=64), "Memory limit of DuckDB in MiB"] = 1024
    duckdb_threads: Annotated[Positive, "Threads of DuckDB"] = 2
    labels: Annotated[
        str,
        "CSV or Parquet file with the columns address, label, category and source; the views show"
        " its labels in addition to the built-in ones; empty: none",
    ] = ""
    stablecoins: Annotated[
        str,
        "Jetton masters worth one US dollar, separated by commas; their swaps give the price of"
        " TON in dollars",
    ] = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"


class PullSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a lake is copied from another."""

    key: Annotated[str, "API key for the service that a lake is pulled from; empty: none"] = ""


class LakeSections(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sections that the lake's commands read; programs compose them with others."""

    lake: LakeSettings = LakeSettings()
    pull: PullSettings = PullSettings()

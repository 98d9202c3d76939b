"""Settings of the lake: ``[lake]`` (files, index, maintenance, DuckDB) and ``[pull]``."""

from typing import Annotated

import msgspec
from msgspec import Meta


class LakeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a lake's files are written, maintained and queried."""

    row_group_rows: Annotated[
        int, Meta(description="Most rows in a row group of a Parquet file", ge=1)
    ] = 65_536
    zstd_level: Annotated[
        int, Meta(description="Compression level of Parquet files", ge=1, le=22)
    ] = 3
    build_index: Annotated[
        bool, Meta(description="Build the index after ingest, and while following")
    ] = True
    delta: Annotated[
        bool,
        Meta(description="Keep a Delta Lake log beside each table; false: remove those there are"),
    ] = True
    index_memory_rows: Annotated[
        int,
        Meta(
            description="Most transactions without an index segment that are indexed in memory;"
            " with more, SQL answers instead"
        ),
    ] = 50_000
    maintenance_commits: Annotated[
        int,
        Meta(
            description="While following, segments are built and small files merged at the first"
            " commit and after every this many commits, at most a minute later; 0: never",
            ge=0,
        ),
    ] = 64
    compact_rows: Annotated[
        int, Meta(description="Most rows of one table that compaction puts into one file", ge=1)
    ] = 1_000_000
    compact_commits: Annotated[
        int,
        Meta(
            description="While following, this many small commits are merged at a time; 0: none",
            ge=0,
        ),
    ] = 16
    keep_days: Annotated[
        int,
        Meta(
            description="While following, days before the newest this many UTC days are pruned;"
            " 0: all stay",
            ge=0,
            le=36_500,
        ),
    ] = 0
    orphan_grace_s: Annotated[
        int,
        Meta(
            description="Seconds before a file that no commit lists may be removed: a writer may"
            " still need it",
            ge=0,
        ),
    ] = 3600
    replaced_grace_s: Annotated[
        int,
        Meta(
            description="Seconds before a file that a commit replaced may be removed, at most"
            " orphan_grace_s; files of open snapshots stay longer",
            ge=0,
        ),
    ] = 60
    log_entries: Annotated[
        int,
        Meta(description="Newest commits whose log entries stay; older ones are summed up", ge=1),
    ] = 1_000
    log_age_s: Annotated[
        int, Meta(description="Seconds for which log entries stay, however many there are", ge=0)
    ] = 600
    check_digests: Annotated[
        bool, Meta(description="Check every file's digest when a lake is opened")
    ] = True
    cells_in_memory: Annotated[
        int,
        Meta(
            description="Most cells of code and data kept in memory; with more, SQL finds them",
            ge=0,
        ),
    ] = 500_000
    recheck_s: Annotated[
        int,
        Meta(
            description="While serving, every file is read again and compared with its digest"
            " once in this many seconds; 0: never",
            ge=0,
        ),
    ] = 86_400
    duckdb_memory_mib: Annotated[int, Meta(description="Memory limit of DuckDB in MiB", ge=64)] = (
        1024
    )
    duckdb_threads: Annotated[int, Meta(description="Threads of DuckDB", ge=1)] = 2
    labels: Annotated[
        str,
        Meta(
            description="CSV or Parquet file with the columns address, label, category and source;"
            " the views show its labels in addition to the built-in ones; empty: none"
        ),
    ] = ""
    stablecoins: Annotated[
        str,
        Meta(
            description="Jetton masters worth one US dollar, separated by commas; their swaps give"
            " the price of TON in dollars"
        ),
    ] = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"


class PullSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a lake is copied from another."""

    key: Annotated[
        str, Meta(description="API key for the service that a lake is pulled from; empty: none")
    ] = ""


class LakeSections(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sections that the lake's commands read; programs compose them with others."""

    lake: LakeSettings = LakeSettings()
    pull: PullSettings = PullSettings()

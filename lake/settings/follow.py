"""Settings of following a node: polling, retries, roll-back, lag and maintenance."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.liteserver import LiteServerSettings


class FollowSettings(LiteServerSettings, frozen=True, forbid_unknown_fields=True):
    """Settings of the follower and of its monitoring."""

    follow_poll_ms: Annotated[
        int,
        Meta(description="Milliseconds between polls for new blocks with --follow", ge=1),
    ] = 50
    follow_event_pipe: Annotated[
        str,
        Meta(
            description=(
                "Named pipe given to the node as --db-event-fifo: an event triggers a poll at once;"
                " empty: none"
            )
        ),
    ] = ""
    follow_patience_ms: Annotated[
        int,
        Meta(
            description=(
                "While following, milliseconds to retry an unreadable block before it is skipped as"
                " a hole"
            ),
            ge=0,
        ),
    ] = 30_000
    follow_heal_s: Annotated[
        int,
        Meta(description="Seconds between attempts to fill holes while following; 0: never", ge=0),
    ] = 600
    follow_shorter_ms: Annotated[
        int,
        Meta(
            description=(
                "Milliseconds that a node's chain must end before the lake's before the missing"
                " blocks are undone"
            ),
            ge=0,
        ),
    ] = 5000
    undo_mc_blocks: Annotated[
        int,
        Meta(
            description=(
                "Most masterchain blocks that a follower undoes when the node has another chain;"
                " beyond that it stops"
            ),
            ge=0,
        ),
    ] = 1000
    follow_restart_s: Annotated[
        int,
        Meta(description="Longest delay in seconds before a dead follower is restarted", ge=1),
    ] = 30
    ready_lag_s: Annotated[
        int,
        Meta(
            description=(
                "/readyz returns 503 while a followed lake lags its node by more than this many"
                " seconds; 0: never"
            ),
            ge=0,
        ),
    ] = 60
    upkeep_commits: Annotated[
        int,
        Meta(
            description=(
                "While following, commits between maintenance runs (index built, small files"
                " merged), also run at the first commit; 0: never"
            ),
            ge=0,
        ),
    ] = 16
    remembered_rows: Annotated[
        int,
        Meta(
            description="State cells, and account states, that ingest caches between commits",
            ge=1,
        ),
    ] = 100_000
    plain_rows: Annotated[
        int,
        Meta(
            description=(
                "Parquet files of at most this many rows are written without compression,"
                " dictionaries and bloom filters, since they are soon merged"
            ),
            ge=0,
        ),
    ] = 1000

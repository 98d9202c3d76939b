"""Settings of following a node: how often to look, how patient to be, when to call it late."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.liteserver import LiteServerSettings


class FollowSettings(LiteServerSettings, frozen=True, forbid_unknown_fields=True):
    """The part of the settings that a follower and those who watch it read."""

    follow_poll_ms: Annotated[
        int,
        Meta(description="Milliseconds between looks for new blocks with --follow", ge=1),
    ] = 50
    follow_event_pipe: Annotated[
        str,
        Meta(
            description=(
                "Named pipe that the node was given as --db-event-fifo: an event there ends the"
                " pause between two looks; empty: none"
            )
        ),
    ] = ""
    follow_patience_ms: Annotated[
        int,
        Meta(
            description=(
                "While following, a block that cannot be read is tried again so many milliseconds"
                " before it is passed over as a hole"
            ),
            ge=0,
        ),
    ] = 30_000
    follow_heal_s: Annotated[
        int,
        Meta(
            description="Seconds between tries to fill holes while following; 0: never",
            ge=0,
        ),
    ] = 600
    follow_shorter_ms: Annotated[
        int,
        Meta(
            description=(
                "Milliseconds that a node must say its chain ends before the lake's until the"
                " blocks it lacks are undone"
            ),
            ge=0,
        ),
    ] = 5000
    undo_mc_blocks: Annotated[
        int,
        Meta(
            description=(
                "Most masterchain blocks that a follower undoes when the node has another chain;"
                " beyond it stops and says what to do"
            ),
            ge=0,
        ),
    ] = 1000
    follow_restart_s: Annotated[
        int,
        Meta(description="Most seconds before a follower that died is started again", ge=1),
    ] = 30
    ready_lag_s: Annotated[
        int,
        Meta(
            description=(
                "/readyz answers 503 while a followed lake is so many seconds behind its node;"
                " 0: never"
            ),
            ge=0,
        ),
    ] = 60
    upkeep_commits: Annotated[
        int,
        Meta(
            description=(
                "While following, look-ups are built and small files merged at the first commit "
                "and every so many commits; 0: never"
            ),
            ge=0,
        ),
    ] = 16
    remembered_rows: Annotated[
        int,
        Meta(
            description="State cells, and account states, that ingest remembers between commits",
            ge=1,
        ),
    ] = 100_000
    plain_rows: Annotated[
        int,
        Meta(
            description=(
                "A Parquet file of at most this many rows is written without compression,"
                " dictionaries and bloom filters: it is made often, read fast and merged soon"
            ),
            ge=0,
        ),
    ] = 1000

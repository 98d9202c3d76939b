"""Settings of lite servers: how they are asked for blocks, and which of them take messages."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.access import AccessSettings


class LiteServerSettings(AccessSettings, frozen=True, forbid_unknown_fields=True):
    """The part of the settings that is about lite servers."""

    liteserver_poll_ms: Annotated[
        int, Meta(description="How often lite servers are asked for their newest block", ge=0)
    ] = 500
    liteserver_timeout_ms: Annotated[
        int,
        Meta(description="Milliseconds a lite server may take; then another one is asked", ge=1),
    ] = 10_000
    liteserver_queries: Annotated[
        int, Meta(description="Questions that lite servers are asked at once", ge=1)
    ] = 16
    liteserver_proofs: Annotated[
        bool,
        Meta(
            description="Take from lite servers only what validators signed, from the init_block of"
            " the configuration file on"
        ),
    ] = False
    upstream_liteserver: Annotated[
        str,
        Meta(
            description="Where messages are sent without upstream_url: to the lite servers of this"
            " configuration file of a network"
        ),
    ] = ""

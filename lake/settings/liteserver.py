"""Settings of lite servers: queries, proofs and sending."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.access import AccessSettings


class LiteServerSettings(AccessSettings, frozen=True, forbid_unknown_fields=True):
    """Settings of lite servers."""

    liteserver_poll_ms: Annotated[
        int,
        Meta(description="Milliseconds between queries for the newest block of lite servers", ge=0),
    ] = 500
    liteserver_timeout_ms: Annotated[
        int,
        Meta(description="Milliseconds before a lite server query tries another server", ge=1),
    ] = 10_000
    liteserver_queries: Annotated[int, Meta(description="Parallel lite server queries", ge=1)] = 16
    liteserver_proofs: Annotated[
        bool,
        Meta(
            description="Accept only blocks signed by validators from lite servers, starting at the"
            " init_block of the configuration file"
        ),
    ] = False
    upstream_liteserver: Annotated[
        str,
        Meta(
            description="Global configuration file whose lite servers receive messages if"
            " upstream_url is unset"
        ),
    ] = ""

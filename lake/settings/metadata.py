"""Settings of fetching what tokens say of themselves outside of the chain."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.sql import SqlSettings


class MetadataSettings(SqlSettings, frozen=True, forbid_unknown_fields=True):
    """The part of the settings that the fetcher of token content reads."""

    fetch_metadata: Annotated[
        bool,
        Meta(description="While serving, fetch token content that lies outside of the chain"),
    ] = False
    ipfs_gateway: Annotated[
        str,
        Meta(
            description="What stands for ipfs:// when token content is fetched; unset: it is not",
            pattern="^(https://.+/)?$",
        ),
    ] = "https://ipfs.io/ipfs/"
    metadata_networks: Annotated[
        str,
        Meta(
            description=(
                "Internal networks that token content may be fetched from, at any port, such as"
                " 10.1.0.0/16, with commas; unset: public addresses at port 443 alone"
            )
        ),
    ] = ""
    metadata_bytes: Annotated[
        int, Meta(description="Largest token content that is fetched, in bytes", ge=1)
    ] = 1 << 20
    metadata_timeout_ms: Annotated[
        int,
        Meta(description="Milliseconds that fetching one token's content may take in all", ge=1),
    ] = 5000
    metadata_redirects: Annotated[
        int, Meta(description="Most redirects that are followed for one token's content", ge=0)
    ] = 3
    metadata_connections: Annotated[
        int, Meta(description="Token contents that are fetched at once", ge=1)
    ] = 8
    metadata_attempts: Annotated[
        int, Meta(description="Token content is given up after so many failed tries", ge=1)
    ] = 5
    metadata_retry_s: Annotated[
        int,
        Meta(description="Seconds before a failed fetch is tried again, doubled each time", ge=1),
    ] = 60
    metadata_refresh_s: Annotated[
        int,
        Meta(description="Seconds before fetched content is fetched anew; 0: never", ge=0),
    ] = 604_800
    metadata_poll_s: Annotated[
        int, Meta(description="Seconds between looks for token content to fetch", ge=1)
    ] = 60

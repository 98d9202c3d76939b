"""Settings of fetching off-chain token metadata."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.sql import SqlSettings


class MetadataSettings(SqlSettings, frozen=True, forbid_unknown_fields=True):
    """Settings of the metadata fetcher."""

    fetch_metadata: Annotated[
        bool,
        Meta(description="While serving, fetch off-chain token metadata"),
    ] = False
    ipfs_gateway: Annotated[
        str,
        Meta(
            description="Gateway URL for ipfs:// metadata; unset: ipfs:// is not fetched",
            pattern="^(https://.+/)?$",
        ),
    ] = "https://ipfs.io/ipfs/"
    metadata_networks: Annotated[
        str,
        Meta(
            description=(
                "Private networks that metadata may be fetched from, at any port, comma-separated,"
                " such as 10.1.0.0/16; unset: only public addresses, port 443"
            )
        ),
    ] = ""
    metadata_bytes: Annotated[int, Meta(description="Largest metadata document in bytes", ge=1)] = (
        1 << 20
    )
    metadata_timeout_ms: Annotated[
        int,
        Meta(
            description="Milliseconds for fetching one metadata document, redirects included", ge=1
        ),
    ] = 5000
    metadata_redirects: Annotated[
        int, Meta(description="Most redirects per metadata document", ge=0)
    ] = 3
    metadata_connections: Annotated[int, Meta(description="Concurrent metadata fetches", ge=1)] = 8
    metadata_attempts: Annotated[
        int, Meta(description="Failed attempts before a metadata URI is given up", ge=1)
    ] = 5
    metadata_retry_s: Annotated[
        int,
        Meta(description="Seconds before a failed fetch is retried, doubled each time", ge=1),
    ] = 60
    metadata_refresh_s: Annotated[
        int,
        Meta(description="Seconds before fetched metadata is refreshed; 0: never", ge=0),
    ] = 604_800
    metadata_poll_s: Annotated[
        int, Meta(description="Seconds between polls for metadata to fetch", ge=1)
    ] = 60

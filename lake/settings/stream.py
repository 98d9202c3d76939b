"""Settings of streams and of pending messages."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.follow import FollowSettings


class StreamSettings(FollowSettings, frozen=True, forbid_unknown_fields=True):
    """Settings of streams and of the pool of pending messages."""

    stream_clients: Annotated[
        int, Meta(description="Concurrent stream clients; more are refused with 503", ge=0)
    ] = 1000
    stream_client_events: Annotated[
        int,
        Meta(description="Events buffered for one stream client before it is disconnected", ge=1),
    ] = 10_000
    pending_messages: Annotated[
        int,
        Meta(description="Most pending messages kept until they are in a block; 0: none", ge=0),
    ] = 10_000
    pending_expiry_s: Annotated[
        int,
        Meta(description="Seconds until a pending message expires", ge=1),
    ] = 120

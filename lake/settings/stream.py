"""Settings of what is pushed to clients, and of messages that are not in a block yet."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.follow import FollowSettings


class StreamSettings(FollowSettings, frozen=True, forbid_unknown_fields=True):
    """The part of the settings that streams and the pool of pending messages read."""

    stream_clients: Annotated[
        int, Meta(description="Clients of streams at once; more are told to come later", ge=0)
    ] = 1000
    stream_client_events: Annotated[
        int,
        Meta(
            description="Events that may wait for one client of a stream; with more it is closed",
            ge=1,
        ),
    ] = 10_000
    pending_messages: Annotated[
        int,
        Meta(description="Messages kept until they are in a block; 0 keeps none", ge=0),
    ] = 10_000
    pending_expiry_s: Annotated[
        int,
        Meta(description="Seconds until a message that is in no block is given up", ge=1),
    ] = 120

"""Settings of SQL over HTTP: whether it is enabled, and the limits of a statement."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from lake.settings.stream import StreamSettings


class SqlSettings(StreamSettings, frozen=True, forbid_unknown_fields=True):
    """Settings of ``/sql``."""

    sql_enabled: Annotated[
        bool, Meta(description="Enable SQL over HTTP: /sql, for programs and as a page")
    ] = False
    sql_workers: Annotated[
        int, Meta(description="SQL over HTTP: concurrent statements, one process each", ge=1)
    ] = 2
    sql_queue: Annotated[
        int, Meta(description="SQL over HTTP: statements that may wait for a process", ge=0)
    ] = 8
    sql_timeout_ms: Annotated[
        int, Meta(description="SQL over HTTP: milliseconds a statement may run", ge=1)
    ] = 10_000
    sql_memory_mib: Annotated[
        int, Meta(description="SQL over HTTP: memory limit of a statement in MiB", ge=128)
    ] = 1024
    sql_rows: Annotated[int, Meta(description="SQL over HTTP: most rows of a result", ge=1)] = (
        100_000
    )
    sql_text_bytes: Annotated[
        int, Meta(description="SQL over HTTP: longest statement in bytes", ge=1)
    ] = 65_536
    sql_user: Annotated[
        str,
        Meta(description="SQL over HTTP: user that runs statements if the service runs as root"),
    ] = "nobody"

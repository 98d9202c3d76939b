"""Settings of the API, by section, and the struct with all settings."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tonlake.ingest.settings import IngestSections


class HttpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Address, limits and response formats of the API."""

    host: Annotated[str, Meta(description="Address the API listens on")] = "127.0.0.1"
    port: Annotated[
        int, Meta(description="Port the API listens on; 0: a free one", ge=0, le=65535)
    ] = 8080
    requests_in_flight: Annotated[
        int, Meta(description="Maximum concurrent requests; more get 503", ge=1)
    ] = 1000
    request_wait_ms: Annotated[
        int, Meta(description="Milliseconds a request may wait for a thread; then 503", ge=1)
    ] = 2000
    request_threads: Annotated[
        int,
        Meta(
            description="Threads for requests that need files; those for a hundred rows or more"
            " have as many again",
            ge=1,
        ),
    ] = 2
    body_timeout_ms: Annotated[
        int, Meta(description="Timeout of a request body in milliseconds; then 408", ge=1)
    ] = 30_000
    query_timeout_ms: Annotated[
        int, Meta(description="Timeout of a query in milliseconds; 0: no limit", ge=0)
    ] = 3000
    query_rows: Annotated[
        int,
        Meta(description="Rows a page may read without an index; 0: no limit", ge=0),
    ] = 20_000_000
    response_bytes: Annotated[int, Meta(description="Maximum response body", ge=1)] = 64 << 20
    cache_mib: Annotated[
        int,
        Meta(description="Memory of the response cache, valid until a commit, in MiB", ge=0),
    ] = 48
    cors_origins: Annotated[
        str,
        Meta(
            description="Web origins whose pages may call the API, separated by commas; *: all,"
            " empty: none"
        ),
    ] = "*"
    max_limit: Annotated[
        int, Meta(description="Maximum rows of a list, in both API versions", ge=1)
    ] = 1000
    opcode_format: Annotated[
        Literal["hex", "integer"], Meta(description="API v3: format of opcodes")
    ] = "hex"
    testnet: Annotated[
        bool | None,
        Meta(description="Test-only flag in friendly addresses; unset: by the lake's network"),
    ] = None
    strict_parameters: Annotated[
        bool,
        Meta(description="Refuse unknown and repeated query parameters instead of warning"),
    ] = False
    debug_headers: Annotated[
        bool,
        Meta(description="Add a response header with what answered: index, SQL or both"),
    ] = False


class AccessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Access control: API keys, rate limits, published files, proxies."""

    keys_file: Annotated[
        str,
        Meta(description="File of API keys, managed with tonlake key; empty: keys are ignored"),
    ] = ""
    keys_required: Annotated[
        bool, Meta(description="Refuse requests without an API key; needs keys_file")
    ] = False
    rate_limits: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="Limit requests per second; auto: unless [http] host is a loopback"),
    ] = "auto"
    anonymous_rps: Annotated[
        int, Meta(description="Requests per second of one address without an API key", ge=1)
    ] = 1
    publish: Annotated[
        bool,
        Meta(
            description="Serve the lake's own files below /lake, for tonlake pull; with a key,"
            " except to this machine"
        ),
    ] = False
    trusted_proxies: Annotated[
        str,
        Meta(
            description="Addresses and networks of proxies whose X-Forwarded-For names the client,"
            " separated by commas; *: all, empty: none"
        ),
    ] = "127.0.0.1,::1"


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Format and content of the log."""

    format: Annotated[
        Literal["text", "json"], Meta(description="Format of the log; json: one object per line")
    ] = "text"
    requests: Annotated[
        bool, Meta(description="Log every request: route, status, time; never keys or parameters")
    ] = False


class MetricsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Access to metrics."""

    public: Annotated[
        bool,
        Meta(description="Serve /metrics without a key even if other machines can connect"),
    ] = False


class UpstreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Destination of messages that clients send."""

    url: Annotated[
        str,
        Meta(
            description="Service of API v2 that messages are sent to, as https://host/api/v2",
            pattern="^(https?://.+)?$",
        ),
    ] = ""
    key: Annotated[str, Meta(description="API key for the upstream service")] = ""
    liteserver: Annotated[
        str,
        Meta(
            description="Network configuration with lite servers that messages are sent to, if url"
            " is not set"
        ),
    ] = ""


class StreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of streams."""

    clients: Annotated[
        int, Meta(description="Maximum concurrent stream clients; more get 503", ge=0)
    ] = 1000


class PendingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of pending messages."""

    messages: Annotated[
        int, Meta(description="Maximum pending messages to keep; 0: none", ge=0)
    ] = 10_000


class SqlSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """SQL over HTTP, and the limits of a statement."""

    enabled: Annotated[
        bool, Meta(description="Answer SQL over HTTP: /sql, for programs and as a page")
    ] = False
    workers: Annotated[
        int, Meta(description="Maximum concurrent statements, each in its own process", ge=1)
    ] = 2
    hosts: Annotated[
        str,
        Meta(
            description="Host names of the service that may be used for /sql, separated by commas;"
            " IP addresses and localhost are always allowed"
        ),
    ] = ""
    timeout_ms: Annotated[int, Meta(description="Milliseconds a statement may run", ge=1)] = 10_000
    memory_mib: Annotated[int, Meta(description="Memory limit of a statement in MiB", ge=128)] = (
        1024
    )
    rows: Annotated[int, Meta(description="Maximum rows of a result", ge=1)] = 100_000
    user: Annotated[
        str, Meta(description="User that statements run as, if the service runs as root")
    ] = "nobody"


class ScanSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of scans."""

    clients: Annotated[
        int,
        Meta(
            description="Maximum concurrent scans, a quarter of them per API key or address; more"
            " get 503 or 429",
            ge=0,
        ),
    ] = 64


class Settings(IngestSections, frozen=True, forbid_unknown_fields=True):
    """All settings, by section, with their defaults."""

    http: HttpSettings = HttpSettings()
    access: AccessSettings = AccessSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    upstream: UpstreamSettings = UpstreamSettings()
    stream: StreamSettings = StreamSettings()
    pending: PendingSettings = PendingSettings()
    sql: SqlSettings = SqlSettings()
    scan: ScanSettings = ScanSettings()

"""Settings of the API, by section, and the struct with all settings."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tonlake.ingest.settings import IngestSections
from tonlake.lake.settings import Count, Positive


class HttpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Address, limits and response formats of the API."""

    host: Annotated[str, "Address the API listens on"] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535), "Port the API listens on; 0: a free one"] = 8080
    requests_in_flight: Annotated[Positive, "Maximum concurrent requests; more get 503"] = 1000
    request_wait_ms: Annotated[
        Positive, "Milliseconds a request may wait for a thread; then 503"
    ] = 2000
    request_threads: Annotated[
        Positive,
        "Threads for requests that need files; those for a hundred rows or more have as many again",
    ] = 2
    body_timeout_ms: Annotated[Positive, "Timeout of a request body in milliseconds; then 408"] = (
        30_000
    )
    query_timeout_ms: Annotated[Count, "Timeout of a query in milliseconds; 0: no limit"] = 3000
    query_rows: Annotated[Count, "Rows a page may read without an index; 0: no limit"] = 20_000_000
    response_bytes: Annotated[Positive, "Maximum response body"] = 64 << 20
    cache_mib: Annotated[Count, "Memory of the response cache, valid until a commit, in MiB"] = 48
    cors_origins: Annotated[
        str, "Web origins whose pages may call the API, separated by commas; *: all, empty: none"
    ] = "*"
    max_limit: Annotated[Positive, "Maximum rows of a list, in both API versions"] = 1000
    opcode_format: Annotated[Literal["hex", "integer"], "API v3: format of opcodes"] = "hex"
    testnet: Annotated[
        bool | None, "Test-only flag in friendly addresses; unset: by the lake's network"
    ] = None
    strict_parameters: Annotated[
        bool, "Refuse unknown and repeated query parameters instead of warning"
    ] = False
    debug_headers: Annotated[
        bool, "Add a response header with what answered: index, SQL or both"
    ] = False


class AccessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Access control: API keys, rate limits, published files, proxies."""

    keys_file: Annotated[
        str, "File of API keys, managed with tonlake key; empty: keys are ignored"
    ] = ""
    keys_required: Annotated[bool, "Refuse requests without an API key; needs keys_file"] = False
    rate_limits: Annotated[
        Literal["auto", "on", "off"],
        "Limit requests per second; auto: unless [http] host is a loopback",
    ] = "auto"
    anonymous_rps: Annotated[Positive, "Requests per second of one address without an API key"] = 1
    publish: Annotated[
        bool,
        "Serve the lake's own files below /lake, for tonlake pull; with a key, except to this"
        " machine",
    ] = False
    trusted_proxies: Annotated[
        str,
        "Addresses and networks of proxies whose X-Forwarded-For names the client, separated by"
        " commas; *: all, empty: none",
    ] = "127.0.0.1,::1"


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Format and content of the log."""

    format: Annotated[Literal["text", "json"], "Format of the log; json: one object per line"] = (
        "text"
    )
    requests: Annotated[
        bool, "Log every request: route, status, time; never keys or parameters"
    ] = False


class MetricsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Access to metrics."""

    public: Annotated[bool, "Serve /metrics without a key even if other machines can connect"] = (
        False
    )


class UpstreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Destination of messages that clients send."""

    url: Annotated[
        str,
        Meta(pattern="^(https?://.+)?$"),
        "Service of API v2 that messages are sent to, as https://host/api/v2",
    ] = ""
    key: Annotated[str, "API key for the upstream service"] = ""
    liteserver: Annotated[
        str, "Network configuration with lite servers that messages are sent to, if url is not set"
    ] = ""


class StreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of streams."""

    clients: Annotated[Count, "Maximum concurrent stream clients; more get 503"] = 1000


class PendingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of pending messages."""

    messages: Annotated[Count, "Maximum pending messages to keep; 0: none"] = 10_000


class SqlSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """SQL over HTTP, and the limits of a statement."""

    enabled: Annotated[bool, "Answer SQL over HTTP: /sql, for programs and as a page"] = False
    workers: Annotated[Positive, "Maximum concurrent statements, each in its own process"] = 2
    hosts: Annotated[
        str,
        "Host names of the service that may be used for /sql, separated by commas; IP addresses"
        " and localhost are always allowed",
    ] = ""
    timeout_ms: Annotated[Positive, "Milliseconds a statement may run"] = 10_000
    memory_mib: Annotated[int, Meta(ge=128), "Memory limit of a statement in MiB"] = 1024
    rows: Annotated[Positive, "Maximum rows of a result"] = 100_000
    user: Annotated[str, "User that statements run as, if the service runs as root"] = "nobody"


class ScanSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of scans."""

    clients: Annotated[
        Count,
        "Maximum concurrent scans, a quarter of them per API key or address; more get 503 or 429",
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

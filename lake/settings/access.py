"""Settings of API keys, rate limits, overload, metrics and logs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class AccessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of keys, limits, metrics and logs."""

    keys_file: Annotated[
        str,
        Meta(description="File of API keys, managed with tonlake key; unset: keys are ignored"),
    ] = ""
    keys_required: Annotated[
        bool, Meta(description="Refuse requests without an API key; needs keys_file")
    ] = False
    rate_limits: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="Rate limits; auto: on unless http_host is a loopback address"),
    ] = "auto"
    anonymous_rps: Annotated[
        int, Meta(description="Requests per second from one address without an API key", ge=1)
    ] = 1
    key_rps: Annotated[
        int,
        Meta(description="Requests per second for a new API key; tonlake key add --rps", ge=1),
    ] = 10
    requests_in_flight: Annotated[
        int, Meta(description="Concurrent requests; more are refused with 503", ge=1)
    ] = 1000
    request_wait_ms: Annotated[
        int,
        Meta(description="Milliseconds a request may wait for a thread before 503", ge=1),
    ] = 2000
    request_threads: Annotated[
        int,
        Meta(description="Threads for requests, and as many more for slow requests", ge=1),
    ] = 2
    cors_origins: Annotated[
        str,
        Meta(description="CORS origins, comma-separated; *: all, unset: none"),
    ] = "*"
    metrics_public: Annotated[
        bool,
        Meta(description="Serve /metrics to remote clients without a key"),
    ] = False
    log_format: Annotated[
        Literal["text", "json"], Meta(description="Log format; json: one object per line")
    ] = "text"
    log_requests: Annotated[
        bool,
        Meta(description="Log every request: route, status, duration; never keys or parameters"),
    ] = False
    debug_headers: Annotated[
        bool,
        Meta(description="Send X-Tonlake-Answered-By with every answer: index, sql or mixed"),
    ] = False
    otel_endpoint: Annotated[
        str,
        Meta(
            description="OpenTelemetry collector for spans of requests and queries (OTLP over "
            "HTTP), such as http://127.0.0.1:4318; unset: none; needs the extra [otel]",
            pattern=r"^(https?://[^\s?#]+)?$",
        ),
    ] = ""

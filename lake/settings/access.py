"""Settings of who may ask, how often, and what those who run the service see of it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class AccessSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The part of the settings that keys, limits, metrics and logs read."""

    keys_file: Annotated[
        str,
        Meta(description="File of API keys, kept with tonlake key; unset: keys are not looked at"),
    ] = ""
    keys_required: Annotated[
        bool, Meta(description="Refuse requests without an API key; needs keys_file")
    ] = False
    rate_limits: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="Limit requests a second; auto: unless http_host is this machine's own"),
    ] = "auto"
    anonymous_rps: Annotated[
        int, Meta(description="Requests a second of one address without an API key", ge=1)
    ] = 1
    key_rps: Annotated[
        int, Meta(description="Requests a second of a new API key: tonlake key add --rps", ge=1)
    ] = 10
    requests_in_flight: Annotated[
        int, Meta(description="Requests on their way at once; more are told to come later", ge=1)
    ] = 1000
    request_wait_ms: Annotated[
        int,
        Meta(description="Milliseconds a request may wait for a thread; then: come later", ge=1),
    ] = 2000
    request_threads: Annotated[
        int,
        Meta(description="Threads that answer requests; as many more do what takes long", ge=1),
    ] = 2
    cors_origins: Annotated[
        str,
        Meta(description="Web origins whose pages may ask, with commas; *: all, unset: none"),
    ] = "*"
    metrics_public: Annotated[
        bool,
        Meta(description="Answer /metrics without a key where others than this machine may ask"),
    ] = False
    log_format: Annotated[
        Literal["text", "json"], Meta(description="How the service logs: a JSON object a line")
    ] = "text"
    log_requests: Annotated[
        bool, Meta(description="Log every request: route, status, time; never keys or parameters")
    ] = False
    debug_headers: Annotated[
        bool,
        Meta(description="Send X-Tonlake-Answered-By with every answer: index, sql or mixed"),
    ] = False
    otel_endpoint: Annotated[
        str,
        Meta(
            description="Collector that takes spans of requests and queries (OpenTelemetry, OTLP "
            "over HTTP), such as http://127.0.0.1:4318; unset: none; needs the extra [otel]",
            pattern=r"^(https?://[^\s?#]+)?$",
        ),
    ] = ""

"""Sends spans of requests and named queries to an OpenTelemetry collector.

This module needs the extra [otel]; ``meter`` imports it if it is configured. A span has the values
of metric labels: route, method, status, query name. It has no path, parameter, key or address of a
client.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from opentelemetry.trace import Span

NAME = "tonlake"
GIVE_UP_S = 5
"""Timeout of the collector; on failure spans are lost, requests are unaffected."""

_PARENT = TraceContextTextMapPropagator()
_PARENT_HEADERS = frozenset({b"traceparent", b"tracestate"})


class RequestSpan:
    """The span of a request; queries of the request in any thread are its children."""

    def __init__(self, span: Span) -> None:
        """Make ``span`` the current span of the running task."""
        self._span = span
        self._token = context.attach(trace.set_span_in_context(span))

    def end(self, method: str, route: str, status: str) -> None:
        """End the span with the labels of the request."""
        context.detach(self._token)
        self._span.update_name(f"{method} {route}")
        self._span.set_attributes({"http.request.method": method, "http.route": route})
        if status.isdigit():
            self._span.set_attribute("http.response.status_code", int(status))
        if status.startswith("5"):
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class Spans:
    """Sends spans to the collector at ``endpoint`` from a background thread."""

    def __init__(self, endpoint: str) -> None:
        """Take the URL of an OTLP/HTTP collector."""
        resource = Resource.create({SERVICE_NAME: NAME, SERVICE_VERSION: version(NAME)})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=GIVE_UP_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(NAME)

    def begin(self, scope: Any) -> RequestSpan:  # noqa: ANN401 - a scope of either kind
        """Begin the span of a request, as a child of the client's span if the headers name one."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope.get("headers", ())
            if name in _PARENT_HEADERS
        }
        parent = _PARENT.extract(headers)
        return RequestSpan(self._tracer.start_span("request", parent, SpanKind.SERVER))

    def note_query(self, name: str, seconds: float) -> None:
        """Record a query that has just ended, in the thread that ran it."""
        now_ns = time.time_ns()
        span = self._tracer.start_span(name, start_time=now_ns - round(seconds * 1e9))
        span.set_attribute("db.query.summary", name)
        span.end(now_ns)

    def close(self) -> None:
        """Send the remaining spans and end the thread."""
        self._provider.shutdown()

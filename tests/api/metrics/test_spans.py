"""Spans: the data about requests that is exported to an OpenTelemetry collector."""

from __future__ import annotations

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import pytest
from litestar.testing import TestClient

from tests.patience import compose, patient
from tonlake.api.app import create_app
from tonlake.api.metrics import meter
from tonlake.api.settings import Settings
from tonlake.lake.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

CLIENT_TRACE, CLIENT_SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(BaseHTTPRequestHandler):
    """Stores the exported spans."""

    spans: ClassVar[list[Any]] = []
    bodies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.path == "/v1/traces"
        sent = trace_service.ExportTraceServiceRequest.FromString(body)
        self.bodies.append(body)
        self.spans.extend(
            span
            for resource in sent.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        )
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - a name of theirs
        pass


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none")
    Collector.spans, Collector.bodies = [], []
    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_requests_and_their_queries_are_traced(demo_lake: Path, endpoint: str) -> None:
    settings = patient(metrics={"otel_endpoint": endpoint}, http={"cache_mib": 0})
    secret, address = "a-key-of-somebody", "0:" + "5" * 64
    parent = {"traceparent": f"00-{CLIENT_TRACE}-{CLIENT_SPAN}-01", "X-API-Key": secret}
    with TestClient(create_app(demo_lake, settings)) as client:
        found = client.get(
            "/blocks", params={"address": address, "api_key": secret}, headers=parent
        )
        assert found.status_code == 200
        assert client.get(f"/nothing/{address}").status_code == 404
    served = {span.name: span for span in Collector.spans}
    asked = served["GET /blocks"]
    assert attributes(asked) == {
        "http.request.method": "GET",
        "http.route": "/blocks",
        "http.response.status_code": 200,
    }
    assert (asked.trace_id.hex(), asked.parent_span_id.hex()) == (CLIENT_TRACE, CLIENT_SPAN)
    within = [span for span in Collector.spans if span.parent_span_id == asked.span_id]
    assert "explorer/latest_blocks" in {span.name for span in within}
    for span in within:
        assert attributes(span) == {"db.query.summary": span.name}
        assert asked.start_time_unix_nano <= span.end_time_unix_nano <= asked.end_time_unix_nano
    assert attributes(served["GET unknown"])["http.response.status_code"] == 404
    for private in (secret, address, "testclient"):
        assert not any(private.encode() in body for body in Collector.bodies)


def test_faults_of_the_service_are_marked(tmp_path: Path, endpoint: str) -> None:
    with TestClient(
        create_app(tmp_path / "none", compose(metrics={"otel_endpoint": endpoint}))
    ) as client:
        assert client.get("/api/v3/masterchainInfo").status_code == 503
    assert [span.status.code for span in Collector.spans] == [2]


def test_nothing_is_loaded_where_nothing_is_asked_for(demo_lake: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tonlake.api.app import create_app;"
        "from tonlake.api.settings import Settings; create_app(Path(sys.argv[1]), Settings());"
        "print({'opentelemetry.sdk', 'tonlake.api.metrics.spans'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(demo_lake)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tonlake.api.metrics.spans", None)
    with pytest.raises(SettingsError, match=r"otel_endpoint needs tonlake's extra \[otel\]"):
        meter.open_spans("http://127.0.0.1:4318")
    assert meter.open_spans("") is None


@pytest.mark.parametrize("endpoint", ["collector:4318", "ftp://collector", "http://c/?key=1"])
def test_an_endpoint_is_an_address(endpoint: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="otel_endpoint"):
        msgspec.convert({"metrics": {"otel_endpoint": endpoint}}, Settings)

"""An in-process S3 server that records requests and can inject faults."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from werkzeug.serving import WSGIRequestHandler, make_server

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_REGION": "us-east-1",
}
_REFUSAL = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class _Quiet(WSGIRequestHandler):
    # A request takes one millisecond instead of forty: header and body are sent without delay.
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"

    def log_request(self, *_: Any) -> None:
        """Suppress the request log."""


class S3Server:
    """Moto's server; ``fault`` decides how a request fails: "refuse", "cut", "flip" or not."""

    def __init__(self) -> None:
        # Takes 0.4 s, and each worker of a run imports this module.
        from moto.moto_server import werkzeug_app  # noqa: PLC0415

        self.requests: list[tuple[str, str]] = []
        self.fault: Callable[[str, str], str | None] = lambda _method, _path: None
        self._app = werkzeug_app.DomainDispatcherApplication(werkzeug_app.create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet
        )
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @contextmanager
    def running(self) -> "Iterator[S3Server]":
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    @contextmanager
    def failing(self, fault: Callable[[str, str], str | None]) -> Iterator[None]:
        before, self.fault = self.fault, fault
        try:
            yield
        finally:
            self.fault = before

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.requests.append((method, path))
        match self.fault(method, path):
            case "refuse":
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                start("403 FORBIDDEN", [("Content-Length", str(len(_REFUSAL)))])
                return [] if method == "HEAD" else [_REFUSAL]
            case "cut":
                body = b"".join(self._app(environ, start))
                return [body[: len(body) // 2]]
            case "flip":
                body = b"".join(self._app(environ, start))
                return [body[:-20], bytes([body[-20] ^ 1]), body[-19:]]
        return list(self._app(environ, start))

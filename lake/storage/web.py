"""A read-only folder on any web server that serves static files.

A download that breaks off is resumed by a range request; if the server does not support ranges, the
beginning is read again and skipped. The reader verifies the content.
"""

import re
import time
from collections.abc import Generator
from http import HTTPStatus
from queue import LifoQueue
from typing import TYPE_CHECKING

from tonlake.lake.errors import StorageError

if TYPE_CHECKING:
    import httpx

_CONNECT_S, _READ_S = 10, 60
_CONNECTIONS = 5
"""Python's own server has a backlog of five: further connections retry after a second."""

_ATTEMPTS, _LIMITED_ATTEMPTS = 5, 120
"""Attempts without progress before a request fails, and the same while it is rate-limited."""

_PAUSE_S, _MAX_PAUSE_S = 0.1, 30.0
_GONE = {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}
_BUSY = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_URL = re.compile(r"https?://[^/?#]+[^?#]*")


def is_web(place: str) -> bool:
    """Whether ``place`` is a URL of a web server."""
    return place.startswith(("http://", "https://"))


class WebFolder:
    """A folder at a URL; any number of threads may read its files."""

    is_local = False

    def __init__(self, url: str, key: str = "") -> None:
        """Take the URL and the API key, if the service needs one; nothing is requested yet."""
        # The import takes a tenth of a second; only commands that contact a server pay for it.
        import httpx  # noqa: PLC0415 - as above

        if _URL.fullmatch(url) is None:
            raise StorageError(f"{url} is not the URL of a folder: write https://host/path")
        headers = {"Accept-Encoding": "identity", "User-Agent": "tonlake"}
        if key:
            headers["X-API-Key"] = key
        try:
            self._base = httpx.URL(url.rstrip("/") + "/")
        except httpx.InvalidURL as error:
            raise StorageError(f"{url} is not a valid URL ({error})") from error
        self.name = str(self._base.copy_with(userinfo=b""))[:-1]
        self._transport_error = httpx.TransportError
        # A pool that threads share may close a connection that another one has begun to use.
        context, timeout = httpx.create_ssl_context(), httpx.Timeout(_READ_S, connect=_CONNECT_S)
        self._clients = [
            httpx.Client(headers=headers, timeout=timeout, verify=context)
            for _ in range(_CONNECTIONS)
        ]
        self._idle = LifoQueue[httpx.Client]()
        for client in self._clients:
            self._idle.put(client)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def chunks(self, path: str) -> Generator[bytes]:
        """Yield the bytes of a file, resuming a response that breaks off.

        Raises FileNotFoundError, PermissionError; StorageError: no answer, or not to the end.
        """
        client = self._idle.get()
        try:
            yield from self._read(client, path)
        finally:
            self._idle.put(client)

    def _read(self, client: "httpx.Client", path: str) -> Generator[bytes]:
        """Yield the bytes of a file through one client; as ``chunks``."""
        at, attempts = 0, 0
        while True:
            wait_s = min(_PAUSE_S * 2 ** min(attempts, 9), _MAX_PAUSE_S)
            attempts, most = attempts + 1, _ATTEMPTS
            try:
                headers = {"Range": f"bytes={at}-"} if at else {}
                with client.stream("GET", self._base.join(path), headers=headers) as answer:
                    status = answer.status_code
                    if status not in _BUSY:
                        passed = self._find_begin(path, answer, at)
                        if passed is None:
                            return
                        for part in answer.iter_raw():
                            new = part[max(0, at - passed) :]
                            passed += len(part)
                            if new:
                                at, attempts = at + len(new), 0
                                yield new
                        return
                    if status == HTTPStatus.TOO_MANY_REQUESTS:
                        most = _LIMITED_ATTEMPTS
                    reason = f"it responds with {status}"
                    after = answer.headers.get("retry-after", "")
                    wait_s = min(float(after), _MAX_PAUSE_S) if after.isdecimal() else wait_s
            except self._transport_error as error:
                reason = str(error) or type(error).__name__
            if attempts >= most:
                raise StorageError(
                    f"{self.name} cannot be reached, or broke off ({path}: {reason}): check the "
                    "URL and the network, and run the same command again"
                )
            time.sleep(wait_s)

    def _find_begin(self, path: str, answer: "httpx.Response", at: int) -> int | None:
        """Return the offset at which a response begins; None: complete. Raises as ``chunks``."""
        status = answer.status_code
        if status == HTTPStatus.OK:
            return 0
        begin = f"bytes {at}-"
        if status == HTTPStatus.PARTIAL_CONTENT and at:
            if answer.headers.get("content-range", "").startswith(begin):
                return at
            raise StorageError(f"{self.name} sent a part of {path} that was not requested")
        if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and at:
            return None
        if status in _GONE:
            raise FileNotFoundError(f"{self.name}/{path}: the server responds with {status}")
        if status == HTTPStatus.FORBIDDEN:
            raise PermissionError(f"{self.name}/{path}: the server responds with {status}")
        if status == HTTPStatus.UNAUTHORIZED:
            raise StorageError(
                f"{self.name} requires an API key: set [pull] key, or TONLAKE_PULL_KEY in the "
                "environment"
            )
        if answer.has_redirect_location:
            where = answer.headers["location"].removesuffix(path)
            raise StorageError(f"{self.name} has moved: use {where} instead")
        raise StorageError(f"{self.name} responds with {status} for {path}")

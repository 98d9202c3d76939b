"""A lake behind an HTTP service: ``tonlake.connect``, with the interface of ``tonlake.open``."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import httpx
import msgspec
import pyarrow as pa
import pyarrow.ipc

from tonlake.api.errors import RequestInvalid, UpstreamRefusal
from tonlake.api.python.result import Result, ScanBatch
from tonlake.api.request.table_format import ARROW, MEDIA_TYPES
from tonlake.api.scan.query import Scan, Where, convert_scan
from tonlake.queries.loader import find_query
from tonlake.queries.parameter import fill_query, put_values, read_values

TIMEOUT_S = 60.0
"""Timeout for a response to begin, or to continue."""

RETRIES = 5
"""Consecutive times a scan is resumed after its last batch."""

FIRST_PAUSE_S = 0.2
_ARROW_TYPE = MEDIA_TYPES[ARROW]


class RemoteLake:
    """The newest snapshot of a lake behind a service; a context manager that closes it."""

    def __init__(self, client: httpx.Client) -> None:
        """Take a client with the service as base URL; use ``tonlake.connect`` instead."""
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteLake {self._client.base_url}>"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def sql(
        self, statement: str, /, *, signature: str | Sequence[str] = (), **parameters: object
    ) -> Result:
        """Run a statement as ``Lake.sql``; the service needs [sql] enabled.

        Raises UpstreamRefusal if the service refuses, with its status and text; httpx.HTTPError if
        the service cannot be reached.
        """
        body: dict[str, object] = {"query": put_values(statement, parameters)}
        if signature:
            body["signature"] = signature
        return self._ask("POST", "/sql", body)

    def query(self, name: str, /, **parameters: object) -> Result:
        """Run a named query of this version of tonlake, as ``Lake.query``, by ``sql``.

        Raises:
            QueryUnknown, ParameterMismatch: there is no such query, or it takes other parameters.
            UpstreamRefusal, httpx.HTTPError: as ``sql``.
        """
        query = find_query(name)
        return self.sql(fill_query(query, read_values(query, parameters)))

    def account(self, name: str) -> "RemoteAccount":
        """Return an account by its address in any notation, which the service parses."""
        return RemoteAccount(self, name)

    def scan(
        self,
        table: str | Mapping[str, Any],
        where: Where = None,
        **options: Any,  # noqa: ANN401 - as Lake.scan
    ) -> Iterator[ScanBatch]:
        """Yield rows of a table in chain order, as ``Lake.scan``.

        A broken connection is reopened, and the scan resumes after its last batch.

        Raises:
            RequestInvalid: an option does not exist.
            UpstreamRefusal: as ``sql``.
            httpx.HTTPError: as ``sql``, after ``RETRIES`` failures in a row.
        """
        return self._scan(convert_scan(table, {"where": where, **options}))

    def _scan(self, scan: Scan) -> Iterator[ScanBatch]:
        failures = 0
        while True:
            try:
                for batch in self._read_batches(scan):
                    failures = 0
                    left = None if scan.limit is None else scan.limit - len(batch.rows)
                    scan = msgspec.structs.replace(
                        scan, start=None, cursor=batch.cursor, limit=left and max(left, 1)
                    )
                    yield batch
                    if left is not None and left <= 0:
                        return
            except (httpx.TransportError, pa.ArrowInvalid, OSError):
                failures += 1
                if failures > RETRIES:
                    raise
                time.sleep(FIRST_PAUSE_S * 2**failures)
                continue
            if not scan.follow:
                return

    def _read_batches(self, scan: Scan) -> Iterator[ScanBatch]:
        """Yield the batches of one response."""
        body = msgspec.json.encode(scan)
        with self._client.stream(
            "POST", "/api/scan", content=body, headers={"Accept": _ARROW_TYPE}
        ) as answer:
            if answer.is_error:
                answer.read()
            _check(answer)
            reader = pa.ipc.open_stream(ResponseBody(answer.iter_raw()))
            parts: list[pa.RecordBatch] = []
            while True:
                try:
                    part, metadata = reader.read_next_batch_with_custom_metadata()
                except StopIteration:
                    return
                parts.append(part)
                if metadata is not None:
                    mark, rows = dict(metadata), Result(pa.Table.from_batches(parts))
                    cursor, height = mark[b"cursor"].decode(), int(mark[b"height"])
                    first, found, last = mark.get(b"undone", b"").partition(b"-")
                    undone = (int(first), int(last)) if found else None
                    misfits = msgspec.json.decode(mark.get(b"misfits", b"{}"), type=dict[str, int])
                    yield ScanBatch(rows, cursor, height, undone, misfits)
                    parts = []

    def _ask(
        self, method: str, path: str, body: object = None, params: dict[str, Any] | None = None
    ) -> Result:
        """Return the rows of a response in Arrow format."""
        content = None if body is None else msgspec.json.encode(body)
        headers = {"Accept": _ARROW_TYPE, "Content-Type": "application/json"}
        answer = self._client.request(method, path, content=content, headers=headers, params=params)
        _check(answer)
        noted = answer.headers.get("X-Tonlake-Warning")
        rows = pa.ipc.open_stream(answer.content).read_all()
        return Result(rows, notes=() if noted is None else (noted,))


class RemoteAccount:
    """An account in the newest snapshot of a service."""

    def __init__(self, lake: RemoteLake, name: str) -> None:
        """Take the lake and an address; use ``RemoteLake.account`` instead."""
        self._lake, self._name = lake, name

    def __repr__(self) -> str:
        return f"<RemoteAccount {self._name}>"

    def transactions(self, limit: int = 100, offset: int = 0) -> Result:
        """Return its transactions, newest first, as ``/api/v3/transactions``; raises as ``sql``."""
        return self._list("transactions", account=self._name, limit=limit, offset=offset)

    def states(self) -> Result:
        """Return its newest state, in the columns of ``/api/v3/accountStates``; raises as above."""
        return self._list("accountStates", address=self._name, include_boc="false")

    def jetton_wallets(self, limit: int = 100, offset: int = 0) -> Result:
        """Return its jetton wallets, as ``/api/v3/jetton/wallets``; raises as above."""
        return self._list("jetton/wallets", owner_address=self._name, limit=limit, offset=offset)

    def _list(self, path: str, **params: str | int) -> Result:
        return self._lake._ask("GET", f"/api/v3/{path}", params=params)  # noqa: SLF001 - one module


def connect(url: str, *, key: str = "", timeout_s: float = TIMEOUT_S) -> RemoteLake:
    """Return the lake of a service, such as ``https://lake.example.org``, without connecting.

    ``key`` is an API key of the service. Raises RequestInvalid if ``url`` is not an HTTP URL.
    """
    parsed = httpx.URL(url)
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise RequestInvalid(f"{url!r} is not the URL of a service, as https://lake.example.org")
    headers = {"X-API-Key": key} if key else {}
    return RemoteLake(httpx.Client(base_url=parsed, headers=headers, timeout=timeout_s))


class ResponseBody:
    """The body of a response as a file, read in chunks of any size while it arrives."""

    closed = False

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._held = parts, bytearray()

    def read(self, size: int, /) -> bytes:
        """Return ``size`` bytes, fewer only at the end."""
        while len(self._held) < size:
            part = next(self._parts, None)
            if part is None:
                break
            self._held += part
        found = bytes(self._held[:size])
        del self._held[:size]
        return found


def _check(answer: httpx.Response) -> None:
    """Raise UpstreamRefusal for an error response."""
    if not answer.is_error:
        return
    try:
        text = msgspec.json.decode(answer.content)["error"]
    except (msgspec.DecodeError, KeyError, TypeError):
        text = answer.text[:200]
    raise UpstreamRefusal(answer.status_code, str(text))

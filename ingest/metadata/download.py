"""Downloads a JSON object or picture from an untrusted URL: https, limited in size and time.

Redirects are followed one by one: scheme, host and IP addresses of each are checked like those of
the first URL (tonlake.ingest.metadata.network).
"""

from __future__ import annotations

import ssl
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

import httpcore
import httpx
import msgspec

from tonlake.ingest.errors import ContentInvalid, FetchFailed, FetchRefused
from tonlake.ingest.metadata.network import CheckedBackend, Guard, parse_networks
from tonlake.ingest.metadata.picture import PICTURE_BYTES, Picture, read_picture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tonlake.ingest.settings import MetadataSettings

CONTENT_BYTES = 1 << 20
"""Maximum size of token content."""
TIMEOUT_MS = 5000
"""Total time in milliseconds for fetching the content of one token."""
REDIRECTS = 3
"""Maximum number of redirects for the content of one token."""

MAX_URI_CHARS = 2048
"""Longer URLs are not requested: servers refuse them (RFC 9110, 4.1, requires 8,000 at least)."""

_OK = 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TYPES = frozenset({"text/json", "text/plain", "application/octet-stream", "binary/octet-stream"})
"""Types, besides those of JSON, with which file stores serve JSON; never pages or images."""

_IPFS = "ipfs://"


class Document(NamedTuple):
    """A fetched JSON object as compact text, and its final URL after redirects."""

    content: str
    url: str


class Accepted(NamedTuple):
    """Accepted responses: the header Accept, a predicate on the media type, the maximum size."""

    accept: str
    allows_type: Callable[[str], bool]
    max_bytes: int


def _is_object(kind: str) -> bool:
    return kind in _TYPES or kind.endswith(("/json", "+json"))


def _is_picture(kind: str) -> bool:
    # The bytes decide, not the type, which IPFS gateways often do not know.
    return not kind.endswith(("html", "+xml"))


OBJECT = Accepted("application/json, text/plain;q=0.5", _is_object, CONTENT_BYTES)
PICTURE = Accepted("image/webp, image/png, image/jpeg, image/gif", _is_picture, PICTURE_BYTES)


class Downloader:
    """Fetches documents and pictures; may be used by several threads."""

    def __init__(
        self,
        settings: MetadataSettings,
        *,
        guard: Guard | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        """Use ``guard`` to check IP addresses, and ``trust`` to verify certificates.

        Without ``trust`` the system's certificates are used (or those in ``SSL_CERT_FILE``).

        Raises:
            SettingsError: the setting ``networks`` cannot be parsed.
        """
        self._settings = settings
        self._guard = guard or Guard(parse_networks(settings.networks))
        self._trust = trust or ssl.create_default_context()
        self._agent = f"tonlake/{version('tonlake')}"

    def fetch(self, uri: str) -> Document:
        """Return the document at ``uri``.

        Raises:
            FetchRefused: ``uri`` or the target of a redirect is not allowed.
            ContentInvalid: the response is not a JSON object, too large or of another type.
            FetchFailed: there was no successful response; a retry may succeed.
        """
        body, url = self._load(uri, OBJECT)
        return Document(_read_object(body), url)

    def fetch_picture(self, uri: str) -> Picture:
        """Return the picture at ``uri``.

        Raises:
            FetchRefused, FetchFailed: see ``fetch``.
            ContentInvalid: the response is not a supported picture, or too large.
        """
        return read_picture(self._load(uri, PICTURE)[0])

    def _load(self, uri: str, accepted: Accepted) -> tuple[bytes, str]:
        """Return the body of the response for ``uri``, and its final URL."""
        url = self._read_address(uri)
        backend = CheckedBackend(self._guard, TIMEOUT_MS / 1000)
        for _ in range(REDIRECTS + 1):
            found = self._ask(url, backend, accepted)
            if isinstance(found, bytes):
                return found, str(url)
            url = found
        raise ContentInvalid(f"more than {REDIRECTS} redirects")

    def _read_address(self, uri: str) -> httpx.URL:
        """Return the URL to request for ``uri``; ipfs:// is replaced by the gateway."""
        if not uri.lower().startswith(_IPFS):
            return _check_url(uri)
        if not self._settings.ipfs_gateway:
            raise FetchRefused("no IPFS gateway is set (setting [metadata] ipfs_gateway)")
        path = uri[len(_IPFS) :].removeprefix("ipfs/").lstrip("/")
        return _check_url(self._settings.ipfs_gateway + path)

    def _ask(
        self, url: httpx.URL, backend: CheckedBackend, accepted: Accepted
    ) -> bytes | httpx.URL:
        """Return the body of the response, or the URL to which it redirects."""
        sent: dict[bytes | str, bytes | str] = {
            "User-Agent": self._agent,
            "Accept": accepted.accept,
            "Accept-Encoding": "identity",
        }
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        try:
            with (
                httpcore.ConnectionPool(
                    ssl_context=self._trust, network_backend=backend, max_connections=1
                ) as pool,
                pool.stream("GET", target, headers=sent) as answer,
            ):
                headers = {
                    name.lower().decode("latin-1"): value.decode("latin-1")
                    for name, value in answer.headers
                }
                if answer.status in _REDIRECTS and "location" in headers:
                    return _follow(url, headers["location"])
                if answer.status != _OK:
                    raise FetchFailed(f"{url.host} answered {answer.status}")
                return _read_body(answer, headers, accepted)
        except (
            *(httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError),
            httpcore.UnsupportedProtocol,
        ) as error:
            reason = str(error) or type(error).__name__
            raise FetchFailed(f"request to {url.host} failed: {reason}") from error


def _read_body(answer: httpcore.Response, headers: Mapping[str, str], accepted: Accepted) -> bytes:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not accepted.allows_type(kind):
        raise ContentInvalid(f"content of type {kind[:100]!r}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise ContentInvalid("compressed content, although it was not accepted")
    body = bytearray()
    for part in answer.iter_stream():
        body += part
        if len(body) > accepted.max_bytes:
            raise ContentInvalid(f"more than {accepted.max_bytes} bytes")
    return bytes(body)


def _check_url(text: str) -> httpx.URL:
    """Parse a URL, and check everything but its IP addresses."""
    if len(text) > MAX_URI_CHARS:
        raise FetchRefused(f"a URL of more than {MAX_URI_CHARS} characters")
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise FetchRefused(f"not a URL: {error}") from error
    if url.scheme != "https":
        raise FetchRefused(f"only https is supported, not {url.scheme[:20]!r}")
    if not url.host or url.userinfo:
        raise FetchRefused("a URL without a host, or with a user")
    return url


def _follow(url: httpx.URL, location: str) -> httpx.URL:
    try:
        joined = url.join(location)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ContentInvalid(f"a redirect to an invalid URL: {error}") from error
    return _check_url(str(joined))


def _read_object(body: bytes) -> str:
    """Return a JSON object as compact text; raise ContentInvalid for anything else."""
    try:
        value = msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"), type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContentInvalid(f"no JSON object: {error}") from error
    return msgspec.json.encode(value).decode()

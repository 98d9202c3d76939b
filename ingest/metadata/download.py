"""A JSON object or a picture from an address that a stranger chose: https, within size and time.

Redirects are followed one by one, each as if it had been the address: its scheme, its host and
the addresses of that host are checked again (tonlake.ingest.metadata.network).
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
"""Largest token content that is fetched."""
TIMEOUT_MS = 5000
"""Milliseconds that fetching one token's content may take in all."""
REDIRECTS = 3
"""Most redirects that are followed for one token's content."""

MOST_URI_CHARS = 2048
"""Longer addresses are not asked: servers refuse them (RFC 9110, 4.1, asks for 8,000 at most)."""

_OK = 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TYPES = frozenset({"text/json", "text/plain", "application/octet-stream", "binary/octet-stream"})
"""Types, beside those of JSON, under which file stores give out JSON; never pages or images."""

_IPFS = "ipfs://"


class Document(NamedTuple):
    """What was fetched: the JSON object as compact text, and where it was found in the end."""

    content: str
    url: str


class Wanted(NamedTuple):
    """What an answer may be: its header Accept, its types, its size."""

    accept: str
    is_taken: Callable[[str], bool]
    most_bytes: int


def _is_object(kind: str) -> bool:
    return kind in _TYPES or kind.endswith(("/json", "+json"))


def _is_picture(kind: str) -> bool:
    # The bytes decide, not the type: gateways of IPFS often do not know it.
    return not kind.endswith(("html", "+xml"))


OBJECT = Wanted("application/json, text/plain;q=0.5", _is_object, CONTENT_BYTES)
PICTURE = Wanted("image/webp, image/png, image/jpeg, image/gif", _is_picture, PICTURE_BYTES)


class Downloader:
    """Fetches documents; may be used by several threads at once."""

    def __init__(
        self,
        settings: MetadataSettings,
        *,
        guard: Guard | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        """Take limits, and if need be who checks addresses and whose certificates are trusted.

        Without ``trust`` it is those of the system (``SSL_CERT_FILE`` names others).

        Raises:
            SettingsError: the setting of allowed networks cannot be read.
        """
        self._settings = settings
        self._guard = guard or Guard(parse_networks(settings.networks))
        self._trust = trust or ssl.create_default_context()
        self._agent = f"tonlake/{version('tonlake')}"

    def fetch(self, uri: str) -> Document:
        """Return the document behind the address that a token names.

        Raises:
            FetchRefused: an address that is not asked, at once or behind a redirect.
            ContentInvalid: the answer is no JSON object, too large or of another type.
            FetchFailed: there was no answer; it may be worth another try.
        """
        body, url = self._load(uri, OBJECT)
        return Document(_read_object(body), url)

    def fetch_picture(self, uri: str) -> Picture:
        """Return the picture behind the address that a token names.

        Raises:
            FetchRefused, FetchFailed: as ``fetch``.
            ContentInvalid: the answer is no picture that may be shown, or too large.
        """
        return read_picture(self._load(uri, PICTURE)[0])

    def _load(self, uri: str, wanted: Wanted) -> tuple[bytes, str]:
        """Return the body behind an address, and where it was found in the end."""
        url = self._read_address(uri)
        backend = CheckedBackend(self._guard, TIMEOUT_MS / 1000)
        for _ in range(REDIRECTS + 1):
            found = self._ask(url, backend, wanted)
            if isinstance(found, bytes):
                return found, str(url)
            url = found
        raise ContentInvalid(f"more than {REDIRECTS} redirects")

    def _read_address(self, uri: str) -> httpx.URL:
        """Return the URL that an address stands for."""
        if not uri.lower().startswith(_IPFS):
            return _check_url(uri)
        if not self._settings.ipfs_gateway:
            raise FetchRefused("no gateway of IPFS is set (setting [metadata] ipfs_gateway)")
        path = uri[len(_IPFS) :].removeprefix("ipfs/").lstrip("/")
        return _check_url(self._settings.ipfs_gateway + path)

    def _ask(self, url: httpx.URL, backend: CheckedBackend, wanted: Wanted) -> bytes | httpx.URL:
        """Return the body of the answer, or where it redirects to."""
        sent: dict[bytes | str, bytes | str] = {
            "User-Agent": self._agent,
            "Accept": wanted.accept,
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
                return _read_body(answer, headers, wanted)
        except (
            *(httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError),
            httpcore.UnsupportedProtocol,
        ) as error:
            reason = str(error) or type(error).__name__
            raise FetchFailed(f"{url.host} cannot be asked: {reason}") from error


def _read_body(answer: httpcore.Response, headers: Mapping[str, str], wanted: Wanted) -> bytes:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if not wanted.is_taken(kind):
        raise ContentInvalid(f"content of type {kind[:100]!r}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise ContentInvalid("compressed content, which was not asked for")
    body = bytearray()
    for part in answer.iter_stream():
        body += part
        if len(body) > wanted.most_bytes:
            raise ContentInvalid(f"more than {wanted.most_bytes} bytes")
    return bytes(body)


def _check_url(text: str) -> httpx.URL:
    """Read an address that may be asked, as far as its text shows."""
    if len(text) > MOST_URI_CHARS:
        raise FetchRefused(f"an address of more than {MOST_URI_CHARS} characters")
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise FetchRefused(f"no address: {error}") from error
    if url.scheme != "https":
        raise FetchRefused(f"only https is asked, not {url.scheme[:20]!r}")
    if not url.host or url.userinfo:
        raise FetchRefused("an address without a host, or with a user")
    return url


def _follow(url: httpx.URL, location: str) -> httpx.URL:
    try:
        joined = url.join(location)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ContentInvalid(f"a redirect to no address: {error}") from error
    return _check_url(str(joined))


def _read_object(body: bytes) -> str:
    """Return a JSON object as compact text."""
    try:
        value = msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"), type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContentInvalid(f"no JSON object: {error}") from error
    return msgspec.json.encode(value).decode()

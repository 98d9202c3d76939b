"""Downloads a JSON object or picture from an untrusted URL: https, limited in size and time.

Redirects are followed one by one: scheme, host and IP addresses of each are checked like those of
the first URL. A host name is resolved once per connection, all of its addresses are checked, and
the connection uses one of them: a later change of the name has no effect. Proxies from the
environment are not used, since they would resolve names again.

PNG, JPEG, GIF and WebP are accepted; the media type sent by the server is ignored. SVG is rejected:
it is a document that can contain scripts and refer to other hosts.
"""

import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal, NamedTuple, TypeAlias

import httpcore
import httpx
import msgspec
from httpcore import SOCKET_OPTION

from tonlake.ingest.errors import ContentInvalid, FetchFailed, FetchRefused
from tonlake.ingest.settings import MetadataSettings
from tonlake.lake.errors import SettingsError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[[str, int], list[str]]
LeftSeconds: TypeAlias = Callable[[float | None], float]

PICTURE_BYTES = 1 << 21
"""Maximum size of a picture."""
MAX_PIXELS = 1 << 24
"""Maximum pixels of a picture: a small file can declare far more, which browsers would allocate."""

Size = tuple[int, int]

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""SOF markers of JPEG, which have the size; the three others in this range do not."""


class Picture(NamedTuple):
    """The media type and the bytes of a picture."""

    kind: str
    body: bytes


def read_picture(body: bytes) -> Picture:
    """Return a picture after checking its header."""
    for start, kind, measure in _FORMATS:
        if body.startswith(start):
            try:
                width, height = measure(body)
            except IndexError as error:
                raise ContentInvalid(f"a damaged picture of type {kind}") from error
            if not 0 < width * height <= MAX_PIXELS:
                raise ContentInvalid(f"a picture of {width} by {height} pixels")
            return Picture(kind, body)
    raise ContentInvalid("no picture of type PNG, JPEG, GIF or WebP")


def _number(body: bytes, at: int, size: int, order: Literal["little", "big"] = "little") -> int:
    if at + size > len(body):
        raise IndexError
    return int.from_bytes(body[at : at + size], order)


def _measure_png(body: bytes) -> Size:
    return _number(body, 16, 4, "big"), _number(body, 20, 4, "big")


def _measure_gif(body: bytes) -> Size:
    return _number(body, 6, 2), _number(body, 8, 2)


def _measure_webp(body: bytes) -> Size:
    """Read the first chunk (RFC 9649): extended, lossless, or lossy."""
    chunk = body[8:16]
    if chunk == b"WEBPVP8X":
        return _number(body, 24, 3) + 1, _number(body, 27, 3) + 1
    if chunk == b"WEBPVP8L":
        bits = _number(body, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"WEBPVP8 ":
        return _number(body, 26, 2) & 0x3FFF, _number(body, 28, 2) & 0x3FFF
    raise IndexError


def _measure_jpeg(body: bytes) -> Size:
    """Skip segments up to the one with the size."""
    at = 2
    while True:
        marker = _number(body, at, 2, "big")
        if marker >> 8 != 0xFF:  # noqa: PLR2004 - the first byte of every marker
            raise IndexError
        if marker & 0xFF in _JPEG_SIZES:
            return _number(body, at + 7, 2, "big"), _number(body, at + 5, 2, "big")
        at += 2 + max(_number(body, at + 2, 2, "big"), 2)


_FORMATS: tuple[tuple[bytes, str, Callable[[bytes], Size]], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png", _measure_png),
    (b"\xff\xd8\xff", "image/jpeg", _measure_jpeg),
    (b"GIF87a", "image/gif", _measure_gif),
    (b"GIF89a", "image/gif", _measure_gif),
    (b"RIFF", "image/webp", _measure_webp),
)
"""First bytes, media type, and a function that reads width and height."""


HTTPS_PORT = 443
_UNICAST = IPv6Network("2000::/3")
"""The only IPv6 addresses assigned on the public Internet (RFC 4291, 2.4)."""

_NAT64 = IPv6Network("64:ff9b::/96")
"""Prefix of an embedded IPv4 address, its last 32 bits (RFC 6052)."""

_INTERNAL = tuple(
    map(
        ip_network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
            *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
            *("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16"),
            "3fff::/20",
        ),
    )
)
"""Special-purpose addresses (IANA registries of RFC 6890), including tunnels, which reach hosts
that are not meant to be public."""


def parse_networks(text: str) -> tuple[Network, ...]:
    """Parse comma-separated networks such as ``10.1.0.0/16,fd00::/8``."""
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise SettingsError(f"setting [metadata] networks: {error}") from error


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public Internet."""
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped
        if embedded is None and address in _NAT64:
            embedded = IPv4Address(int(address) & 0xFFFF_FFFF)
        if embedded is not None:
            return is_public(embedded)
        if address.scope_id is not None or address not in _UNICAST:
            return False
    return address.is_global and not any(address in network for network in _INTERNAL)


def resolve_name(host: str, port: int) -> list[str]:
    """Resolve a host name with the system's resolver; raise OSError if it has no address."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Guard:
    """Decides to which IP addresses connections are allowed."""

    def __init__(self, allowed: Iterable[Network] = (), resolve: Resolve = resolve_name) -> None:
        """Allow public addresses and the networks ``allowed``; look names up with ``resolve``."""
        self._allowed = tuple(allowed)
        self._resolve = resolve

    def find_addresses(self, host: str, port: int, timeout_s: float) -> list[str]:
        """Return the addresses of a host after checking all of them."""
        found = self._look_up(host, port, timeout_s)
        for text in found:
            self.check(text, port)
        return found

    def check(self, text: str, port: int) -> None:
        """Reject internal addresses, and ports other than 443."""
        address = ip_address(text)
        plain = getattr(address, "ipv4_mapped", None) or address
        if any(plain in network for network in self._allowed):
            return
        if not is_public(address):
            raise FetchRefused(f"{text} is not a public address (setting [metadata] networks)")
        if port != HTTPS_PORT:
            raise FetchRefused(f"port {port} is not {HTTPS_PORT}")

    def _look_up(self, host: str, port: int, timeout_s: float) -> list[str]:
        """Resolve a name in a separate thread: the system's resolver has no timeout."""
        answer: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

        def work() -> None:
            try:
                answer.put(self._resolve(host, port))
            except (OSError, UnicodeError) as error:
                answer.put(error)

        threading.Thread(target=work, name="resolve", daemon=True).start()
        try:
            found = answer.get(timeout=max(timeout_s, 0))
        except queue.Empty as error:
            raise FetchFailed(f"{host} was not resolved in time") from error
        if isinstance(found, Exception):
            raise FetchFailed(f"{host} cannot be resolved: {found}") from found
        if not found:
            raise FetchFailed(f"{host} has no address")
        return found


class _TimedStream(httpcore.NetworkStream):
    """A stream whose operations all end in time, however slow the peer is."""

    def __init__(self, stream: httpcore.NetworkStream, left_s: LeftSeconds) -> None:
        self._stream, self._left_s = stream, left_s

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left_s(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left_s(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._left_s(timeout))
        return _TimedStream(stream, self._left_s)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


class CheckedBackend(httpcore.NetworkBackend):
    """Connects to checked addresses only, for one fetch and within its time limit."""

    def __init__(self, guard: Guard, timeout_s: float) -> None:
        """Start the time limit now."""
        self._guard = guard
        self._end_s = time.monotonic() + timeout_s
        self._plain = httpcore.SyncBackend()

    def left_s(self, timeout: float | None = None) -> float:
        """Return the seconds left, at most ``timeout``."""
        left = self._end_s - time.monotonic()
        if left <= 0:
            raise FetchFailed("the time limit was exceeded")
        return left if timeout is None else min(left, timeout)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve, check and connect to the first address that accepts."""
        addresses = self._guard.find_addresses(host, port, self.left_s())
        failure: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for address in addresses:
            left = self.left_s(timeout)
            try:
                stream = self._plain.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.NetworkError, httpcore.TimeoutException) as error:
                failure = error
            else:
                return _TimedStream(stream, self.left_s)
        raise failure or FetchFailed(f"{host} has no address")


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


OBJECT = Accepted(
    "application/json, text/plain;q=0.5",
    lambda kind: kind in _TYPES or kind.endswith(("/json", "+json")),
    CONTENT_BYTES,
)
PICTURE = Accepted(
    "image/webp, image/png, image/jpeg, image/gif",
    # The bytes decide, not the type, which IPFS gateways often do not know.
    lambda kind: not kind.endswith(("html", "+xml")),
    PICTURE_BYTES,
)


class Downloader:
    """Fetches documents and pictures; may be used by several threads."""

    def __init__(
        self,
        settings: MetadataSettings,
        *,
        guard: Guard | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        """Check addresses by ``guard``, and certificates by ``trust``, by default the system's."""
        self._settings = settings
        self._guard = guard or Guard(parse_networks(settings.networks))
        self._trust = trust or ssl.create_default_context()
        self._agent = f"tonlake/{version('tonlake')}"

    def fetch(self, uri: str) -> Document:
        """Return the document at ``uri``; FetchFailed: to be tried again."""
        body, url = self._load(uri, OBJECT)
        return Document(_read_object(body), url)

    def fetch_picture(self, uri: str) -> Picture:
        """Return the picture at ``uri``."""
        return read_picture(self._load(uri, PICTURE)[0])

    def _load(self, uri: str, accepted: Accepted) -> tuple[bytes, str]:
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
                    raise FetchFailed(f"{_show_host(url)} answered {answer.status}")
                return _read_body(answer, headers, accepted)
        except (
            *(httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError),
            httpcore.UnsupportedProtocol,
        ) as error:
            reason = str(error) or type(error).__name__
            raise FetchFailed(f"request to {_show_host(url)} failed: {reason}") from error


def _show_host(url: httpx.URL) -> str:
    """Return the host as it is sent: many names, such as those with emoji, httpx cannot decode."""
    return url.raw_host.decode("ascii")


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
    if len(text) > MAX_URI_CHARS:
        raise FetchRefused(f"a URL of more than {MAX_URI_CHARS} characters")
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError) as error:
        raise FetchRefused(f"not a URL: {error}") from error
    if url.scheme != "https":
        raise FetchRefused(f"only https is supported, not {url.scheme[:20]!r}")
    if not url.raw_host or url.userinfo:
        raise FetchRefused("a URL without a host, or with a user")
    return url


def _follow(url: httpx.URL, location: str) -> httpx.URL:
    try:
        joined = url.join(location)
    except (httpx.InvalidURL, ValueError) as error:
        raise ContentInvalid(f"a redirect to an invalid URL: {error}") from error
    return _check_url(str(joined))


def _read_object(body: bytes) -> str:
    try:
        value = msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"), type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContentInvalid(f"no JSON object: {error}") from error
    return msgspec.json.encode(value).decode()

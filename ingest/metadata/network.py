"""Connects to checked IP addresses only, within a deadline.

A host name is resolved once per connection, all of its addresses are checked, and the connection
uses one of them: a later change of the name has no effect. Proxies from the environment are not
used, since they would resolve names again.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

import httpcore

from tonlake.ingest.errors import FetchFailed, FetchRefused
from tonlake.lake.errors import SettingsError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable
    from ipaddress import IPv4Network
    from typing import TypeAlias

    from httpcore import SOCKET_OPTION

    Address: TypeAlias = IPv4Address | IPv6Address
    Network: TypeAlias = IPv4Network | IPv6Network
    Resolve: TypeAlias = Callable[[str, int], list[str]]

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
    """Parse comma-separated networks such as ``10.1.0.0/16,fd00::/8``.

    Raises:
        SettingsError: an item is not a network.
    """
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
        """Return the addresses of a host after checking all of them.

        Raises:
            FetchRefused: connections to one of them are not allowed.
            FetchFailed: the name has no address, or was not resolved in time.
        """
        found = self._look_up(host, port, timeout_s)
        for text in found:
            self.check(text, port)
        return found

    def check(self, text: str, port: int) -> None:
        """Reject internal addresses, and ports other than 443.

        Raises:
            FetchRefused: connections to the address are not allowed.
        """
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


class _Deadline:
    """The end of a time limit."""

    def __init__(self, timeout_s: float) -> None:
        self._end_s = time.monotonic() + timeout_s

    def left_s(self, timeout: float | None = None) -> float:
        """Return the seconds left, at most ``timeout``.

        Raises:
            FetchFailed: the time is over.
        """
        left = self._end_s - time.monotonic()
        if left <= 0:
            raise FetchFailed("the time limit was exceeded")
        return left if timeout is None else min(left, timeout)


class _TimedStream(httpcore.NetworkStream):
    """A stream whose operations all end with the deadline, however slow the peer is."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: _Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.left_s(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left_s(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._deadline.left_s(timeout)
        return _TimedStream(
            self._stream.start_tls(ssl_context, server_hostname, left), self._deadline
        )

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


class CheckedBackend(httpcore.NetworkBackend):
    """Connects to checked addresses only, for one fetch and within its time limit."""

    def __init__(self, guard: Guard, timeout_s: float) -> None:
        """Start the time limit now."""
        self._guard = guard
        self._deadline = _Deadline(timeout_s)
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve, check and connect to the first address that accepts.

        Raises:
            FetchRefused: connections to an address of the host are not allowed.
            FetchFailed: it has no address, or the time is over.
            httpcore.ConnectError, httpcore.ConnectTimeout: no address accepted.
        """
        addresses = self._guard.find_addresses(host, port, self._deadline.left_s())
        failure: httpcore.NetworkError | httpcore.TimeoutException | None = None
        for address in addresses:
            left = self._deadline.left_s(timeout)
            try:
                stream = self._plain.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.NetworkError, httpcore.TimeoutException) as error:
                failure = error
            else:
                return _TimedStream(stream, self._deadline)
        raise failure or FetchFailed(f"{host} has no address")

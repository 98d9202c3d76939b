"""A wrapper of a connection's transport that counts written bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable


class Outlet:
    """A transport that counts written bytes; everything else is delegated to the wrapped one."""

    def __init__(
        self, transport: asyncio.Transport, hand_over: Callable[[asyncio.BaseProtocol], None]
    ) -> None:
        """Store the transport, and the callback for the protocol of an upgraded connection."""
        self._transport, self._hand_over = transport, hand_over
        self._held: list[bytes | bytearray | memoryview] | None = None
        self.written = 0
        """Bytes written so far."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a transport has
        """Return an attribute of the wrapped transport."""
        return getattr(self._transport, name)

    def hold(self) -> None:
        """Buffer writes until ``flush``, since each write makes a system call."""
        self._held = []

    def flush(self) -> None:
        """Send the buffered data in one write."""
        held, self._held = self._held, None
        if held:
            self._transport.writelines(held)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes."""
        self.written += len(data)
        if self._held is None:
            self._transport.write(data)
        else:
            self._held.append(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send bytes."""
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        """Close the sending side."""
        self.flush()
        self._transport.write_eof()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the peer has not read yet."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._held or ()))

    def close(self) -> None:
        """Close the connection after sending all data."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._held = None
        self._transport.abort()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection over to another protocol, under the same limits."""
        self._hand_over(protocol)

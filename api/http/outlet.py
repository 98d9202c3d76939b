"""What the server's protocol writes to: the transport of a connection, with a count of bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Outlet(asyncio.Transport):
    """Passes everything on to a transport, and counts what it was handed."""

    def __init__(
        self, transport: asyncio.Transport, hand_over: Callable[[asyncio.BaseProtocol], None]
    ) -> None:
        """Take a transport, and what takes the protocol of an upgraded connection."""
        super().__init__()
        self._transport, self._hand_over = transport, hand_over
        self._held: list[bytes | bytearray | memoryview] | None = None
        self.written = 0
        """Bytes that were handed over for sending."""

    def hold(self) -> None:
        """Keep what is written until it is flushed: each write makes a system call."""
        self._held = []

    def flush(self) -> None:
        """Send what was held, in one write."""
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
        """Send no more."""
        self.flush()
        self._transport.write_eof()

    def can_write_eof(self) -> bool:
        """Return whether one direction can be closed."""
        return self._transport.can_write_eof()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait for the peer."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._held or ()))

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the sizes at which writing goes on and pauses."""
        return self._transport.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the sizes at which writing pauses and goes on."""
        self._transport.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        """Read nothing for a while."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def is_reading(self) -> bool:
        """Return whether reading is not paused."""
        return self._transport.is_reading()

    def is_closing(self) -> bool:
        """Return whether the connection is closed, or about to be."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._held = None
        self._transport.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - as its base
        """Return what the transport knows of the connection."""
        return self._transport.get_extra_info(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return who receives from the transport."""
        return self._transport.get_protocol()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection over to another protocol, which keeps its limits."""
        self._hand_over(protocol)

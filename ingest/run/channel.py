"""What processes of an ingest send each other: values, with the bytes of their tables in files.

A pipe copies bytes five times, in pieces of 64 KiB: 61 MB of rows take 0.5 s of CPU from process
to process, and 0.04 s by way of a file that the receiver maps. The file is gone as soon as it is
mapped; what a killed process leaves behind is swept with the temporary files of the lake.
"""

from __future__ import annotations

import mmap
import os
import pickle
import secrets
from typing import TYPE_CHECKING, Any

from tonlake.lake.log.disk import naming_full_disk

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

_FEW_BYTES = 1 << 14
"""A buffer of no more bytes goes with the value itself."""

_ALIGNMENT = 64
"""Where buffers of Arrow begin."""


class Channel:
    """One end of a pipe between two processes, which can both write files into a folder."""

    def __init__(self, pipe: Connection, folder: Path) -> None:
        """Take the end of a pipe, and the folder of the files."""
        self._pipe, self._folder = pipe, folder

    def send(self, value: object) -> None:
        """Send a value, which is pickled.

        Raises:
            LakeFull: no room for its tables.
            OSError: the other end is closed.
        """
        large: list[memoryview] = []

        def stays(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes > _FEW_BYTES:
                large.append(raw)
            return raw.nbytes <= _FEW_BYTES

        # Tables give their buffers to the callback, which keeps the large ones out of the pickle.
        data = pickle.dumps(value, protocol=5, buffer_callback=stays)
        name = self._write(large) if large else None
        self._pipe.send((data, name, [raw.nbytes for raw in large]))

    def receive(self) -> Any:  # noqa: ANN401 - what was sent
        """Return the next value.

        Raises:
            EOFError, OSError: the other end is closed.
        """
        data, name, sizes = self._pipe.recv()
        views = [] if name is None else _map(self._folder / name, sizes)
        return pickle.loads(data, buffers=views)  # noqa: S301 - our own bytes

    def close(self) -> None:
        """Close this end."""
        self._pipe.close()

    def _write(self, buffers: list[memoryview]) -> str:
        """Write buffers one behind the other, and return the file's name."""
        name = f"{os.getpid()}-{secrets.token_hex(8)}"
        path = self._folder / name
        with naming_full_disk(path):
            self._folder.mkdir(exist_ok=True)  # a sweep may have taken it for one of a dead process
            try:
                with path.open("xb", buffering=0) as stream:
                    for buffer in buffers:
                        rest = buffer
                        while rest:
                            rest = rest[stream.write(rest) :]
                        stream.seek(-stream.tell() % _ALIGNMENT, os.SEEK_CUR)
                    stream.truncate()
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        return name


def _map(path: Path, sizes: list[int]) -> list[memoryview]:
    """Return the buffers of a file, mapped as long as anything is made of them; remove the file."""
    with path.open("rb") as stream:
        whole = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    path.unlink()
    views, at = [], 0
    for size in sizes:
        views.append(whole[at : at + size])
        at += size + -size % _ALIGNMENT
    return views

"""Opens files in folders that others wrote, without hanging on a pipe or a device."""

import errno
import os
import stat
from io import FileIO
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


def open_regular(path: Path) -> FileIO:
    """Open a regular file, unbuffered, without ever blocking; others raise OSError (``EINVAL``)."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        check_regular(path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file; raises as ``open_regular``."""
    with open_regular(path) as file:
        return file.read()


def check_regular(path: Path, mode: int) -> None:
    """Raise OSError (``EINVAL``) if ``mode``, a file's ``st_mode``, is not a regular file's."""
    if not stat.S_ISREG(mode):
        kind = next((text for is_kind, text in _KINDS if is_kind(mode)), "something else")
        raise OSError(errno.EINVAL, f"expected a file, found {kind}", str(path))

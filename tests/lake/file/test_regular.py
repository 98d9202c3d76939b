"""Only regular files are read, and opening any other never blocks."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tonlake.lake.file.regular import open_regular, read_regular


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (os.mkfifo, "expected a file, found a pipe"),
        (os.mkdir, "expected a file, found a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "expected a file, found a device"),
        (make_socket, "No such device or address"),
        (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
        (lambda _path: None, "No such file"),
    ],
)
def test_what_is_no_file_is_refused(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    make(tmp_path / "file")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match=words):
        open_regular(tmp_path / "file")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"some bytes")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"some bytes"

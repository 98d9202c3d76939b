"""A process that gives up everything but reading, before it runs a stranger's statement.

DuckDB's own settings do not keep it from writing to a file that it may read, and its memory limit
is none for single values. So the operating system holds the bounds: another user where the
process may change to one, limits of memory, CPU time and files, and a filter of system calls.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tonlake.api.errors import SqlUnavailable
from tonlake.api.sql.syscalls import forbid_writing

if TYPE_CHECKING:
    from collections.abc import Iterable

_PR_SET_PDEATHSIG = 1
_OPEN_FILES = 1024


class Bounds(msgspec.Struct, frozen=True):
    """What one statement may use; ``user`` is taken where the process runs as root."""

    memory_bytes: int
    cpu_s: int
    user: str


def confine(bounds: Bounds, readable: Iterable[Path]) -> None:
    """Give up everything but reading, for good.

    Args:
        bounds: The limits.
        readable: Files that must stay readable; the user stays as it is where another could not.

    Raises:
        SqlUnavailable: the process could still write; it must not go on.
    """
    held = _read_address_space()
    own_user = _change_user(bounds.user, readable)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CPU, bounds.cpu_s),
        (resource.RLIMIT_AS, held + bounds.memory_bytes),
    ):
        _lower_limit(kind, most)
    if not forbid_writing() and not own_user:
        raise SqlUnavailable(
            "this machine cannot keep a statement from writing: its kernel has no seccomp filter, "
            "and the service does not run as root, so that there is no other user to change to"
        )


def _change_user(name: str, readable: Iterable[Path]) -> bool:
    """Become a user who may read the files, where root runs this; tell whether that was done."""
    if os.geteuid() != 0:
        return False
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return False
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(entry.pw_gid)
    os.seteuid(entry.pw_uid)
    can_read = all(os.access(path, os.R_OK, effective_ids=True) for path in readable)
    os.seteuid(0)
    os.setegid(0)
    if not can_read:
        os.setgroups(groups)
        return False
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    return True


def _read_address_space() -> int:
    """Return the bytes of address space that the process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


def _lower_limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with suppress(ValueError):  # A limit that is lower already stays.
        resource.setrlimit(kind, (bound, bound))

"""What only some operating systems offer, each with a plain fallback; no other module uses it.

Chosen by what the system has, not by its name: proc(5), prctl(2), seccomp(2), malloc_trim(3),
mallopt(3), limits of the address space, locks of open files, and ``F_FULLFSYNC``, without which
macOS leaves data in the disk's own cache.
"""

import ctypes
import fcntl
import os
import resource
import struct
import sys
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc/self")
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_SECCOMP_SET_MODE_FILTER, _TSYNC = 1, 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE_BYTES = 8 << 20
"""Buffers from this size on go back to the system as they are freed; so do as many free bytes."""


def sync(descriptor: int) -> None:
    """Make a file or folder durable: on the disk, not only in its cache."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        with suppress(OSError):  # the file system does not know it
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


_FLOCK = struct.Struct("hhqqi4x")
"""Linux's ``struct flock``: type, whence, first byte, number of bytes, process."""


def has_leases() -> bool:
    """Return whether the system has locks on bytes that belong to an open file."""
    return hasattr(fcntl, "F_OFD_SETLK")


def share_byte(descriptor: int, at: int) -> None:
    """Hold a shared lock on a byte until the file is closed, where the system can."""
    if has_leases():
        lock = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, at, 1, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)


def find_shared(descriptor: int, first: int, end: int) -> int | None:
    """Return a byte from ``first`` up to before ``end`` that an open file has a lock on."""
    if not has_leases():
        return None
    wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, first, end - first, 0)
    kind, _, at, _, _ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted))
    return None if kind == fcntl.F_UNLCK else int(at)


def read_peak_mib() -> float:
    """Return the peak memory of this process in MiB, elsewhere than on Linux by getrusage(2)."""
    try:
        status = (_PROC / "status").read_text(encoding="ascii")
    except FileNotFoundError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def read_address_space() -> int | None:
    """Return the size of this process's address space in bytes, None without proc(5)."""
    try:
        pages = int((_PROC / "statm").read_text(encoding="ascii").split()[0])
    except FileNotFoundError:
        return None
    return pages * resource.getpagesize()


def limit_address_space(most_bytes: int) -> None:
    """Limit the address space of this process, where the system can."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    bound = most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard)
    with suppress(ValueError):  # a lower limit is set, or the system has none
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def name_folder_of_process() -> Path:
    """Return a path of the working directory, one that hides its name where there is proc(5)."""
    hidden = _PROC / "cwd"
    return hidden if hidden.exists() else Path.cwd()


def end_with_parent(signal: int) -> None:
    """Let the kernel send this process a signal when its parent ends, where it can."""
    _call("prctl", _PR_SET_PDEATHSIG, signal, 0, 0, 0)


def install_filter(call_number: int, program: object) -> bool:
    """Install a seccomp filter, a BPF program, for all threads; False if the kernel has none."""
    if _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    library = ctypes.CDLL(None, use_errno=True)
    done: int = library.syscall(call_number, _SECCOMP_SET_MODE_FILTER, _TSYNC, program)
    return done == 0


def _call(name: str, *arguments: int) -> int | None:
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    return None if function is None else function(*arguments)


def return_memory() -> None:
    """Let the C library return all free memory to the system (``malloc_trim``), if it is glibc."""
    _call("malloc_trim", 0)


def keep_heap_small() -> None:
    """Let glibc keep little free memory (``mallopt``): in each process, before it has threads.

    Each arena keeps free memory in pieces, so threads share two. By default the larger buffers
    are that were freed, the more stay in the heap, between others.
    """
    _call("mallopt", _M_ARENA_MAX, 2)
    _call("mallopt", _M_MMAP_THRESHOLD, _LARGE_BYTES)
    _call("mallopt", _M_TRIM_THRESHOLD, _LARGE_BYTES)


def drop_cached_pages(descriptor: int) -> None:
    """Drop a file from the system's cache, so that the next read is from disk, where it can."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

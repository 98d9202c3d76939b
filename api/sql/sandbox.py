"""Drops all privileges of a process except reading before it runs an untrusted statement.

DuckDB's own settings do not stop it from writing to a file that it may read, and its memory limit
does not cover single values. So the operating system enforces the limits: an unprivileged user if
the process runs as root, limits on memory, CPU time and files, and a filter of system calls.
"""

import ctypes
import errno
import os
import platform
import pwd
import resource
import signal
import struct
from collections.abc import Iterable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import msgspec

from tonlake.api.errors import SqlUnavailable
from tonlake.lake.system import (
    end_with_parent,
    install_filter,
    limit_address_space,
    read_address_space,
)

_LOAD, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
"""Instructions of classic BPF (linux/filter.h): load a word, two jumps, return."""

_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
"""Return values of a filter (linux/seccomp.h); _FAIL has the errno in its low bits."""

_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT, _ARGUMENT_BYTES = 0, 4, 16, 8
"""Offsets in ``struct seccomp_data``."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CLONE_THREAD = 0x00010000

_MACHINES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
"""Column in ``_ALLOWED``, AUDIT_ARCH, and the number of the system call ``seccomp``."""

_ALLOWED = files("tonlake.api.sql").joinpath("system_calls.txt").read_text(encoding="utf-8")
"""Read now: the user that statements run as may not reach the file."""

_OPENAT, _CLONE, _CLONE3 = (257, 56), (56, 220), (435, 435)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid_writing() -> bool:
    """Install the filter irrevocably; return False if kernel or machine do not support it."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return False
    column, machine, seccomp = known
    code = _write_filter(column, machine)
    program = _Program(len(code) // 8, code)
    return install_filter(seccomp, ctypes.byref(program))


def _write_filter(column: int, machine: int) -> bytes:
    """Return the BPF program; a jump offset of 0 continues with the next instruction."""
    code = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_IF_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for line in _ALLOWED.splitlines():
        if not line.startswith("#") and (number := line.split()[1 + column]) != "-":
            code += [(_IF_EQUAL, 0, 1, int(number)), (_RETURN, 0, 0, _ALLOW)]
    # clone3 has its flags in memory, out of reach of a filter; without it the C library uses clone.
    code += [(_IF_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    code += [
        (_IF_EQUAL, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, _ARGUMENTS_AT),
        (_IF_ANY_BIT, 0, 1, _CLONE_THREAD),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_IF_EQUAL, 0, 4, _OPENAT[column]),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 2 * _ARGUMENT_BYTES),
        (_IF_ANY_BIT, 1, 0, _WRITING),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


_OPEN_FILES = 1024


class Bounds(msgspec.Struct, frozen=True):
    """Resource limits of one statement; ``user`` applies if the process runs as root."""

    memory_bytes: int
    cpu_s: int
    user: str


def confine(bounds: Bounds, readable: Iterable[Path]) -> None:
    """Irrevocably drop all privileges except reading; a user that cannot read is not taken.

    Raises SqlUnavailable if the process could still write and must not continue.
    """
    held = read_address_space()  # another user may not reach what reads it
    own_user = _change_user(bounds.user, readable)
    end_with_parent(signal.SIGKILL)
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CPU, bounds.cpu_s),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError):  # a lower limit is already set
            resource.setrlimit(kind, (bound, bound))
    if held is not None:
        limit_address_space(held + bounds.memory_bytes)
    if not forbid_writing() and not own_user:
        raise SqlUnavailable(
            "this machine cannot prevent a statement from writing: its kernel has no seccomp "
            "filter, and the service does not run as root, so it cannot change to another user"
        )


def _change_user(name: str, readable: Iterable[Path]) -> bool:
    """If root, become ``name`` if that user can read the files; return whether that was done."""
    if os.geteuid() != 0 or not hasattr(os, "setresuid"):
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

"""What a process may still ask of the kernel: a seccomp filter that leaves reading and no more.

Listed is what is allowed; everything else fails with EPERM: files cannot be opened for writing,
made, renamed, cut or removed, there is no socket, and no other program or process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_SET_MODE_FILTER = 1
_TSYNC = 1
"""Flag: the filter holds for all threads of the process."""

_LOAD, _IF_EQUAL, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
"""Instructions of classic BPF (linux/filter.h): load a word, two jumps, return."""

_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
"""What a filter answers (linux/seccomp.h); the error number stands in the last one's low bits."""

_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT, _ARGUMENT_BYTES = 0, 4, 16, 8
"""Places in ``struct seccomp_data``."""

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CLONE_THREAD = 0x00010000

_MACHINES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
"""Column of the table below, AUDIT_ARCH, and the number of ``seccomp`` itself."""

_ALLOWED = {
    "read": (0, 63),
    "pread64": (17, 67),
    "readv": (19, 65),
    "preadv": (295, 69),
    "write": (1, 64),
    "writev": (20, 66),
    "close": (3, 57),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "stat": (4, None),
    "lstat": (6, None),
    "statx": (332, 291),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "set_tid_address": (218, 96),
    "rseq": (334, 293),
    "rt_sigprocmask": (14, 135),
    "rt_sigaction": (13, 134),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "sched_getaffinity": (204, 123),
    "sched_yield": (24, 124),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "getrandom": (318, 278),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "restart_syscall": (219, 128),
    "getdents64": (217, 61),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "getcwd": (79, 17),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrusage": (98, 165),
    "poll": (7, None),
    "ppoll": (271, 73),
    "fadvise64": (221, 223),
    "membarrier": (324, 283),
    "getcpu": (309, 168),
}
"""Numbers on x86-64 and arm64, by name; some are on one of the two alone."""

_OPENAT, _CLONE, _CLONE3 = (257, 56), (56, 220), (435, 435)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid_writing() -> bool:
    """Put the filter on this process for good; False where kernel or machine cannot."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return False
    column, machine, seccomp = known
    code = _write_filter(column, machine)
    program = _Program(len(code) // 8, code)
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    done: int = library.syscall(seccomp, _SECCOMP_SET_MODE_FILTER, _TSYNC, ctypes.byref(program))
    return done == 0


def _write_filter(column: int, machine: int) -> bytes:
    """Return the filter; a jump of 0 goes on with the next instruction."""
    code = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_IF_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    for number in (numbers[column] for numbers in _ALLOWED.values()):
        if number is not None:
            code += [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    # The C library makes threads with clone where there is no clone3, whose flags are out of sight.
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

"""Where the one-file binary begins: the command, or one of the processes that it starts.

Everywhere else a process is started as ``python -P -m MODULE``. In the binary there is no such
python: ``sys.executable`` is the binary itself, which understands these options here.
"""

from __future__ import annotations

import multiprocessing
import runpy
import sys

PACKAGES = frozenset({"tonlake"})


def find_module(arguments: list[str]) -> tuple[str, list[str]] | None:
    """Return the module that ``[-P] -m MODULE`` asks for, and its arguments; else None."""
    rest = arguments[1:] if arguments[:1] == ["-P"] else arguments
    if len(rest) > 1 and rest[0] == "-m" and rest[1].split(".")[0] in PACKAGES:
        return rest[1], rest[2:]
    return None


def run(arguments: list[str]) -> None:
    """Run what the command line asks for."""
    found = find_module(arguments)
    if found is None:
        # A process that the command starts needs nothing of this, and is not to wait for it.
        from tonlake.api.command.start import start  # noqa: PLC0415

        start(args=arguments, prog_name="tonlake")
        return
    name, rest = found
    sys.argv = [name, *rest]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    run(sys.argv[1:])

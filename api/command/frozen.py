"""Entry point of the one-file binary: runs the command, or a module that it starts as a process.

Elsewhere a process is started as ``python -P -m MODULE``. In the binary ``sys.executable`` is the
binary itself, so it accepts these options.
"""

import multiprocessing
import runpy
import sys

PACKAGES = frozenset({"tonlake"})


def find_module(arguments: list[str]) -> tuple[str, list[str]] | None:
    """Return the module in ``[-P] -m MODULE`` and its arguments, or None."""
    rest = arguments[1:] if arguments[:1] == ["-P"] else arguments
    if len(rest) > 1 and rest[0] == "-m" and rest[1].split(".")[0] in PACKAGES:
        return rest[1], rest[2:]
    return None


def run(arguments: list[str]) -> None:
    """Run the command, or the module that ``arguments`` name."""
    found = find_module(arguments)
    if found is None:
        # Imported here so that child processes do not wait for it.
        from tonlake.api.command.start import start  # noqa: PLC0415

        start(args=arguments, prog_name="tonlake")
        return
    name, rest = found
    sys.argv = [name, *rest]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    run(sys.argv[1:])

"""The start of a command, while its modules load."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import COMMAND, run_program

INTERRUPTED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *rest):
        if name == "tonlake.lake.command.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize(
    ("before", "code", "printed"),
    [
        ("", -signal.SIGINT, ""),
        ("signal.signal(signal.SIGINT, signal.SIG_IGN)", 0, "Usage: "),
    ],
)
def test_an_interrupt_while_modules_load_is_silent(before: str, code: int, printed: str) -> None:
    """A process that was started to ignore it goes on."""
    lines = [INTERRUPTED, before, "from tonlake.api.command.start import start", "start()"]
    done = run_program(sys.executable, "-c", "\n".join(lines), "status", "--help")
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(printed)


SHOWN = """
import sys
from tonlake.api.command.start import start
try:
    start(args=["--version"])
except SystemExit:
    import pyarrow
    print(pyarrow.default_memory_pool().backend_name)
"""


def test_arrow_has_no_allocator_of_its_own() -> None:
    done = run_program(sys.executable, "-c", SHOWN, check=True)
    assert done.stdout.splitlines()[-1] == "system"


HANDLED = """
import signal, sys
from tonlake.api.command import main
from tonlake.api.command.start import start
import click

@click.command("probe")
def probe():
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)

main.LazyGroup.get_command = lambda self, ctx, name: probe
start(args=["probe"])
"""


def test_a_command_handles_interrupts_itself() -> None:
    done = run_program(sys.executable, "-c", HANDLED, check=True)
    assert done.stdout == "True\n"


def test_a_full_disk_behind_stdout_is_no_traceback(demo_lake: Path) -> None:
    for arguments in (["--version"], ["status", "--lake", str(demo_lake)]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")

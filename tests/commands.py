"""Collects the commands of ``tonlake`` and those shown in the documentation."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.testing import CliRunner, Result

from tonlake.api.command.main import main

COMMAND = [sys.executable, "-c", "from tonlake.api.command.start import start; start()"]
"""Runs ``tonlake`` in a process of its own."""


def run(*words: object, **options: Any) -> Result:
    """Run ``tonlake`` in this process."""
    return CliRunner().invoke(main, [*map(str, words)], **options)


def run_program(
    *words: object, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own; return its exit code and all that it wrote."""
    return subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=check, **options
    )


@contextmanager
def serving(*words: object, **options: Any) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run ``tonlake serve`` while the block runs; yield its address and the process."""
    command = [*COMMAND, "serve", *map(str, words), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split("/  ")[0], server
        finally:
            server.terminate()


def list_commands() -> dict[str, click.Command]:
    """Return all commands by name."""
    context = click.Context(main)
    found = ((name, main.get_command(context, name)) for name in main.list_commands(context))
    return {name: command for name, command in found if command is not None}


def walk_commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield ``command`` or, for a group, its subcommands, each with the words that call it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name, each in command.commands.items():
        yield from walk_commands(f"{path} {name}", each)


def find_command(words: str) -> click.Command:
    """Return the command called by ``words``, such as ``rebuild index``."""
    name = words.partition(" ")[0]
    return dict(walk_commands(name, list_commands()[name]))[words]


def list_examples(text: str, language: str) -> list[str]:
    """Return the code blocks of a Markdown text in one language, such as ``python``."""
    return re.findall(rf"^```(?:{language})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def list_lines(text: str) -> list[str]:
    """Return the commands in shell blocks, continued lines joined; only typed lines of consoles."""
    lines: list[str] = []
    for block in list_examples(text, "sh|console"):
        typed = re.sub(r"\\\n\s*", " ", block)
        prompts = re.findall(r"^\$ (.*?)(?=^\S)", typed + "$", re.DOTALL | re.MULTILINE)
        shown = prompts if typed.startswith("$ ") else _join_quoted(typed)
        lines.extend(command.strip() for command in shown)
    return lines


def _join_quoted(block: str) -> list[str]:
    """Return the logical lines of a block; an open quote continues a line."""
    found: list[str] = []
    for line in block.splitlines():
        if found and found[-1].count('"') % 2:
            found[-1] += f"\n{line}"
        elif line.strip() and not line.startswith("#"):
            found.append(line)
    return found

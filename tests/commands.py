"""The commands of ``tonlake``, each imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tonlake.api.command.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator


def list_commands() -> dict[str, click.Command]:
    """Return all commands by name."""
    context = click.Context(main)
    found = ((name, main.get_command(context, name)) for name in main.list_commands(context))
    return {name: command for name, command in found if command is not None}


def walk_commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command that does something, or those of a group, with the words it is called by."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name, each in command.commands.items():
        yield from walk_commands(f"{path} {name}", each)


def find_command(words: str) -> click.Command:
    """Return the command that is called by some words, such as ``rebuild index``."""
    name = words.partition(" ")[0]
    return dict(walk_commands(name, list_commands()[name]))[words]

"""SQL as an argument of a command."""

from __future__ import annotations

import os

import click


class StatementCommand(click.Command):
    """A command whose argument is SQL: text that begins with a comment is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put such a statement behind ``--``, where nothing is an option."""
        statements = [text for text in args if text.startswith("--") and "\n" in text]
        if statements and "--" not in args:
            args = [*(text for text in args if text not in statements), "--", *statements]
        return super().parse_args(ctx, args)


def read_statement(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    """Return SQL whose bytes the terminal's encoding may not know: UTF-8, or no text at all."""
    return os.fsencode(text).decode(errors="replace")

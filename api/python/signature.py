"""Reads signatures from the command line."""

from pathlib import Path

import click

from tonlake.ingest.derive.body.signature import MAX_CHARACTERS

HELP = "TL-B, an ABI (Tact, Tolk) or a built-in layout by name; messages that match are a table."


def read_signature(text: str) -> str:
    """Return a signature; for ``@FILE`` the content of the file.

    Raises:
        UsageError: the file cannot be read.
    """
    if not text.startswith("@"):
        return text
    try:
        with Path(text[1:]).open(encoding="utf-8") as stream:
            return stream.read(MAX_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--signature {text}: {error}") from error

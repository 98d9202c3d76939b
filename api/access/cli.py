"""The command ``tonlake key``: manages API keys."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from tonlake.api.access.key import add_key, read_keys, revoke_key
from tonlake.api.errors import KeyFileInvalid
from tonlake.api.settings import Settings
from tonlake.lake.command.cli import json_option, read_settings
from tonlake.lake.errors import LakeError

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY_RPS = 10
"""Default rate limit of a new API key, in requests per second."""

EXIT_DATA = 1

EXAMPLES = """
Examples:

\b
  tonlake key add "our wallet" --rps 25 --keys keys.json
  tonlake key list --keys keys.json
  tonlake key revoke 1f0c88a2 --keys keys.json
  TONLAKE_ACCESS_KEYS_FILE=keys.json tonlake serve --lake mainnet.lake

A running service reads changes of the file within a second. The public service of TON Center
allows 1 request per second without a key, and 10, 25 or 100 with one.
"""

keys_option = click.option(
    "--keys",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Key file.  [default: setting [access] keys_file]",
)


@click.group("key", epilog=EXAMPLES)
def key_group() -> None:
    """Manage API keys of a service; the key file holds salted hashes, never the keys."""


@key_group.command("add", epilog="Example: tonlake key add wallet --rps 25 --keys keys.json")
@click.argument("name")
@click.option(
    "--rps",
    type=click.IntRange(min=1),
    default=KEY_RPS,
    show_default=True,
    help="Requests per second.",
)
@keys_option
def add_command(*, name: str, rps: int, keys: Path | None) -> None:
    """Create a key for NAME and print it; it is not shown again."""
    with _failing_cleanly():
        click.echo(add_key(_open(keys), name, rps))


@key_group.command("list", epilog="Example: tonlake key list --keys keys.json")
@keys_option
@json_option
def list_command(*, keys: Path | None, as_json: bool) -> None:
    """Print id, rate limit, creation time and name of every key."""
    with _failing_cleanly():
        records = read_keys(_open(keys)).values()
    shown = [
        {"id": one.id, "name": one.name, "rps": one.rps, "made_at": one.made_at} for one in records
    ]
    if as_json:
        click.echo(msgspec.json.encode(shown))
        return
    for line in shown:
        click.echo(f"{line['id']}  {line['rps']:>6}/s  {line['made_at']}  {line['name']}")


@key_group.command("revoke", epilog="Example: tonlake key revoke 1f0c88a2 --keys keys.json")
@click.argument("identity", metavar="ID")
@keys_option
def revoke_command(*, identity: str, keys: Path | None) -> None:
    """Revoke the key that tonlake key list shows as ID."""
    path = _open(keys)
    with _failing_cleanly():
        gone = revoke_key(path, identity)
        if gone is None:
            raise KeyFileInvalid(f"{path} has no key {identity!r}; see tonlake key list")
    click.echo(f"revoked: {gone.id} {gone.name}")


def _open(keys: Path | None) -> Path:
    """Return the key file from the option or the setting."""
    try:
        path = keys or read_settings(Settings).access.keys_file
    except LakeError as error:
        raise click.UsageError(str(error)) from error
    if not path:
        raise click.UsageError(
            "name the file of keys with --keys, or in the setting [access] keys_file"
        )
    return Path(path)


@contextmanager
def _failing_cleanly() -> Iterator[None]:
    try:
        yield
    except KeyFileInvalid as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_DATA)


commands: list[click.Command] = [key_group]

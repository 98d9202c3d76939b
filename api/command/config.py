"""The command ``tonlake config``: every setting, its value, its origin and what it is for."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import click
import msgspec

from tonlake.api.command.loading import NAMES, describe_settings, load_settings
from tonlake.api.settings import Settings
from tonlake.lake.command.cli import failing_cleanly, json_option

CONFIG_EXAMPLES = """
Examples:

\b
  tonlake config
  TONLAKE_HTTP_PORT=8082 tonlake config
  tonlake config --config tonlake.toml --json

The file has a table for each section:

\b
  [http]
  port = 8082

The order is: command line, environment (TONLAKE_HTTP_PORT), file (--config, or the one that
TONLAKE_CONFIG names), default.
"""


@click.command("config", epilog=CONFIG_EXAMPLES)
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="TOML file.")
@json_option
@click.option("--markdown", is_flag=True, help="Print all settings and defaults as Markdown.")
def config_command(*, config_file: Path | None, as_json: bool, markdown: bool) -> None:
    """Show every setting: its value, where that comes from, and what it is for."""
    if markdown:
        click.echo(render_settings(), nl=False)
        return
    with failing_cleanly():
        settings, origins = load_settings(config_file)
    rows = [
        {
            "section": name.section,
            "name": name.name,
            "value": getattr(getattr(settings, name.section), name.name),
            "origin": origins[name],
            "doc": doc,
        }
        for name, doc in describe_settings().items()
    ]
    if as_json:
        click.echo(msgspec.json.encode(rows))
        return
    for section, members in groupby(rows, key=lambda row: row["section"]):
        click.echo(f"[{section}]")
        for row in members:
            value = msgspec.json.encode(row["value"]).decode()
            click.echo(f"{row['name']} = {value}  ({row['origin']})\n    {row['doc']}")


def render_settings() -> str:
    """Return every setting with its default as Markdown, a table for each section."""
    defaults, docs = Settings(), describe_settings()
    lines = [
        "# Settings",
        "",
        "A value is taken from the command line, else from the environment (`port` of `[http]` is",
        "`TONLAKE_HTTP_PORT`), else from the TOML file that `TONLAKE_CONFIG` names, else it is the",
        "default. `tonlake config` shows each value and where it came from.",
    ]
    for section, names in groupby(NAMES, key=lambda name: name.section):
        lines += [
            "",
            f"## [{section}]",
            "",
            "| setting | default | what it does |",
            "|---|---|---|",
        ]
        for name in names:
            value = msgspec.json.encode(getattr(getattr(defaults, section), name.name)).decode()
            doc = docs[name].replace("|", "\\|")
            lines.append(f"| `{name.name}` | `{value}` | {doc} |")
    return "\n".join(lines) + "\n"


commands: list[click.Command] = [config_command]

"""Loads the settings, and implements ``tonlake config``, which shows their values and origins.

Later layers override earlier ones: defaults < TOML file (``[http] port``) < environment
(``TONLAKE_HTTP_PORT``) < flags.
"""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from tonlake.api.settings import Settings
from tonlake.ingest.command.node import NODE_VARIABLE
from tonlake.lake.command.argument import LAKE_VARIABLE
from tonlake.lake.command.cli import describe_error, failing_cleanly, fill_template, json_option
from tonlake.lake.errors import SettingsError
from tonlake.lake.settings import CONFIG_VARIABLE

PREFIX = "TONLAKE_"
OTHER_VARIABLES = frozenset(
    {CONFIG_VARIABLE, LAKE_VARIABLE, NODE_VARIABLE, "TONLAKE_CRASH_AT", "TONLAKE_NATIVE"}
)
"""Variables with the prefix that are not settings."""


class SettingName(NamedTuple):
    """The section and the name of a setting."""

    section: str
    name: str

    def __str__(self) -> str:
        """Return the name as in documentation, such as ``[http] port``."""
        return f"[{self.section}] {self.name}"

    @property
    def flat(self) -> str:
        """The name without its section, as in the environment: ``http_port``."""
        return f"{self.section}_{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.flat.upper()


_SECTIONS: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Settings)}
_TYPES = {
    SettingName(section, field.name): field.type
    for section, kind in _SECTIONS.items()
    for field in msgspec.structs.fields(kind)
}
NAMES = tuple(_TYPES)
_BY_FLAT = {name.flat: name for name in NAMES}


def load_settings(
    config_file: Path | None = None,
    env: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> tuple[Settings, dict[SettingName, str]]:
    """Return the settings, and the origin of each value; or raise SettingsError.

    The TOML file is by default that of ``TONLAKE_CONFIG``, if any; ``flags`` are values of
    command-line flags by flat name (``http_port``), None if not set.
    """
    if config_file is None and env.get(CONFIG_VARIABLE):
        config_file = Path(env[CONFIG_VARIABLE])
    origins = dict.fromkeys(NAMES, "default")
    values: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
    chosen = [(_BY_FLAT[flat], value) for flat, value in (flags or {}).items() if value is not None]
    given = ((name, value, f"--{name.name.replace('_', '-')}") for name, value in chosen)
    for layer in (_read_file(config_file), _read_environment(env), given):
        for name, value, origin in layer:
            try:
                # Environment values are always text; in a TOML file they have types.
                found = msgspec.convert(value, _TYPES[name], strict=not origin.startswith(PREFIX))
            except msgspec.ValidationError as error:
                raise SettingsError(f"{origin}: setting {name} = {value!r}: {error}") from error
            values[name.section][name.name] = found
            origins[name] = origin
    sections = {section: kind(**values[section]) for section, kind in _SECTIONS.items()}
    return Settings(**sections), origins


def load_command_settings(**flags: object) -> Settings:
    """Return the settings with command-line ``flags``; an invalid one is a usage error."""
    try:
        return load_settings(flags=flags)[0]
    except SettingsError as error:
        raise click.UsageError(str(error)) from error


def _read_file(path: Path | None) -> Iterator[tuple[SettingName, object, str]]:
    if path is None:
        return
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = describe_error(error) if isinstance(error, OSError) else f"{path}: {error}"
        raise SettingsError(f"cannot read the configuration file {reason}") from error
    for section, table in document.items():
        if not isinstance(table, dict):
            raise _refuse(section, str(path))
        for key, value in table.items():
            name = SettingName(section, key)
            if name not in _TYPES:
                raise _refuse(name.flat, str(path), shown=str(name))
            yield name, value, str(path)


def _read_environment(env: Mapping[str, str]) -> Iterator[tuple[SettingName, object, str]]:
    for variable, value in env.items():
        if variable.startswith(PREFIX) and variable not in OTHER_VARIABLES:
            flat = variable.removeprefix(PREFIX).lower()
            if flat not in _BY_FLAT:
                raise _refuse(flat, variable)
            yield _BY_FLAT[flat], value, variable


def _refuse(flat: str, origin: str, shown: str | None = None) -> SettingsError:
    """Return the error for an unknown setting; ``shown`` is its name as in ``origin``."""
    near = _BY_FLAT[difflib.get_close_matches(flat, _BY_FLAT, n=1, cutoff=0)[0]]
    return SettingsError(f"{origin}: unknown setting {shown or flat}; did you mean {near}?")


def describe_settings() -> dict[SettingName, str]:
    """Return the documentation of every setting, the last text in the annotation of its field."""
    return {name: kind.__metadata__[-1] for name, kind in _TYPES.items()}


@click.command("config")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="TOML file.")
@json_option
@click.option("--markdown", is_flag=True, help="Print all settings and defaults as Markdown.")
def config_command(*, config_file: Path | None, as_json: bool, markdown: bool) -> None:
    """Show every setting: its value, the origin of the value, and its purpose."""
    if markdown:
        click.echo(render_settings())
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
    """Return all settings with their defaults as Markdown, one table per section."""
    sections = [(name, list(each)) for name, each in groupby(NAMES, key=lambda name: name.section)]
    return fill_template(
        "tonlake.api.command",
        "settings.txt",
        sections=sections,
        defaults=msgspec.to_builtins(Settings()),
        docs=describe_settings(),
    )


commands: list[click.Command] = [config_command]

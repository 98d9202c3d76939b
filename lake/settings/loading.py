"""Load settings from layers: default, file, environment, flags; the last one wins."""

from __future__ import annotations

import difflib
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lake.errors import SettingsError
from lake.settings.whole import NAMES, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "TONLAKE_"
CONFIG_VARIABLE = "TONLAKE_CONFIG"
OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "TONLAKE_CRASH_AT", "TONLAKE_NATIVE"})
"""Variables with the prefix that are not settings."""


def load_settings(
    config_file: Path | None = None,
    env: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> tuple[Settings, dict[str, str]]:
    """Return the settings, and for each name the origin of its value.

    Args:
        config_file: TOML file; without it the one named by ``TONLAKE_CONFIG``, if any.
        env: Environment; variables named ``TONLAKE_<NAME>`` are settings.
        flags: Values of command-line flags; None means the flag was not given.

    Raises:
        SettingsError: unknown name, bad value, or unreadable file.
    """
    if config_file is None and env.get(CONFIG_VARIABLE):
        config_file = Path(env[CONFIG_VARIABLE])
    origins = dict.fromkeys(NAMES, "default")
    values: dict[str, Any] = {}
    layers = (_read_file(config_file), _read_environment(env), _read_flags(flags or {}))
    for layer in layers:
        for name, (value, origin) in layer.items():
            values[name] = _convert(name, value, origin)
            origins[name] = origin
    return Settings(**values), origins


_TYPES = {field.name: field.type for field in msgspec.structs.fields(Settings)}

_Layer = dict[str, tuple[Any, str]]


def _read_file(path: Path | None) -> _Layer:
    if path is None:
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot read the configuration file {path}: {error}") from error
    return {key: (value, str(path)) for key, value in document.items()}


def _read_environment(env: Mapping[str, str]) -> _Layer:
    return {
        key.removeprefix(PREFIX).lower(): (value, key)
        for key, value in env.items()
        if key.startswith(PREFIX) and key not in OTHER_VARIABLES
    }


def _read_flags(flags: Mapping[str, Any]) -> _Layer:
    return {
        name: (value, f"--{name.replace('_', '-')}")
        for name, value in flags.items()
        if value is not None
    }


def _convert(name: str, value: object, origin: str) -> object:
    if name not in _TYPES:
        near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0)
        raise SettingsError(f"{origin}: unknown setting {name!r}; did you mean {near[0]!r}?")
    try:
        # Environment values are text; TOML values are typed.
        return msgspec.convert(value, _TYPES[name], strict=not origin.startswith(PREFIX))
    except msgspec.ValidationError as error:
        raise SettingsError(f"{origin}: setting {name} = {value!r}: {error}") from error

"""Settings: layers, origins, refusals, documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from lake.errors import SettingsError
from lake.settings import NAMES, Settings, describe_settings, load_settings

if TYPE_CHECKING:
    from pathlib import Path


def test_defaults_without_anything() -> None:
    settings, origins = load_settings(env={})
    assert settings == Settings()
    assert origins == dict.fromkeys(NAMES, "default")


def test_each_layer_hides_the_one_before(tmp_path: Path) -> None:
    config = tmp_path / "tonlake.toml"
    config.write_text("http_port = 1\nzstd_level = 2\nduckdb_threads = 3\n")
    env = {"TONLAKE_ZSTD_LEVEL": "4", "TONLAKE_DUCKDB_THREADS": "5", "HOME": "/"}
    settings, origins = load_settings(config, env, {"duckdb_threads": 6, "http_host": None})
    assert (settings.http_port, settings.zstd_level, settings.duckdb_threads) == (1, 4, 6)
    assert origins["http_port"] == str(config)
    assert origins["zstd_level"] == "TONLAKE_ZSTD_LEVEL"
    assert origins["duckdb_threads"] == "--duckdb-threads"
    assert origins["http_host"] == "default"


def test_config_file_named_by_the_environment(tmp_path: Path) -> None:
    config = tmp_path / "tonlake.toml"
    config.write_text('opcode_format = "integer"\n')
    settings, _ = load_settings(env={"TONLAKE_CONFIG": str(config)})
    assert settings.opcode_format == "integer"


def test_crash_point_is_no_setting() -> None:
    others = {"TONLAKE_CRASH_AT": "log.linked", "TONLAKE_NATIVE": "0"}
    assert load_settings(env=others)[0] == Settings()


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("false", False), ("1", True), ("0", False)]
)
def test_environment_speaks_booleans(text: str, value: bool) -> None:  # noqa: FBT001
    assert load_settings(env={"TONLAKE_STRICT_PARAMETERS": text})[0].strict_parameters is value


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"TONLAKE_HTTP_PROT": "1"}, "did you mean 'http_port'"),
        ({"TONLAKE_HTTP_PORT": "65536"}, "http_port = '65536'"),
        ({"TONLAKE_HTTP_PORT": "many"}, "http_port = 'many'"),
        ({"TONLAKE_OPCODE_FORMAT": "octal"}, "opcode_format = 'octal'"),
        ({"TONLAKE_CONFIG": "/nowhere/tonlake.toml"}, "/nowhere/tonlake.toml"),
    ],
)
def test_refusals_name_the_place(env: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(env=env)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http_prot = 1", "did you mean 'http_port'"),
        ('http_port = "1"', "Expected `int`"),
        ("http_port = ", "cannot read the configuration file"),
    ],
)
def test_refusals_of_a_file(tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "tonlake.toml"
    config.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_settings(config, env={})


def test_every_setting_is_documented() -> None:
    docs = describe_settings()
    assert tuple(docs) == NAMES
    assert all(len(doc) > 10 and not doc.endswith(".") for doc in docs.values())


def test_defaults_keep_their_own_bounds() -> None:
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings) == Settings()

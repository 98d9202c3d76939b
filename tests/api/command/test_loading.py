"""Settings: layers, origins, refusals, documentation."""

import json
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests import commands
from tests.patience import compose
from tonlake.api.command.loading import NAMES, SettingName, describe_settings, load_settings
from tonlake.api.settings import Settings
from tonlake.ingest.settings import IngestSections
from tonlake.lake.errors import SettingsError
from tonlake.lake.process import name_child

PORT, HOST = SettingName("http", "port"), SettingName("http", "host")
LEVEL, THREADS = SettingName("lake", "zstd_level"), SettingName("lake", "duckdb_threads")


def test_defaults_without_anything() -> None:
    settings, origins = load_settings(env={})
    assert settings == Settings()
    assert origins == dict.fromkeys(NAMES, "default")


def test_each_layer_hides_the_one_before(tmp_path: Path) -> None:
    config = tmp_path / "tonlake.toml"
    config.write_text("[http]\nport = 1\n[lake]\nzstd_level = 2\nduckdb_threads = 3\n")
    env = {"TONLAKE_LAKE_ZSTD_LEVEL": "4", "TONLAKE_LAKE_DUCKDB_THREADS": "5", "HOME": "/"}
    settings, origins = load_settings(config, env, {"lake_duckdb_threads": 6, "http_host": None})
    lake = settings.lake
    assert (settings.http.port, lake.zstd_level, lake.duckdb_threads) == (1, 4, 6)
    assert origins[PORT] == str(config)
    assert origins[LEVEL] == "TONLAKE_LAKE_ZSTD_LEVEL"
    assert origins[THREADS] == "--duckdb-threads"
    assert origins[HOST] == "default"


def test_config_file_named_by_the_environment(tmp_path: Path) -> None:
    config = tmp_path / "tonlake.toml"
    config.write_text('[http]\nopcode_format = "integer"\n')
    settings, _ = load_settings(env={"TONLAKE_CONFIG": str(config)})
    assert settings.http.opcode_format == "integer"


def test_crash_point_is_no_setting() -> None:
    others = {"TONLAKE_CRASH_AT": "log.linked", "TONLAKE_NATIVE": "0"}
    assert load_settings(env=others)[0] == Settings()


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("false", False), ("1", True), ("0", False)]
)
def test_environment_has_booleans(text: str, value: bool) -> None:  # noqa: FBT001
    settings, _ = load_settings(env={"TONLAKE_HTTP_STRICT_PARAMETERS": text})
    assert settings.http.strict_parameters is value


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"TONLAKE_HTTP_PROT": "1"}, r"did you mean \[http\] port"),
        ({"TONLAKE_HTTP_PORT": "65536"}, r"\[http\] port = '65536'"),
        ({"TONLAKE_HTTP_PORT": "many"}, r"\[http\] port = 'many'"),
        ({"TONLAKE_HTTP_OPCODE_FORMAT": "octal"}, r"\[http\] opcode_format = 'octal'"),
        ({"TONLAKE_CONFIG": "/nowhere/tonlake.toml"}, "/nowhere/tonlake.toml"),
        ({"TONLAKE_DUCKDB_MEMORY_MIB": "512"}, r"did you mean \[lake\] duckdb_memory_mib"),
        ({"TONLAKE_KEYS_FILE": "keys.json"}, r"did you mean \[access\] keys_file"),
    ],
)
def test_refusals_name_the_place(env: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_settings(env=env)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[http]\nprot = 1", r"unknown setting \[http\] prot; did you mean \[http\] port"),
        ('[http]\nport = "1"', "Expected `int`"),
        ("[http]\nport = ", "cannot read the configuration file"),
        ("http_port = 1", r"did you mean \[http\] port"),
        ("[tmv]\nworkers = 1", r"did you mean \[tvm\] workers"),
        ("http = 1", r"did you mean \[http\]"),
    ],
)
def test_refusals_of_a_file(tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "tonlake.toml"
    config.write_text(text)
    with pytest.raises(SettingsError, match=message):
        load_settings(config, env={})


def test_names_without_a_section_are_unique() -> None:
    assert len({name.flat for name in NAMES}) == len(NAMES)


def test_settings_stay_few() -> None:
    """A new setting earns its place: the number rises only for what no default can serve."""
    assert len(NAMES) <= 85


def test_every_setting_is_documented() -> None:
    docs = describe_settings()
    assert tuple(docs) == NAMES
    assert all(len(doc) > 10 and not doc.endswith(".") for doc in docs.values())


def test_defaults_keep_their_own_bounds() -> None:
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings) == Settings()


def test_a_child_process_reads_the_sections_of_ingest_alone() -> None:
    settings = compose(tvm={"workers": 7}, upstream={"key": "secret"})
    text = name_child("module", IngestSections, settings)[-1]
    assert "secret" not in text
    decoded = msgspec.json.decode(text, type=IngestSections)
    assert type(decoded) is IngestSections
    assert decoded.tvm == settings.tvm


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name.variable, raising=False)


run = partial(commands.run, "config")


def test_values_and_origins_are_shown(tmp_path: Path) -> None:
    config = tmp_path / "tonlake.toml"
    config.write_text("[http]\nport = 9000\n")
    env = {"TONLAKE_LAKE_ZSTD_LEVEL": "3"}
    text = run("--config", config, env=env).output
    assert "[http]\n" in text
    assert f"port = 9000  ({config})" in text
    assert "zstd_level = 3  (TONLAKE_LAKE_ZSTD_LEVEL)" in text
    assert 'host = "127.0.0.1"  (default)' in text
    rows = json.loads(run("--json", env=env).stdout)
    assert [(row["section"], row["name"]) for row in rows] == list(map(tuple, NAMES))
    assert all(row["doc"] for row in rows)


def test_unknown_settings() -> None:
    done = run(env={"TONLAKE_HTTP_PROT": "1"})
    assert done.exit_code == 1
    assert "did you mean [http] port" in done.stderr

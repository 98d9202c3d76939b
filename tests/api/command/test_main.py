"""The command ``tonlake``: every command is found by its table, and loads no others."""

import re
import shlex
import subprocess
import sys
from importlib import import_module

import click
import pytest

from tests.commands import list_commands, run
from tonlake.api.command.main import MODULES, main, read_examples, read_help


def test_every_command_of_a_module_is_listed() -> None:
    found = {
        command.name for name in set(MODULES.values()) for command in import_module(name).commands
    }
    assert found == set(MODULES) == set(list_commands())


def test_an_unknown_command_is_refused() -> None:
    result = run("serv")
    assert result.exit_code == 2
    assert "No such command 'serv'. Did you mean 'serve'?" in result.output
    far = run("zzz")
    assert (far.exit_code, "No such command 'zzz'." in far.output) == (2, True)


def test_a_file_of_settings_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONLAKE_CONFIG", "/nowhere/tonlake.toml")
    for command in ("schema", "status", "config"):
        result = run(command)
        assert result.exit_code == 2
        assert "TONLAKE_CONFIG names /nowhere/tonlake.toml, which does not exist" in result.output
    assert "settings: cannot read" in run("doctor").output


def test_the_list_of_commands_shows_the_help_of_each() -> None:
    for name, command in list_commands().items():
        assert click.Command(name, help=read_help(name)).help == command.help


def test_the_list_of_commands_has_whole_sentences() -> None:
    for group in ([], ["key"], ["rebuild"], ["spark"], ["table"]):
        listed = " ".join(run(*group, "--help").output.split())
        assert "..." not in listed.partition("Commands:")[2].partition("Example")[0]


@pytest.mark.parametrize(("name", "examples"), [*read_examples()])
def test_examples_have_the_options_of_their_command(name: str, examples: str) -> None:
    whole = examples.replace("\\\n", " ")
    lines = re.findall(r"^(?:  |Example: )(?:\w+=\S+ )?tonlake ([^|>\n]+)", whole, re.MULTILINE)
    assert any(f"{line} ".startswith(f"{name} ") for line in lines)
    for line in lines:
        command: click.Command = main
        words = shlex.split(line)
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        command.make_parser(click.Context(command)).parse_args(words)


@pytest.mark.parametrize(
    ("name", "others"),
    [
        (None, tuple(MODULES.values())),
        ("status", ("litestar", "uvicorn", "tonlake.ingest.run.pipeline", "tonlake.api.settings")),
        ("ingest", ("litestar", "uvicorn", "tonlake.api.app")),
    ],
)
def test_a_command_loads_no_other(name: str | None, others: tuple[str, ...]) -> None:
    code = (
        "import sys; from tonlake.api.command.main import main;"
        f"main({[name] if name else []} + ['--help'], standalone_mode=False);"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(others) & set(done.stderr.split())

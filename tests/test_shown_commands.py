"""Every command line in the README and docs does what the text promises."""

import copy
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.commands import list_commands, list_examples, list_lines, run_program, serving
from tests.patience import LIMITS
from tonlake.lake.command.argument import FolderOrURL

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BIN = Path(sys.executable).parent
_RUN = ("sql", "status", "views", "schema", "config", "verify", "explain", "doctor")
"""Commands that are run on the demo lake; the others are read by their own options alone."""


def _split(line: str) -> list[str]:
    """Return the words of a ``tonlake`` command; [] for any other command."""
    # Shell substitutions are not options.
    words = shlex.split(re.sub(r"\$\([^)]*\)", "x", line), comments=True)
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    if not words or Path(words[0]).name != "tonlake" or words[1:2] == ["--version"]:
        return []
    ends = [at for at, word in enumerate(words) if word in {"|", ">", "&&", "&", ";"}]
    return words[1 : ends[0]] if ends else words[1:]


SHOWN = sorted(
    {
        (page.name, line)
        for page in PAGES
        for line in list_lines(page.read_text(encoding="utf-8"))
        if _split(line)
    }
)


def _without_folder(parameter: click.Parameter) -> click.Parameter:
    """Return a parameter that accepts any path: the documented folders do not exist here."""
    found = copy.copy(parameter)
    if isinstance(found.type, click.Path | FolderOrURL):
        found.type = click.STRING
    return found


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=lambda each: each[:60])
def test_the_options_are_those_of_the_command(page: str, line: str) -> None:
    del page
    words = _split(line)
    command: click.Command = list_commands()[words[0]]
    context = click.Context(click.Group("tonlake"))
    while isinstance(command, click.Group):
        words = words[1:]
        found = command.get_command(context, words[0])
        assert found is not None, words
        command = found
    command = copy.copy(command)
    command.params = [_without_folder(parameter) for parameter in command.params]
    try:
        command.make_context("tonlake", words[1:])
    except click.UsageError as error:
        raise AssertionError(f"{line}: {error.format_message()}") from error


ON_THE_DEMO = [
    line
    for page, line in SHOWN
    if ".demo/lake" in line and _split(line)[0] in _RUN
    if (page, _split(line)[0]) != ("tutorial.md", "sql")
]
"""All but the statements of the tutorial, whose answers `test_docs.py` compares."""


@pytest.fixture(scope="module")
def folder(demo_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout after ``make demo``, complete enough for the commands on the demo lake."""
    found = tmp_path_factory.mktemp("checkout")
    shutil.copytree(demo_lake, found / ".demo" / "lake")
    return found


@pytest.mark.parametrize("line", ON_THE_DEMO, ids=lambda each: each[:60])
def test_commands_on_the_demo_run_as_they_are_typed(line: str, folder: Path) -> None:
    done = run_program(
        "bash", "-euc", line, cwd=folder, env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    )
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


REQUESTS = sorted(
    {
        line
        for page in PAGES
        for block in list_examples(page.read_text(encoding="utf-8"), "sh")
        for line in list_lines(f"```sh\n{block}```")
        if line.startswith("curl ") and "://127.0.0.1:8080/" in line
    }
)


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    """The address of a service over the demo lake, with SQL enabled."""
    lake = folder / ".demo" / "lake"
    patience = {f"TONLAKE_HTTP_{name.upper()}": str(ms) for name, ms in LIMITS["http"].items()}
    environment = os.environ | patience | {"TONLAKE_SQL_ENABLED": "1"}
    with serving("--lake", lake, env=environment) as (address, _service):
        yield address.removeprefix("http://")


@pytest.mark.usefixtures("tvm")
@pytest.mark.parametrize("line", REQUESTS, ids=lambda each: each[:90])
def test_requests_are_answered_as_they_are_typed(line: str, served: str, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    (tmp_path / ".curlrc").write_text("fail-with-body\nsilent\n")
    done = run_program(
        "bash",
        "-euc",
        line.replace("127.0.0.1:8080", served),
        cwd=tmp_path,
        env=os.environ | {"CURL_HOME": str(tmp_path)},
    )
    ended = {0, 28} if "--max-time" in line else {0}  # 28: the stream was still open
    assert done.returncode in ended, done.stdout
    assert done.stdout or ("--output" in line and (tmp_path / "page.zst").stat().st_size)

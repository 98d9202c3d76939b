"""The documentation is complete and up to date, and its examples do what they show."""

import doctest
import io
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import click
import duckdb
import pytest
import yaml

import tonlake
from tests.commands import list_commands, run, run_program, walk_commands
from tests.ingest.derive.action.scene import Cell, Scene, account
from tests.patience import PATIENT
from tonlake.api.app import create_application
from tonlake.api.command.loading import NAMES, OTHER_VARIABLES, render_settings
from tonlake.ingest.derive.action import classifier
from tonlake.ingest.derive.action.interface import Interfaces
from tonlake.ingest.derive.action.row import ActionRow
from tonlake.lake.command.maintain import SOURCE, render_dbt, render_markdown
from tonlake.lake.duck.connection import ALL_VIEWS, connect, read_macros
from tonlake.lake.duck.views import write_views
from tonlake.lake.log.snapshot import open_snapshot
from tonlake.lake.schema.column import SQL_TYPES
from tonlake.lake.schema.dictionary import REFERENCE_TABLES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "api" / "DIFFERENCES.md", *DOCS.glob("*.md")])
BIN = Path(sys.executable).parent


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


COMMANDS = {
    words: command
    for name, group in list_commands().items()
    for words, command in walk_commands(f"tonlake {name}", group)
}


@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_every_command_is_documented(words: str) -> None:
    text = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert words in text


@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_every_command_and_option_has_help(words: str) -> None:
    command = COMMANDS[words]
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_every_command_is_in_the_table_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `tonlake ([\w-]+)", readme, re.MULTILINE)) == set(list_commands())


@pytest.mark.parametrize("name", sorted(list_commands()))
def test_every_command_has_help_with_an_example(name: str) -> None:
    asked = run(name, "--help", prog_name="tonlake")
    assert asked.exit_code == 0
    text = asked.output
    assert f"tonlake {name}" in text.split("\n", 1)[1], "an example follows the usage line"


def test_the_data_dictionary_is_that_of_the_code() -> None:
    assert read("data-dictionary.md") == render_markdown() + "\n", "run make docs"


@pytest.mark.parametrize("page", ["architecture.md", "reliability.md"])
def test_pages_about_the_code_name_what_is_there(page: str) -> None:
    named = set(re.findall(r"\b((?:lake|ingest|queries|api|tests|docs)/[\w/.]*\w)", read(page)))
    assert len(named) > 30
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_the_legend_names_every_type() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", read("bi.md"), re.MULTILINE)
    assert dict(rows) == SQL_TYPES


def test_the_list_of_settings_is_that_of_the_code() -> None:
    text = read("settings.md")
    assert text == render_settings() + "\n", "run make docs"
    assert re.findall(r"^\| `(\w+)`", text, re.MULTILINE) == [name.name for name in NAMES]


def test_settings_that_pages_name_are_there() -> None:
    named = {
        name
        for page in PAGES
        for name in re.findall(r"\bTONLAKE_[A-Z0-9_]+\b", page.read_text(encoding="utf-8"))
    }
    assert named <= {*(name.variable for name in NAMES), *OTHER_VARIABLES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link, place in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
        assert (page.parent / link).exists(), link
        if place and (not link or link.endswith(".md")):
            there = (page.parent / link if link else page).read_text(encoding="utf-8")
            heads = re.findall(r"^#+ (.*)", there.lower(), re.MULTILINE)
            named = {re.sub(r"[^\w -]", "", head).replace(" ", "-") for head in heads}
            assert place in named or f'id="{place}"' in there, (link, place)


def test_the_index_names_every_page() -> None:
    index = read("index.md")
    assert [page.name for page in DOCS.glob("*.md") if page.name not in index] == ["index.md"]


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "api.md"], ids=lambda each: each.name)
def test_paths_of_the_service_are_served(page: Path) -> None:
    routes = {route.path for route in create_application(PATIENT, {}, [], []).routes}
    prefixes = {"/api/v2", "/api/v3"}
    named = set(re.findall(r"`(/[a-z][\w./]*|/)`", page.read_text(encoding="utf-8")))
    assert named >= {"/docs", "/api/streaming/v2/sse"}
    assert named - routes - prefixes == set()


EXAMPLES = re.findall(r"```sql\n(.*?)```", read("sql.md"), re.DOTALL)


@pytest.mark.parametrize("statement", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_in_sql_find_something(statement: str, demo_lake: Path) -> None:
    answer = run("sql", "--lake", demo_lake, statement)
    assert answer.exit_code == 0, answer.output
    assert len(answer.stdout.splitlines()) > 2


SHOWN = re.findall(
    r'\$ tonlake sql --lake \.demo/lake "(.*?)"\n(.*?)```', read("tutorial.md"), re.DOTALL
)


@pytest.mark.parametrize(("statement", "shown"), SHOWN, ids=range(len(SHOWN)))
def test_the_tutorial_shows_what_is_answered(statement: str, shown: str, demo_lake: Path) -> None:
    answer = run("sql", "--lake", demo_lake, statement)
    assert [line.rstrip() for line in answer.stdout.splitlines()] == shown.splitlines()


def test_the_protocol_that_is_added_as_an_example_works() -> None:
    names: dict[str, object] = {"__name__": "faucet"}
    module, test = re.findall(r"```python\n(.*?)```", read("adding-a-protocol.md"), re.DOTALL)
    exec(module, names)  # noqa: S102 - our own page
    rule: Any = names["claim"]

    class Tried(Scene):
        def classify(self) -> list[ActionRow]:
            with mock.patch.object(classifier, "_BOOK", classifier.RuleBook([rule])):
                return classifier.classify(self.trace(), Interfaces(self.facts)).actions

    class Faucet:
        CLAIM, PAYOUT = names["CLAIM"], names["PAYOUT"]

    words = {
        "Scene": Tried,
        "Cell": Cell,
        "faucet": Faucet,
        "WALLET": account("wallet"),
        "FAUCET": account("faucet"),
    }
    exec(f"{test}\ntest_claim()", words)  # noqa: S102 - as above


@pytest.mark.usefixtures("tvm")
def test_the_python_page_shows_what_is_answered(
    demo_lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tonlake, "demo", lambda: tonlake.open(demo_lake), raising=False)
    examples = doctest.DocTestParser().get_doctest(read("python.md"), {}, "python.md", None, None)
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    said = io.StringIO()
    done = doctest.DocTestRunner(optionflags=options).run(examples, out=said.write)
    assert (done.failed, said.getvalue()) == (0, "")
    assert done.attempted == read("python.md").count("\n>>> ")


def test_the_program_gives_its_completion() -> None:
    done = run_program(
        BIN / "tonlake", env={"_TONLAKE_COMPLETE": "fish_source", "PATH": "/usr/bin:/bin"}
    )
    assert "_tonlake_completion" in done.stdout


def test_the_way_from_dune_ends_at_what_is_there(demo_lake: Path) -> None:
    page = read("from-dune.md")
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z_0-9]+)`", row)}
    columns = {"time", "day", "amount"}
    assert len(named) > 30
    assert named - columns <= {*ALL_VIEWS, *(table.name for table in REFERENCE_TABLES)}
    made = set(re.findall(r"macro (\w+)\(", read_macros()))
    assert {name for row in rows for name in re.findall(r"\b(ton_\w+)\(", row)} <= made
    (example,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    found = connect(open_snapshot(demo_lake), statement=example).sql(example)
    assert found.columns == ["day", "dex", "volume_ton"]


@pytest.mark.long
def test_dbt_builds_the_example(demo_lake: Path, tmp_path: Path) -> None:
    """Runs in a separate environment, installed from the package index: dbt has 60 packages."""
    lake, project = shutil.copytree(demo_lake, tmp_path / "lake"), tmp_path / "project"
    write_views(lake)
    shutil.copytree(ROOT / "dbt", project)
    (project / "models" / "sources.yml").write_text(render_dbt())
    packages = "--from dbt-core<1.12 --with dbt-duckdb"
    environment = {"TONLAKE_LAKE": str(lake), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    for command in ("build", "source freshness"):
        done = run_program(
            BIN / "uv",
            *f"tool run {packages} dbt {command} --profiles-dir .".split(),
            cwd=project,
            env=os.environ | environment,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert "WARN freshness of tonlake.blocks" in done.stdout
    asked = connect(open_snapshot(demo_lake))
    with duckdb.connect(str(project / "models.duckdb"), read_only=True) as made:
        counted = made.sql("select date, accounts, transactions, fees from active_accounts")
        daily = asked.sql("select date, active_accounts, transactions, fees from v_daily")
        assert sorted(counted.fetchall()) == sorted(daily.fetchall())
        holders = made.sql("select distinct address from largest_holders").fetchall()
    known = asked.sql("select distinct owner_workchain || ':' || hex(owner) from jetton_wallets")
    assert set(holders) <= set(known.fetchall())
    assert holders


def test_dbt_finds_its_sources(demo_lake: Path, tmp_path: Path) -> None:
    lake = shutil.copytree(demo_lake, tmp_path / "lake")
    catalog = next(path for path in write_views(lake) if path.suffix == ".duckdb")
    source = yaml.safe_load(render_dbt())["sources"][0]
    assert source["name"] == source["database"] == SOURCE
    with duckdb.connect() as connection:
        connection.execute(f"attach '{catalog}' as {SOURCE} (read_only)")
        for table in source["tables"]:
            view = connection.table(f"{SOURCE}.{source['schema']}.{table['name']}")
            assert view.columns == [column["name"] for column in table["columns"]]
            checks = [
                f"{each['name']} is null"
                if test == "not_null"
                else f"{each['name']} not in {test['accepted_values']['arguments']['values']}"
                for each in table["columns"]
                for test in each.get("data_tests", ())
            ]
            assert view.filter(" or ".join(checks) or "false").fetchall() == []

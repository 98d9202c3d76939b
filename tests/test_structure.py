"""House rules: import directions, module and function sizes, annotations, docstrings."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tonlake.lake.schema import TABLES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("lake", "ingest", "queries", "api")
MAY_IMPORT = {
    "lake": {"lake"},
    "ingest": {"ingest", "lake"},
    "queries": {"queries", "lake"},
    "api": {"api", "queries", "ingest", "lake"},
}
EXECUTING = frozenset({"execute", "executemany", "sql", "query", "from_query"})
AUDITED = frozenset({"join_scripts"})
"""Functions of ``tonlake.lake.duck.statement``, the only module that may compose SQL text."""

MODULE_LINES = 600
FUNCTION_LINES = 60
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _imported_packages(tree: ast.AST) -> set[str]:
    """Return the imported names below ``tonlake``."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    parts = [name.split(".") for name in names]
    assert not {first for first, *_ in parts} & set(PACKAGES), "packages are below tonlake"
    return {rest[0] for first, *rest in parts if first == "tonlake"}


def test_an_import_against_the_direction_is_found() -> None:
    for line in (
        "import tonlake.api.app",
        "from tonlake.api import app",
        "from tonlake import api",
    ):
        assert _imported_packages(ast.parse(line)) == {"api"}


def test_imports_go_one_way() -> None:
    for path in MODULES:
        package = path.relative_to(ROOT).parts[0]
        assert _imported_packages(_parse(path)) <= MAY_IMPORT[package], _name(path)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_modules_and_functions_stay_small() -> None:
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= MODULE_LINES, _name(path)
        for node in _functions(_parse(path)):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES, f"{_name(path)}: {node.name} has {lines} lines"


def _composes(node: ast.expr) -> bool:
    """Return whether an expression is text put together at run time."""
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(attr="format" | "format_map" | "join" | "replace")):
            return True
    return False


def _find_composed(tree: ast.Module) -> list[int]:
    """Return the lines where composed text is executed, directly or by the name of a variable."""
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _composes(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in EXECUTING and node.args
        if _composes(node.args[0])
        or (isinstance(node.args[0], ast.Name) and node.args[0].id in names)
    ]


@pytest.mark.parametrize(
    "source", ['c.execute(f"use {x}")', 'c.sql("a" + x)', 'a = "-".join(x)\nc.execute(a)']
)
def test_composed_sql_text_is_found(source: str) -> None:
    assert _find_composed(ast.parse(source))


def test_no_sql_text_is_built() -> None:
    """The linter's rule S608 finds the rest: text that begins as SQL, wherever it is composed."""
    found = {_name(path): _find_composed(_parse(path)) for path in MODULES}
    assert not {name: lines for name, lines in found.items() if lines}, "composed SQL is executed"


LINUX_ONLY = {
    *("prctl", "malloc_trim", "RLIMIT_AS", "F_FULLFSYNC", "posix_fadvise", "memfd_create"),
    *(
        "sched_getaffinity",
        "sendfile",
        "splice",
        "copy_file_range",
        "pidfd_open",
        "fsync",
        "F_OFD_SETLK",
    ),
}
"""What some systems lack; ``fsync`` because macOS needs more to make data durable."""


def test_one_module_uses_what_only_some_systems_offer() -> None:
    using = {
        _name(path)
        for path in MODULES
        for node in ast.walk(_parse(path))
        if (isinstance(node, ast.Attribute) and node.attr in LINUX_ONLY)
        or (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (node.value in LINUX_ONLY or node.value.startswith("/proc"))
        )
    }
    assert using == {_name(ROOT / "lake" / "system.py"), _name(ROOT / "api" / "sql" / "sandbox.py")}


def test_no_two_names_differ_in_case_alone() -> None:
    paths = [str(at) for folder in (*PACKAGES, "tests") for at in (ROOT / folder).rglob("*")]
    assert len({path.casefold() for path in paths}) == len(paths) > 1000
    assert all(name.islower() for name in TABLES)  # the other names in a lake are days and hex


def test_only_the_lake_composes_sql_text() -> None:
    for path in MODULES:
        if path.relative_to(ROOT).parts[0] != "lake":
            used = {node.id for node in ast.walk(_parse(path)) if isinstance(node, ast.Name)}
            assert not used & AUDITED, _name(path)
            assert "S608" not in path.read_text(), _name(path)


def test_the_masterchain_has_one_definition() -> None:
    found = [
        _name(path)
        for path in MODULES
        for node in _parse(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and target.id.lstrip("_") == "MASTERCHAIN"
    ]
    assert found == ["lake/account.py"]


def test_accounts_are_named_workchain_first() -> None:
    """Only ``lake`` has ``AccountId``; elsewhere the two may be separate, in the same order."""
    for path in MODULES:
        in_lake = path.relative_to(ROOT).parts[0] == "lake"
        for node in _functions(_parse(path)):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = [one.arg for one in every if one.arg in {"workchain", "account"}]
            assert names != ["account", "workchain"], f"{_name(path)}: {node.name}"
            assert len(names) <= 1 or not in_lake, f"{_name(path)}: {node.name}"

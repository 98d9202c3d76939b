"""House rules: directions and cycles of imports, sizes of folders, modules and functions."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
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


@cache
def _walk(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a module."""
    return tuple(ast.walk(_parse(path)))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _imported_packages(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the imported names below ``tonlake``."""
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    parts = [name.split(".") for name in names]
    assert not {first for first, *_ in parts} & set(PACKAGES), "packages are below tonlake"
    return {rest[0] for first, *rest in parts if first == "tonlake"}


def test_imports_go_one_way() -> None:
    for path in MODULES:
        package = path.relative_to(ROOT).parts[0]
        assert _imported_packages(_walk(path)) <= MAY_IMPORT[package], _name(path)


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in _walk(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_modules_and_functions_stay_small() -> None:
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= MODULE_LINES, _name(path)
        for node in _functions(path):
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


def _find_composed(nodes: Iterable[ast.AST]) -> list[int]:
    """Return the lines where composed text is executed, directly or by the name of a variable."""
    nodes = list(nodes)
    names = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and _composes(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        node.lineno
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in EXECUTING and node.args
        if _composes(node.args[0])
        or (isinstance(node.args[0], ast.Name) and node.args[0].id in names)
    ]


def test_no_sql_text_is_built() -> None:
    """The linter's rule S608 finds the rest: text that begins as SQL, wherever it is composed."""
    found = {_name(path): _find_composed(_walk(path)) for path in MODULES}
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
        for node in _walk(path)
        if (isinstance(node, ast.Attribute) and node.attr in LINUX_ONLY)
        or (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (node.value in LINUX_ONLY or node.value.startswith("/proc"))
        )
    }
    assert using == {_name(ROOT / "lake" / "system.py")}


def test_no_two_names_differ_in_case_alone() -> None:
    paths = [str(at) for folder in (*PACKAGES, "tests") for at in (ROOT / folder).rglob("*")]
    assert len({path.casefold() for path in paths}) == len(paths) > 1000
    assert all(name.islower() for name in TABLES)  # the other names in a lake are days and hex


def test_only_the_lake_composes_sql_text() -> None:
    for path in MODULES:
        if path.relative_to(ROOT).parts[0] != "lake":
            used = {node.id for node in _walk(path) if isinstance(node, ast.Name)}
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
        for node in _functions(path):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = [one.arg for one in every if one.arg in {"workchain", "account"}]
            assert names != ["account", "workchain"], f"{_name(path)}: {node.name}"
            assert len(names) <= 1 or not in_lake, f"{_name(path)}: {node.name}"


def _dotted(path: Path) -> str:
    """Return the name under which the module in a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("tonlake", *(parts[:-1] if parts[-1] == "__init__" else parts)))


FILES = {_dotted(path): path for path in MODULES}


def _is_type_check(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imports(path: Path) -> set[str]:
    """Return the project modules that a file imports; types of the same folder are not counted."""
    blocks = filter(_is_type_check, _parse(path).body)
    typed = {node for block in blocks for node in ast.walk(block)}
    all_found = _names(_walk(path))
    at_runtime = _names(node for node in _walk(path) if node not in typed)
    folder = _dotted(path).rpartition(".")[0]
    return {name for name in all_found if name in at_runtime or name.rpartition(".")[0] != folder}


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in FILES else node.module for name in names}
    return found & FILES.keys()


def _rooms() -> dict[str, dict[str, set[str]]]:
    """Return for each folder the imports between its modules and whole sub-folders."""
    edges: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, path in FILES.items():
        for other in _imports(path):
            ours, theirs = name.split("."), other.split(".")
            depth = next(
                (at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None
            )
            if depth is not None:
                folder = ".".join(ours[:depth])
                room, imported = ".".join(ours[: depth + 1]), ".".join(theirs[: depth + 1])
                edges[folder][room].add(imported)
    return edges


def test_rooms_do_not_import_each_other_in_circles() -> None:
    for folder, rooms in _rooms().items():
        try:
            TopologicalSorter(rooms).prepare()
        except CycleError as error:
            pytest.fail(f"a circle in {folder}: {' -> '.join(error.args[1])}")


def test_no_folder_is_crowded() -> None:
    modules = [path for path in MODULES if path.stem != "__init__"]
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules)
    crowded = {name for name, count in counts.items() if count > (10 if name in PACKAGES else 20)}
    assert crowded <= {"ingest/derive/action/protocol"}, "it has a module for each protocol"


def test_the_packages_are_found_under_one_name() -> None:
    entries = (ROOT / "tonlake").iterdir()
    links = {path.name: path.readlink() for path in entries if path.is_symlink()}
    assert links == {name: Path("..", name) for name in PACKAGES}

"""Package layout: no import cycles between folders, no crowded folder, one top-level name."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("lake", "ingest", "queries", "api")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def _name(path: Path) -> str:
    """Return the dotted name of the module in a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("tonlake", *(parts[:-1] if parts[-1] == "__init__" else parts)))


MODULES = {_name(path): path for path in FILES}


def _is_type_check(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imports(path: Path) -> set[str]:
    """Return the project modules that a file imports, anywhere in it.

    Modules in one folder may import each other's types for annotations.
    """
    tree = ast.parse(path.read_text())
    typed = {id(node) for block in filter(_is_type_check, tree.body) for node in ast.walk(block)}
    all_found = _names(ast.walk(tree))
    at_runtime = _names(node for node in ast.walk(tree) if id(node) not in typed)
    folder = _name(path).rpartition(".")[0]
    return {name for name in all_found if name in at_runtime or name.rpartition(".")[0] != folder}


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in MODULES else node.module for name in names}
    return found & MODULES.keys()


def _rooms() -> dict[str, dict[str, set[str]]]:
    """Return, for each folder, the imports between its members.

    A member is a module or a sub-folder with everything below it.
    """
    edges: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, path in MODULES.items():
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
    modules = [path for path in FILES if path.stem != "__init__"]
    counts = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules)
    crowded = {name for name, count in counts.items() if count > (10 if name in PACKAGES else 20)}
    assert crowded <= {"ingest/derive/action/protocol"}, "it has a module for each protocol"


def test_every_folder_of_modules_has_a_docstring() -> None:
    for folder in {path.parent for path in FILES}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


def test_the_packages_are_found_under_one_name() -> None:
    entries = (ROOT / "tonlake").iterdir()
    links = {path.name: path.readlink() for path in entries if path.is_symlink()}
    assert links == {name: Path("..", name) for name in PACKAGES}

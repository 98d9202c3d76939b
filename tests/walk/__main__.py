"""``make walk``: follows the README from install to uninstall, in a place without this checkout.

    python -m tests.walk WHEEL [--folder FOLDER] [--older WHEEL]

Every documented command that needs neither a checkout nor a node is typed exactly as shown.
``--older`` is a wheel of an earlier version, whose lake is upgraded by the new one.
"""

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import click

from tests.commands import list_examples, list_lines
from tests.made.blocks import unpack_demo
from tests.walk.room import Failed, Room, Server, open_room, run

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = ("make ", "/var/ton-work", "global.config.json", "mainnet.lake")
"""What the commands of a page name that need a checkout, or a node of one's own."""

READY = "/api/v2/getMasterchainInfo  API v2"
SERVES = ("tonlake serve", "tonlake demo", "uvx tonlake demo")


def read_section(page: str, title: str = "") -> str:
    """Return a page, or the part of it below a title."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if not title:
        return text
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise Failed(f"{page} has no section {title!r}")
    return found[1]


def list_steps(page: str, title: str = "") -> list[str]:
    """Return the commands of a page that a newcomer with the wheel can type, in order."""
    lines = list_lines(read_section(page, title))
    return [line for line in lines if not any(word in line for word in ELSEWHERE)]


class Walk:
    """One newcomer: types commands, and keeps at most one service running."""

    def __init__(self, room: Room) -> None:
        """Take the room to type in."""
        self.room = room
        self._server: Server | None = None

    def type(self, line: str) -> str:
        """Type a line; a service stays in the background. Returns the output."""
        began_s = time.monotonic()
        bare = re.sub(r"^([A-Z_]+=\S* )*(uvx --from \S+ )?", "", line)
        if bare.startswith(SERVES) and "--once" not in bare:
            self.stop()
            self._server = Server(self.room, line, READY)
            printed = self._server.printed
        else:
            printed = run(self.room, line)
        click.echo(f"{time.monotonic() - began_s:6.1f} s  $ {line}")
        return printed

    def stop(self) -> None:
        """Stop the service, as Ctrl-C does."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def expect(self, line: str, text: str) -> None:
        """Type a line whose output must contain a text."""
        printed = self.type(line)
        if text not in printed:
            raise Failed(f"{line}: {text!r} is not in\n{printed}")


def install(walk: Walk) -> None:
    """Install with pipx and uv, then use the package, as docs/install.md shows."""
    walk.type("python3 -m venv tools && tools/bin/pip install --quiet pipx uv")
    for line in list_steps("docs/install.md", "From a wheel"):
        if not any(word in line for word in ("uninstall", "upgrade", "rm -rf")):
            walk.type(line)
    walk.stop()
    walk.expect("tonlake --version", "tonlake, version")


def read_readme(walk: Walk) -> None:
    """Run the commands of the README in order, then its Python example."""
    for line in list_steps("README.md"):
        walk.type(line)
    (example,) = list_examples(read_section("README.md"), "python")
    (walk.room.home / "example.py").write_text(example)
    walk.expect("env/bin/python example.py", "10 rows")


def open_explorer(walk: Walk) -> None:
    """Open each page that the explorer's first page links to."""
    walk.type("tonlake serve --lake .demo/lake")
    home = walk.type("curl -sf http://127.0.0.1:8080/")
    paths = sorted(set(re.findall(r'href="(/[^"#]*)"', home)))
    if not paths:
        raise Failed("the explorer's first page links to nothing")
    for path in paths:
        run(walk.room, f"curl -sf -o /dev/null 'http://127.0.0.1:8080{path}'")
    click.echo(f"          {len(paths)} pages of the explorer answer")
    walk.stop()


def open_notebooks(walk: Walk) -> None:
    """Run the commands of docs/tutorial.md for charts that need no browser."""
    shutil.copytree(ROOT / "notebooks", walk.room.home / "notebooks", dirs_exist_ok=True)
    for line in list_steps("docs/install.md", "Notebooks"):
        walk.type(line)
    for line in list_steps("docs/tutorial.md", "4. A chart (three minutes)"):
        if "notebooks/export" in line:
            walk.type(line)
    walk.expect("head -c 15 reports/network_activity.html", "<!doctype html>")


def upgrade(walk: Walk, older: Path | None) -> None:
    """Upgrade a lake of an earlier version, as docs/operations.md shows."""
    if older is None:
        click.echo("          no wheel of an earlier version: its lake is not upgraded")
        return
    shutil.copy(older, walk.room.home)
    node = unpack_demo(walk.room.home).relative_to(walk.room.home)
    walk.type(f"pipx install --quiet --force {older.name}")
    walk.type(f"tonlake ingest --node {node} --lake older.lake")
    before = walk.type("tonlake --version")
    for line in list_steps("docs/install.md", "From a wheel"):
        if line.startswith("pipx install --force"):
            walk.type(line)
    if walk.type("tonlake --version") == before:
        raise Failed(f"still {before}")
    walk.type("tonlake upgrade --lake older.lake")
    walk.type("tonlake verify --lake older.lake")
    asked = "tonlake sql --format csv 'select count(*), sum(total_fees) from transactions' --lake"
    walk.expect(f"{asked} older.lake", walk.type(f"{asked} .demo/lake"))


def uninstall(walk: Walk) -> None:
    """Uninstall; no command is left."""
    for line in list_steps("docs/install.md", "From a wheel"):
        if "uninstall" in line or line.startswith("rm "):
            walk.type(line)
    walk.expect("rm -r env && hash -r && command -v tonlake || echo gone", "gone")


@click.command(help=__doc__)
@click.argument("wheel", type=click.Path(exists=True, path_type=Path))
@click.option("--older", type=click.Path(exists=True, path_type=Path), help="An earlier wheel.")
@click.option("--folder", type=click.Path(path_type=Path), default=Path("build/walk"))
def main(*, wheel: Path, older: Path | None, folder: Path) -> None:
    """Walk."""
    shutil.rmtree(folder, ignore_errors=True)
    room = open_room(folder.resolve())
    click.echo(f"walked in: {room.kind}")
    (room.home / "dist").mkdir()
    shutil.copy(wheel, room.home / "dist")
    walk = Walk(room)
    steps: list[Callable[[Walk], None]] = [install, read_readme, open_explorer, open_notebooks]
    try:
        for step in steps:
            step(walk)
        upgrade(walk, older)
        uninstall(walk)
    finally:
        walk.stop()
    shutil.rmtree(folder)
    click.echo("walk: all steps passed")


if __name__ == "__main__":
    main()

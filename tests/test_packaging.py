"""The Dockerfile, the systemd unit and the one-file binary."""

import ast
import base64
import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tests.commands import list_commands, run_program
from tests.conftest import read_lines
from tests.ingest.derive.tvm.programs import make_data
from tonlake.api.command.frozen import find_module
from tonlake.api.command.main import main
from tonlake.ingest.decode.cell.boc import parse_boc

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = ROOT / "Dockerfile"
UNIT = ROOT / "docs" / "tonlake.service"
BINARY = ROOT / "dist" / "tonlake"
NEWEST = ROOT / "build" / "debian-testing"
LOCK = ROOT / "requirements.lock"
ARCHIVE = ROOT / "tests" / "data" / "node-demo" / "demo-node.tar.zst"
MAX_BYTES = 250 * 1000 * 1000
ELECTOR = "-1:" + "3" * 64
READ = {".sql", ".txt", ".json", ".tlb", ".html", ".css", ".js", ".svg", ".zst"}
FOREIGN = ("api", "lake", "ingest", "queries")
NOT_BUILT = (*(".*", "build", "dist", "tests", "notebooks", "*.egg-info", "*.so", "__pycache__"),)
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
"""The low byte of an ELF file's e_machine (byte 18), by the name in a wheel's tag."""

INSTRUCTIONS = {
    *("FROM", "RUN", "COPY", "USER", "VOLUME", "EXPOSE"),
    *("HEALTHCHECK", "ENTRYPOINT", "CMD", "WORKDIR", "ENV"),
}


def read_dockerfile() -> list[tuple[str, str]]:
    """Return instructions with their arguments; lines ending with a backslash are joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def _read_command(arguments: list[str]) -> None:
    """Check a command line against the command's declared options, without running it."""
    command = list_commands()[arguments[0]]
    paths = {"--lake": "/tmp", "--node": "/tmp"}  # noqa: S108 - they must be there, and are
    given = [paths.get(before, word) for before, word in pairwise(arguments)]
    command.make_context(arguments[0], given)


def test_the_dockerfile_is_well_formed() -> None:
    instructions = read_dockerfile()
    assert instructions[0][0] == "FROM"
    assert {word for word, _ in instructions} <= INSTRUCTIONS
    stages = [rest.split(" AS ")[1] for word, rest in instructions if " AS " in rest]
    for word, rest in instructions:
        if word in {"ENTRYPOINT", "CMD", "VOLUME"}:
            assert all(isinstance(part, str) for part in json.loads(rest))
        if word == "RUN":
            subprocess.run(["sh", "-n", "-c", rest], check=True)
        copied = rest.split()[:-1] if word == "COPY" else []
        for source in copied:
            if source.startswith("--from="):
                assert source.removeprefix("--from=") in stages
            elif "--from=" not in rest:
                assert (ROOT / source).exists()
    files = re.findall(r"/src/(\S+)", DOCKERFILE.read_text(encoding="utf-8"))
    assert files
    assert all((ROOT / name).exists() for name in files)
    _read_command(json.loads(dict(instructions)["CMD"]))
    assert dict(instructions)["USER"] == "tonlake"


def test_the_unit_is_well_formed(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text(encoding="utf-8"))
    assert unit.sections() == ["Unit", "Service", "Install"]
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "tonlake"
    _read_command(arguments)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine; the rest was looked at")
    # systemd-analyze also looks for the program, which is not installed here.
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text(encoding="utf-8").replace(program, sys.executable))
    result = run_program(
        "systemd-analyze",
        "verify",
        "--man=no",
        copy,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    about_it = [line for line in result.stderr.splitlines() if UNIT.name in line]
    assert (result.returncode, about_it) == (0, [])


def test_the_lock_covers_every_environment() -> None:
    """Everything an extra or group names is pinned with hashes, and no index is named."""
    lock = LOCK.read_text(encoding="utf-8")
    pinned = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert all(" --hash=sha256:" in one for one in pinned)
    names = {one.partition("==")[0].partition("[")[0] for one in pinned}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"].values()
    extras = project["project"]["optional-dependencies"].values()
    named = [project["project"]["dependencies"], *groups, *extras]
    asked = [one for some in named for one in some if isinstance(one, str)]
    assert {re.split(r"[\[<>=!~; ]", one)[0].lower() for one in asked} <= names
    assert not re.search(r"://|^-", lock, flags=re.MULTILINE)


def test_every_imported_package_is_declared() -> None:
    """What a module imports must not be there only because a tool of developers needs it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    declared = {
        re.split(r"[\[<>=!~; ]", one)[0].lower()
        for one in [*project["dependencies"], *(one for some in extras for one in some)]
    }
    owners = packages_distributions()
    missing = set()
    for package in FOREIGN:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                for name in _list_imported(node) - sys.stdlib_module_names - {"tonlake"}:
                    found = {owner.lower().replace("_", "-") for owner in owners.get(name, [name])}
                    if not found & declared:
                        missing.add((name, str(path.relative_to(ROOT))))
    assert missing == set()


def _list_imported(node: ast.AST) -> set[str]:
    """Return the names of the top-level packages that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    return {str(node.module).partition(".")[0]} if isinstance(node, ast.ImportFrom) else set()


def test_the_binary_starts_its_processes_as_python_would() -> None:
    asked = ["-P", "-m", "tonlake.ingest.run.tail", "--node", "x"]
    assert find_module(asked) == ("tonlake.ingest.run.tail", ["--node", "x"])
    assert find_module(["-m", "tonlake.api.sql.worker"]) == ("tonlake.api.sql.worker", [])
    for other in (["-m", "http.server"], ["-m"], ["serve", "--lake", "x"], []):
        assert find_module(other) is None
    for arguments, expected in (
        (["-P", "-m", "tonlake.api.command.frozen", "--version"], "tonlake, version"),
        (["--version"], "tonlake, version"),
    ):
        command = [sys.executable, "-m", "tonlake.api.command.frozen", *arguments]
        done = run_program(*command, check=True)
        assert expected in done.stdout
        assert done.stderr == ""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy."""
    copy = tmp_path_factory.mktemp("source") / "tonlake"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_BUILT))
    return _build("wheel", copy, tmp_path_factory.mktemp("wheel"))


def _build(kind: str, source: Path, target: Path) -> Path:
    """Build a wheel or sdist without a compiler, since its contents do not depend on one."""
    build = f"import sys; from setuptools import build_meta as b; b.build_{kind}(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, target],
        check=True,
        cwd=source,
        env=os.environ | {"CC": "false"},
        capture_output=True,
    )
    return next(target.iterdir())


def _list_modules(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_has_every_file_that_the_program_reads(wheel: Path) -> None:
    names = _list_modules(wheel)
    for folder in FOREIGN:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in READ and "native" not in path.parts:
                assert f"tonlake/{path.relative_to(ROOT)}" in names


def test_the_source_archive_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tonlake"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_BUILT))
    (tmp_path / "sdist").mkdir()
    sdist = _build("sdist", copy, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    source = next((tmp_path / "unpacked").iterdir())
    assert {"README.md", "LICENSE", "setup.py"} <= {path.name for path in source.iterdir()}
    assert any(source.rglob("*.c"))
    (tmp_path / "wheel").mkdir()
    assert _list_modules(_build("wheel", source, tmp_path / "wheel")) == _list_modules(wheel)


def test_headers_are_found_from_where_they_are_included() -> None:
    """No header is picked up by accident from a folder that the compiler searches."""
    for folder in FOREIGN:
        for path in (ROOT / folder).rglob("native/*.[ch]"):
            for name in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE):
                assert (path.parent / name).exists(), f"{path}: {name}"


def test_wheels_to_publish_run_on_other_distributions() -> None:
    wheels = [*(ROOT / "dist").glob("*.whl")]
    if not wheels:
        pytest.skip("there is no wheel in dist/: run make dist")
    for path in wheels:
        assert "-cp311-abi3-manylinux" in path.name
        oldest = min(int(minor) for minor in re.findall(r"manylinux_2_(\d+)", path.name))
        assert oldest <= 28
        names = _list_modules(path)
        compiled = {name for name in names if name.endswith(".so")}
        with zipfile.ZipFile(path) as archive:
            machines = {archive.read(name)[18] for name in compiled}
        assert machines == {number for name, number in ELF_MACHINES.items() if name in path.stem}
        wanted = re.findall(r'"tonlake\.([\w.]+\._\w+)":', (ROOT / "setup.py").read_text())
        assert {name.partition(".")[0] for name in compiled} == {
            f"tonlake/{name.replace('.', '/')}" for name in wanted
        }


def test_the_wheel_has_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        listed = next(name for name in names if name.endswith("/top_level.txt"))
        assert archive.read(listed).decode().split() == ["tonlake"]
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"tonlake"}
    assert "tonlake/py.typed" in names


def test_the_wheel_works_alone_and_beside_foreign_modules(wheel: Path, tmp_path: Path) -> None:
    """In an empty folder, with its dependencies, beside modules with the names of its own."""
    environment, folder = tmp_path / "venv", tmp_path / "work"
    venv.create(environment, symlinks=True)
    program = environment / "bin"
    site = next(environment.rglob("site-packages"))
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    install = ["-m", "pip", "--python", f"{program}/python", "install", "--quiet", "--no-compile"]
    subprocess.run([sys.executable, *install, "--no-deps", "--no-index", wheel], check=True)
    folder.mkdir()
    (site / "queries").mkdir(exist_ok=True)
    for path in (site / "queries" / "__init__.py", *(folder / f"{one}.py" for one in FOREIGN)):
        path.write_text(f"raise SystemExit('{path} is not of tonlake')\n")
    (example,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )

    def run(*command: str | Path) -> str:
        environ = {"HOME": str(folder), "PATH": "/nonexistent"}
        done = subprocess.run(command, check=False, cwd=folder, env=environ, capture_output=True)
        assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
        return done.stdout.decode()

    tonlake = program / "tonlake"
    assert run(tonlake, "--version").startswith("tonlake, version")
    assert "demo: all checks passed" in run(tonlake, "demo", "--once")
    newest = "select max(mc_seqno) as newest from blocks"
    assert "238" in run(tonlake, "sql", "--lake", ".demo/lake", newest)
    assert "10 rows" in run(program / "python", "-c", example)
    assert list((folder / ".cache" / "tonlake").glob("demo-*/_log"))


@pytest.mark.long
def test_get_methods_on_the_newest_python(wheel: Path, shared: Path) -> None:
    """A fresh environment without extras on CPython 3.14 answers all recorded programs."""
    if os.geteuid() or not (NEWEST / "usr" / "bin" / "python3.14").exists():
        pytest.skip(f"no CPython 3.14: it takes root and `make {NEWEST.relative_to(ROOT)}`")
    rows = read_lines(shared / "data" / "tvm" / "programs.jsonl.zst")
    account = {
        "data": base64.b64encode(make_data()).decode(),
        "address": f"0:{'11' * 32}",
        "time": 1_750_000_000,
        "balance": 123_456_789_012,
        "seed": "07" * 32,
    }
    calls = [json.dumps({**account, "code": row["code"], "v": row["v"]}) for row in rows]
    (NEWEST / "opt" / "calls.jsonl").write_text("\n".join(calls))
    boc = shared / "data" / "configs" / "mainnet_config_tonutils.boc"
    shutil.copyfile(boc, NEWEST / "opt" / "config.boc")

    def run(*command: str) -> str:
        inside = ["chroot", str(NEWEST), *command]
        return subprocess.run(inside, check=True, stdout=subprocess.PIPE, text=True).stdout

    run("python3.14", "-m", "venv", "--clear", "/opt/venv")
    wheels = NEWEST / "opt" / "wheels"
    download = ["-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version=3.14"]
    subprocess.run([sys.executable, *download, "--dest", wheels, wheel], check=True)
    pip = "/opt/venv/bin/pip"
    run(pip, "install", "--quiet", "--no-index", "--find-links=/opt/wheels", "tonlake")
    assert "tonpy" not in run("/opt/venv/bin/pip", "list")
    tonlake, config = "/opt/venv/bin/tonlake", "/opt/config.boc"
    answers = map(
        json.loads, run(tonlake, "run", "/opt/calls.jsonl", "--config", config).splitlines()
    )
    for row, answer in zip(rows, answers, strict=True):
        one, other = (parse_boc(base64.b64decode(each["stack"])) for each in (row, answer))
        assert (answer["exit"], answer["gas"]) == (row["exit"], row["gas"]), row["op"]
        assert one.hash(one.roots[0]) == other.hash(other.roots[0]), row["op"]


def test_shells_complete_commands() -> None:
    answer = CliRunner().invoke(
        main,
        prog_name="tonlake",
        env={"_TONLAKE_COMPLETE": "bash_complete", "COMP_WORDS": "tonlake sta", "COMP_CWORD": "1"},
    )
    assert answer.output == "plain,status\n"


@pytest.fixture(scope="module")
def binary() -> Path:
    if not BINARY.exists():
        pytest.skip("there is no dist/tonlake: run make binary")
    return BINARY


@pytest.fixture(scope="module")
def demo(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The binary runs and serves the demo in an empty folder without Python on the PATH."""
    folder = tmp_path_factory.mktemp("empty")
    environment = {"PATH": "/nonexistent", "HOME": str(folder), "TONLAKE_SQL_ENABLED": "1"}
    command = [str(binary), "demo", "--archive", str(ARCHIVE), "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = []
        try:
            for line in process.stdout:
                said.append(line)
                found = re.search(r"^(http://127\.0\.0\.1:[1-9]\d*)/", line)
                if found:
                    with httpx.Client(base_url=found[1], timeout=120) as client:
                        yield client
                    break
            else:
                pytest.fail("the binary ended: " + "".join(said))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
    assert any("all checks passed" in line for line in said)


@pytest.mark.long
def test_the_binary_is_one_file_of_bearable_size(binary: Path) -> None:
    assert binary.stat().st_size < MAX_BYTES


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/healthz", ""),
        ("/api/v3/masterchainInfo", "application/json"),
        ("/api/v3/transactions?limit=2", "application/json"),
        ("/api/v2/getMasterchainInfo", "application/json"),
        ("/", "text/html"),
        ("/lake", "text/html"),
        ("/docs", "text/html"),
        ("/openapi.json", "application/json"),
    ],
)
def test_the_binary_answers(demo: httpx.Client, path: str, kind: str) -> None:
    answer = demo.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)


@pytest.mark.long
def test_the_binary_runs_processes_of_its_own(demo: httpx.Client) -> None:
    headers = {"Accept": "text/csv", "Content-Type": "text/plain"}
    answer = demo.post("/sql", headers=headers, content="select count(*) as n from blocks")
    assert (answer.status_code, answer.text) == (200, "n\n588\n")
    method = {"address": ELECTOR, "method": "active_election_id", "stack": []}
    ran = demo.post("/api/v3/runGetMethod", json=method)
    assert (ran.status_code, ran.json()["exit_code"]) == (200, 0)

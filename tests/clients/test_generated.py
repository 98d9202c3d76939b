"""Clients generated from the served OpenAPI document: complete, compiled, and answered."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.clients.packages import NODE, RUN_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

SHOP = "0:906bf7f953a0d966f183d07acebe0a2ae08900c859e3b145069af5c5c3def02d"
BIN = Path(sys.executable).parent
COMPILED = """{"compilerOptions": {"strict": true, "target": "es2022", "module": "nodenext",
 "moduleResolution": "nodenext", "types": ["node"], "outDir": "out"}, "files": ["generated.ts"]}"""


@pytest.fixture(scope="module")
def document(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("document") / "openapi.json"
    file.write_bytes(httpx.get(f"{server}/openapi.json", timeout=RUN_S).content)
    return file


def run(*command: str | Path, cwd: Path, text: str = "") -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"},  # it calls ruff
        input=text,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def generated(document: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package that openapi-python-client makes, without a warning."""
    folder = tmp_path_factory.mktemp("python")
    package = folder / "tonlake_generated"
    command = (BIN / "openapi-python-client", "generate", "--path", document)
    printed = run(*command, "--meta", "none", "--output-path", package, cwd=folder)
    assert "warning" not in printed.lower(), printed
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(package.name)
    finally:
        sys.path.remove(str(folder))


def test_python_has_every_operation(generated: ModuleType, document: Path) -> None:
    described = json.loads(document.read_bytes())["paths"].values()
    wanted = {operation["operationId"] for item in described for operation in item.values()}
    walked = pkgutil.walk_packages(generated.__path__, f"{generated.__name__}.")
    modules = {name.rpartition(".")[2] for _, name, _ in walked if importlib.import_module(name)}
    assert wanted <= modules


@pytest.fixture
def client(generated: ModuleType, server: str) -> Iterator[Any]:
    with generated.Client(base_url=server, raise_on_unexpected_status=True) as opened:
        yield opened


def test_python_is_answered(generated: ModuleType, client: Any) -> None:
    def ask(api: str, operation: str, **arguments: Any) -> Any:
        module = importlib.import_module(f"{generated.__name__}.api.{api}.{operation}")
        found = module.sync_detailed(client=client, **arguments)
        assert found.status_code == 200, found
        return found.parsed

    assert ask("v3", "v3_get_masterchain_info").last.seqno == 238
    blocks = ask("v3", "v3_get_blocks", limit=3, workchain=-1).blocks
    assert [block.seqno for block in blocks] == [238, 237, 236]
    actions = ask("v3", "v3_get_actions", action_type=["jetton_transfer"], limit=2).actions
    assert [action.type_ for action in actions] == ["jetton_transfer"] * 2
    assert len(ask("v3", "v3_get_traces", limit=2, include_actions=True).traces) == 2
    assert len(ask("v3", "v3_get_events", limit=2).events) == 2
    balance = ask("v2", "v2_get_get_address_balance", address=SHOP)
    assert int(balance.result) > 0
    models = importlib.import_module(f"{generated.__name__}.models")
    request = models.DecodeRequest(opcodes=["0x0f8a7ea5"])
    assert ask("v3", "v3_post_decode", body=request) is not None


@pytest.mark.usefixtures("tvm")
def test_python_runs_a_get_method(generated: ModuleType, client: Any) -> None:
    models = importlib.import_module(f"{generated.__name__}.models")
    name = f"{generated.__name__}.api.v3.v3_post_run_get_method"
    body = models.RunRequest(address=SHOP, method="seqno", stack=[])
    assert importlib.import_module(name).sync(client=client, body=body).exit_code == 0


@pytest.mark.usefixtures("run_node")
def test_typescript_compiles_and_is_answered(document: Path, server: str, tmp_path: Path) -> None:
    tools = NODE / "node_modules"
    (tmp_path / "node_modules").symlink_to(tools, target_is_directory=True)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(COMPILED)
    shutil.copy(NODE / "generated.ts", tmp_path)
    run(tools / ".bin" / "openapi-typescript", document, "-o", "schema.d.ts", cwd=tmp_path)
    run(tools / ".bin" / "tsc", "-p", ".", cwd=tmp_path)
    plan = json.dumps({"origin": server, "address": SHOP})
    found = json.loads(run("node", "out/generated.js", cwd=tmp_path, text=plan))
    assert found["last"] == 238
    assert found["blocks"] == [238, 237, 236]
    assert found["actions"] == ["jetton_transfer"] * 2
    assert len(found["accounts"]) == 2
    assert "hash" in found["refused"]
    assert int(found["balance"]) > 0

"""The package in clients/typescript: compiled strictly, and run against the demo lake."""

import json
import shutil
from pathlib import Path

import httpx
import pytest

import tonlake
from tests.clients.packages import NODE, RUN_S, provide_packages
from tests.clients.test_generated import SHOP, run
from tests.conftest import ROOT

PACKAGE = ROOT / "clients" / "typescript"
SCRIPT = """
import { connect, Refusal } from "./dist/index.js";
import { readFileSync } from "node:fs";

const plan = JSON.parse(readFileSync(0, "utf8"));
const lake = connect(plan.origin);
const scan = { table: "messages", where: [{ direction: ["in"] }], columns: ["mc_seqno", "value"] };
const found = { rows: [], heights: [] };
for await (const batch of lake.scan({ ...scan, limit: 500 })) {
  for (const row of batch.rows) found.rows.push([row.mc_seqno, row.value].map(String));
  found.cursor = batch.cursor;
}
for await (const batch of lake.scan({ ...scan, cursor: found.cursor, follow: true })) {
  for (const row of batch.rows) found.rows.push([row.mc_seqno, row.value].map(String));
  if (batch.height === plan.last) break;
}
const tables = { jetton_transfer: {}, blocks: { columns: ["seqno"] } };
found.several = [0, 0];
for await (const { rows } of lake.scan({ tables, signature: plan.signature })) {
  found.several[0] += rows.numRows - rows.getChild("jetton_transfer").nullCount;
  found.several[1] += rows.numRows - rows.getChild("blocks").nullCount;
}
const blocks = await lake.api.GET("/api/v3/blocks", { params: { query: { limit: 3 } } });
found.blocks = blocks.data.blocks.length;
// Settled together: a promise rejected while another is awaited ends Node.js.
const wrong = await Promise.allSettled([lake.scan({ table: "none" }).next(), lake.sql("select 1")]);
found.refused = wrong.map(({ reason }) => [reason instanceof Refusal, reason.status]);
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def compiled(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, and a client that uses the generated types alone."""
    provide_packages()
    folder = tmp_path_factory.mktemp("typescript")
    shutil.copytree(PACKAGE / "src", folder / "src", ignore=shutil.ignore_patterns("api.d.ts"))
    shutil.copy(NODE / "generated.ts", folder / "src")
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(PACKAGE / name, folder)
    (folder / "node_modules").symlink_to(NODE / "node_modules", target_is_directory=True)
    document = folder / "openapi.json"
    document.write_bytes(httpx.get(f"{server}/openapi.json", timeout=RUN_S).content)
    tools = folder / "node_modules" / ".bin"
    run(tools / "openapi-typescript", document, "-o", "src/api.d.ts", cwd=folder)
    run(tools / "tsc", "-p", ".", cwd=folder)
    return folder


def test_generated_types_compile_and_are_answered(compiled: Path, server: str) -> None:
    plan = json.dumps({"origin": server, "address": SHOP})
    found = json.loads(run("node", "dist/generated.js", cwd=compiled, text=plan))
    assert found["last"] == 238
    assert found["blocks"] == [238, 237, 236]
    assert found["actions"] == ["jetton_transfer"] * 2
    assert len(found["accounts"]) == 2
    assert "hash" in found["refused"]
    assert int(found["balance"]) > 0


def test_package(compiled: Path, server: str, demo_lake: Path) -> None:
    (compiled / "client.js").write_text(SCRIPT)
    lake = tonlake.open(demo_lake)
    plan = json.dumps(
        {"origin": server, "last": lake.ranges[-1][1], "signature": "jetton_transfer"}
    )
    found = json.loads(run("node", "client.js", cwd=compiled, text=plan))
    expected = lake.sql("select mc_seqno, value from messages where direction = 'in' order by all")
    written = [["null" if each is None else str(each) for each in row] for row in expected]
    assert sorted(found["rows"]) == sorted(written)
    layout = "select count(*) from jetton_transfer"
    counts = [
        lake.sql(layout, signature="jetton_transfer"),
        lake.sql("select count(*) from blocks"),
    ]
    assert found["several"] == [count.fetchall()[0][0] for count in counts]
    assert found["blocks"] == 3
    assert found["refused"] == [[True, 422], [True, 403]]


def test_versions_of_the_package() -> None:
    """The suite compiles and runs it with the package's own tools."""
    own, checked = (
        json.loads((folder / "package.json").read_bytes()) for folder in (PACKAGE, NODE)
    )
    wanted = own["dependencies"] | own["devDependencies"]
    assert {name: text.lstrip("^") for name, text in wanted.items()}.items() <= checked[
        "dependencies"
    ].items()

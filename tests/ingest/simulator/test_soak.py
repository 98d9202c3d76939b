"""A short version of the long run: a node, a service and clients, with all faults."""

import json
from pathlib import Path

import pytest

from tests.ingest.simulator import tip
from tests.ingest.simulator.soak import main

pytestmark = pytest.mark.long


@pytest.mark.parametrize("chain", [[], ["--genuine"]])
def test_the_lake_ends_up_as_if_nothing_had_happened(
    demo_node: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], chain: list[str]
) -> None:
    sizes = ["--blocks", "150", "--faulty-blocks", "150", "--faults", "20", "--readers", "4"]
    main([str(demo_node), str(tmp_path / "run"), *sizes, *chain])
    found = json.loads(capfd.readouterr().out)
    end, faulty = found["end"], found["faulty"]
    wrong = [*found["growing"]["wrong"], *faulty["wrong"], *end["tables_that_differ"]]
    assert not wrong
    assert (end["damage"], end["log"]["gaps"], faulty["faults"]) == (0, 0, 20)
    assert sum(faulty["answers_compared"].values()) > 0


def test_what_a_long_chain_takes_stays_small(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert tip.main([str(tmp_path / "run"), "--blocks", "200"]) == 0
    parts = json.loads(capfd.readouterr().out)["parts"]
    assert [part["mc_blocks"] for part in parts] == [*range(21, 202, 20)]


def test_kills_and_roll_backs_lose_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    faults = "--blocks=60 --shards=4 --kills=6 --rollbacks=3"
    tip.main([str(tmp_path / "run"), *faults.split()])
    found = json.loads(capfd.readouterr().out)
    assert sum(found["happened"].values()) == 6 + 3
    assert [line for line in found["beyond"] if "limit" not in line] == []

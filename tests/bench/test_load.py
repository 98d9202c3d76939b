"""A short load: every request is answered, and overload is refused as documented."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.bench.load import judge, main
from tests.bench.traffic import FAILED, Outcome, Traffic, describe


class Held:
    """Memory sampled once a second."""

    def __init__(self, mib_a_second: float) -> None:
        self.samples = [(float(at), at * mib_a_second) for at in range(10)]
        self.mib_a_second = mib_a_second

    def slope(self) -> float:
        return self.mib_a_second * 60


def outcomes(*answers: tuple[float, int]) -> list[Outcome]:
    return [Outcome(0.0, took_s, status, "/a?b=1") for took_s, status in answers]


@pytest.mark.parametrize(
    ("steady", "over", "mib_a_second", "beyond"),
    [
        ([(0.01, 200)], [(0.5, 200), (0.01, 503)], 0.001, []),
        ([(0.3, 200)], [(0.5, 200)], 0.001, ["steady: p99 is not under 250 ms"]),
        ([(0.01, 503), (0.01, 200)], [(0.5, 200)], 0.001, ["steady: status 503"]),
        ([(0.01, 200)], [(0.5, 500)], 0.001, ["overload: status 500"]),
        ([(0.01, 200)], [(0.5, FAILED)], 0.001, ["overload: status no answer"]),
        ([(0.01, 200)], [], 0.1, ["steady: memory grows by 1 MiB a minute or more"]),
    ],
)
def test_bounds(
    steady: list[tuple[float, int]],
    over: list[tuple[float, int]],
    mib_a_second: float,
    beyond: list[str],
) -> None:
    phases = {"steady": outcomes(*steady), "overload": outcomes(*over), "after": []}
    assert judge(phases, Held(mib_a_second))["beyond"] == beyond  # type: ignore[arg-type]


def test_times_are_of_answers_with_rows() -> None:
    found = describe(outcomes((0.1, 200), (0.2, 200), (9.0, 503), (30.0, FAILED)))
    assert found["statuses"] == {"200": 2, "503": 1, "no answer": 1}
    assert (found["longest_ms"], found["shed_p99_ms"]) == (200.0, 9000.0)
    unanswered = [Outcome(0.0, 1.0, FAILED, "/a", why) for why in ("reset", "reset", "late")]
    assert describe(unanswered)["no_answer"] == {"reset": 2, "late": 1}


def test_a_closed_kept_connection_is_reopened() -> None:
    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request as if the connection were kept alive, and close it."""
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/never" not in head:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            await reader.read(1)  # the next request has arrived
        writer.close()

    async def ask() -> list[tuple[int, str]]:
        server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        traffic = Traffic(port, iter(["/a", "/b", "/never"]))
        for _ in range(3):
            await traffic.run(1, 1)
        traffic.close()
        server.close()
        return [(one.status, one.path) for one in traffic.outcomes]

    assert asyncio.run(ask()) == [(200, "/a"), (200, "/b"), (FAILED, "/never")]


@pytest.mark.long
def test_a_load_that_is_light(
    demo_node: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--rate", "5", "--seconds", "10", "--overload", "60", "--overload-seconds", "3"]
    main([str(demo_node), str(tmp_path / "load"), *options])
    found = json.loads(capfd.readouterr().out)
    assert found["steady"]["statuses"] == {"200": 50}, found["failed"]
    assert set(found["overload"]["statuses"]) <= {"200", "503"}
    assert found["commits"] > 0

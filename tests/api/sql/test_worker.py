"""What a process of a statement loads: it starts for every statement."""

import subprocess
import sys


def test_a_worker_loads_what_a_statement_needs() -> None:
    code = "import sys, tonlake.api.sql.worker; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {"litestar", "pandas", "httpx", "tonlake.queries.reader", "tonlake.api.request.call"}
    assert "tonlake.lake.duck.answer" in done.stdout.split()
    assert not others & set(done.stdout.split())

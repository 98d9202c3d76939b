"""An unused library is not loaded, and is importable again afterwards."""

import subprocess
import sys

import pytest

_ASK = """
import sys
from importlib.util import find_spec
from tonlake.lake.process.memory import without_pandas
if find_spec("pandas") is None:
    sys.exit(3)
import pyarrow as pa
with without_pandas():
    assert pa.array([1]).to_pylist() == [1] and pa.scalar(2).as_py() == 2
    assert find_spec("json") and find_spec("pandas")
    assert "pandas" not in sys.modules
    try:
        import pandas
    except ModuleNotFoundError as error:
        assert error.name == "pandas"
    else:
        sys.exit("it was loaded")
import pandas
assert pandas.DataFrame({"a": [1]}).shape == (1, 1)
with without_pandas():
    import pandas.testing
"""


def test_arrow_does_not_load_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        pytest.skip("pandas is not installed")
    assert done.returncode == 0, done.stderr

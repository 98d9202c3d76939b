"""SHA-256 in C, in plain C and by the processor's instructions, against OpenSSL's."""

import ctypes
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonlake.ingest.decode.native as native_package

SOURCE = Path(native_package.__file__).with_name("sha256.c")


@pytest.fixture(scope="module", params=["plain", "best"])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ctypes.CDLL:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp(request.param) / "sha256.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O2", "-o", str(path), str(SOURCE)], check=True)
    loaded = ctypes.CDLL(str(path))
    loaded.sha256.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
    if request.param == "best":
        loaded.sha256_open()
    return loaded


@given(st.binary(max_size=300))
def test_hashes_are_those_of_openssl(library: ctypes.CDLL, data: bytes) -> None:
    found = ctypes.create_string_buffer(32)
    library.sha256(data, len(data), found)
    assert found.raw == sha256(data).digest()

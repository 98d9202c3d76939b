"""A Spark session as the lake needs it: UTC, this Python for its workers, advice where it fails."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tonlake.lake.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_ADVICE = "install it with: pip install 'tonlake[spark]', and Java 17 beside it"
_LOCAL = {
    # A machine need not be able to resolve its own name.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_CHOSEN = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


@contextmanager
def open_session(master: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Give a session, and stop it afterwards.

    Args:
        master: Where Spark runs, such as ``local[8]`` or ``spark://host:7077``.
        conf: Spark's own settings, which go before those chosen here.

    Raises:
        EngineError: Spark or Java is not installed, or Spark fails at what it is asked.
    """
    try:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - an extra
        from pyspark.errors import PySparkException  # noqa: PLC0415 - as above
    except ImportError as error:
        raise EngineError(f"Apache Spark is not installed ({error}); {_ADVICE}") from error
    session = None
    try:
        session = _start(master, conf)
        yield session
    except (PySparkException, Py4JJavaError) as error:
        raise EngineError(f"Spark: {error}" if session else f"{error}; {_ADVICE}") from error
    except FileNotFoundError as error:
        if session:
            raise
        raise EngineError(f"Spark does not start: {error}; {_ADVICE}") from error
    finally:
        if session:
            session.stop()


def _start(master: str, conf: Mapping[str, str]) -> SparkSession:
    # About versions of pandas, which the lake does not use.
    warnings.filterwarnings("ignore", "PySpark does not yet", FutureWarning)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("tonlake").master(master)
    chosen = _CHOSEN | (_LOCAL if master.startswith("local") else {}) | dict(conf)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session

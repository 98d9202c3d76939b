"""The estimate is the product of measurements and prices."""

from __future__ import annotations

import pytest

from tests.bench.storage import Measured, Prices, estimate


def test_estimate() -> None:
    measured = Measured(1e-4, 1e-3, 1000.0, 100.0, 200.0)
    prices = Prices(gb_month=0.02, thousand_writes=0.005, thousand_reads=0.001, core_hour=0.36)
    found = estimate(measured, prices, 1e9, cores=10, gbit_s=8.0)
    assert found.terabytes == pytest.approx(1)
    assert found.rows_days == pytest.approx(1e4 / 86400)
    assert found.everything_days == pytest.approx(1e5 / 86400)
    assert found.transfer_hours == pytest.approx(1000 / 3600)
    assert found.storage_month == pytest.approx(20)
    assert found.upload_once == pytest.approx(0.5)
    assert found.import_once == pytest.approx(0.2)
    assert found.rows_once == pytest.approx(10)
    assert found.everything_once == pytest.approx(100)

# SPDX-License-Identifier: Apache-2.0
import pytest

import warpheap
from warpheap import driver


def devices() -> int:
    try:
        return driver.call("cuDeviceGetCount")
    except warpheap.WarpheapError:
        return 0


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU")


def pytest_collection_modifyitems(items):
    if devices():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="there is no GPU"))

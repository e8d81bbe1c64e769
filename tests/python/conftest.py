"""Triton reads this when it is first imported, which may be by torch: its kernels run in its interpreter here."""

import os

os.environ["TRITON_INTERPRET"] = "1"


def pytest_configure(config):
    config.addinivalue_line("markers", "reported(*reports): public reports that the test is for")

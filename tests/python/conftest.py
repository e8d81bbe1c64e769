def pytest_configure(config):
    config.addinivalue_line("markers", "reported(*reports): public reports that the test is for")

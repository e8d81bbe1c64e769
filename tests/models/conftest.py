"""Prints one table of all models at the end."""

import pytest

ROWS = pytest.StashKey()


def pytest_configure(config):
    config.stash[ROWS] = []


@pytest.fixture
def report_row(request):
    return lambda *row: request.config.stash[ROWS].append(row)


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash[ROWS]
    if not rows:
        return
    write = terminalreporter.write_line
    terminalreporter.section("errors against float64, relative to the rms of the output; worst of five inputs")
    write(f"{'':20} {'rms error':^30} {'largest error':^30} {'compile and':>13}")
    write(f"{'model':20} " + 2 * f"{'eager':>10}{'coil':>10}{'ratio':>9}  " + f"{'5 runs':>12}")
    for name, by_rms, by_largest, seconds in rows:
        cells = "".join(f"{eager:10.2e}{coil:10.2e}{coil / eager if eager else 0:9.2f}  "
                        for _, eager, coil in (by_rms, by_largest))
        write(f"{name:20} {cells}{seconds:10.1f} s")

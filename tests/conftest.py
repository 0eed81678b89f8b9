"""How hard properties are tried: quickly by default, the same examples every time in CI, long with
`--hypothesis-profile=thorough`."""

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("quick"), derandomize=True, database=None)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=3000)
settings.load_profile("ci" if os.environ.get("VIADUCT_CI") else "quick")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What was captured may be anything, and reports that come from another process must be UTF-8."""
    report = yield
    report.sections = [(title, text.encode(errors="backslashreplace").decode()) for title, text in report.sections]
    return report

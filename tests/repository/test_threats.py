# SPDX-License-Identifier: Apache-2.0
"""The register of threats (`docs/threats.md`): each case is named by a test, and each marker names a case."""

from __future__ import annotations

import re

import pytest

from tests.threats import NOT_APPLICABLE, OPEN, REGISTER, cases, marked, with_tests

_TEXT = REGISTER.read_text()


@pytest.fixture(scope="module")
def marks() -> dict[str, list[str]]:
    """Return the tests of each case; reading all test files takes seconds."""
    return marked()


def test_each_applicable_case_is_named_by_a_test(marks: dict[str, list[str]]) -> None:
    without = {case.id for case in cases(_TEXT) if case.applies and not marks.get(case.id)}
    assert without == set()


def test_each_marker_names_an_applicable_case(marks: dict[str, list[str]]) -> None:
    assert set(marks) <= {case.id for case in cases(_TEXT) if case.applies}


def test_each_case_id_is_unique_and_every_row_is_read() -> None:
    ids = [case.id for case in cases(_TEXT)]
    assert len(ids) == len(set(ids))
    # A row that the pattern misses would be an untested case.
    assert ids == re.findall(r"^\|\s*(LG-[^ |]+)", _TEXT, re.MULTILINE)


def test_a_case_that_does_not_apply_has_a_reason() -> None:
    for case in cases(_TEXT):
        if not case.applies:
            assert len(case.tests.removeprefix(NOT_APPLICABLE)) > 20, case.id


def test_published_vulnerabilities_link_to_registered_cases() -> None:
    known = {case.id for case in cases(_TEXT)}
    named = set(re.findall(r"LG-[A-Z]{3}-\d\d", _TEXT.partition("## Published faults")[2]))
    assert named
    assert named <= known


def test_the_register_shows_the_tests_that_name_its_cases(marks: dict[str, list[str]]) -> None:
    assert with_tests(_TEXT, marks) == _TEXT, "run: python -m tests.threats"


@pytest.mark.parametrize("last", ["", f"{NOT_APPLICABLE}no such thing is served here", OPEN])
def test_the_tests_of_a_case_are_written_unless_it_does_not_apply(last: str) -> None:
    row = f"| LG-XXX-01 | An attack. | It is refused. | {last} |"
    written = cases(with_tests(row, {"LG-XXX-01": ["tests/a.py::test_x"]}))[0].tests
    assert written == (last if last.startswith(NOT_APPLICABLE) else "`a.py::test_x`")

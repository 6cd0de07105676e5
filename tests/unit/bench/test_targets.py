# SPDX-License-Identifier: Apache-2.0
"""The target of a comparison: on this machine only, with groups of processes that run."""

from __future__ import annotations

import os

import pytest

from tests.bench.catalogs import CatalogError
from tests.bench.targets import pids_by_group, read, require_loopback


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8181/catalog",
        "http://127.8.9.10:8181",
        "http://[::1]:8181/catalog",
        "http://localhost:8181/catalog",
        "https://LOCALHOST/catalog",
    ],
)
def test_loopback_target_is_accepted(url: str) -> None:
    require_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.7:8181/catalog",
        "http://catalog.example/catalog",
        "http://127.0.0.1.example/catalog",
        "http://localhost.example/catalog",
        "http://0.0.0.0:8181",
        "http://[::ffff:10.0.0.7]:8181",
        "http://2130706433:8181",
    ],
)
def test_target_on_another_machine_is_refused_with_the_reason(url: str) -> None:
    with pytest.raises(CatalogError, match="not on this machine"):
        require_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8181",
        "ftp://127.0.0.1/catalog",
        "http:///catalog",
        "http://127.0.0.1:99999/catalog",
        "http://127.0.0.1@catalog.example/",
        "http://catalog.example@127.0.0.1/",
        "http://catalog.example\\@127.0.0.1/",
        "http://[::1/catalog",
    ],
)
def test_text_that_parsers_could_read_differently_is_refused(url: str) -> None:
    with pytest.raises(CatalogError, match="no URL"):
        require_loopback(url)


def test_variables_are_read_and_empty_ones_are_missing() -> None:
    found = read({"TARGET": " http://127.0.0.1:8181/catalog/v1/ ", "TARGET_TOKEN": "", "TARGET_WAREHOUSE": "demo"}, [])

    assert found.catalog.config_url == "http://127.0.0.1:8181/catalog/v1/config?warehouse=demo"
    assert found.catalog.headers == {}
    assert found.groups == {}


def test_missing_target_names_the_variables() -> None:
    with pytest.raises(CatalogError, match="TARGET is missing: make bench-peer TARGET=http"):
        read({}, [])


def test_target_is_checked_before_anything_is_sent() -> None:
    with pytest.raises(CatalogError, match="not on this machine"):
        read({"TARGET": "http://192.0.2.1/catalog"}, [])


def test_groups_are_parsed_and_known_names_share_a_column() -> None:
    found = pids_by_group(" server = 11, 12 ; openfga=13;", ["OpenFGA"], lambda pid: True)

    assert found == {"server": [11, 12], "OpenFGA": [13]}


@pytest.mark.parametrize("text", ["server", "server=", "=11", "server=11,", "server=a", "server=-1", "server=²"])
def test_groups_in_another_form_are_refused(text: str) -> None:
    with pytest.raises(CatalogError, match="write TARGET_PIDS as"):
        pids_by_group(text, runs=lambda pid: True)


def test_group_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(CatalogError, match="OpenFGA is listed twice"):
        pids_by_group("openfga=1;OpenFGA=2", ["OpenFGA"], lambda pid: True)


def test_process_that_does_not_run_is_refused() -> None:
    with pytest.raises(CatalogError, match="no process 12, 13 of the group server"):
        pids_by_group("server=11,12,13", runs=lambda pid: pid == 11)


def test_own_process_runs() -> None:
    assert pids_by_group(f"test={os.getpid()}") == {"test": [os.getpid()]}

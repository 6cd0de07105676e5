# SPDX-License-Identifier: Apache-2.0
"""Accepted URLs of OPA."""

from __future__ import annotations

import pytest

from gateway.opa.decider import OpaDecider, _parts


@pytest.mark.parametrize(
    ("endpoint", "parts"),
    [
        ("http://127.0.0.1:8181", ("127.0.0.1", 8181, False)),
        ("http://opa:8181/", ("opa", 8181, False)),
        ("https://opa.example", ("opa.example", 443, True)),
        ("http://[::1]:8181", ("[::1]", 8181, False)),
    ],
)
def test_an_opa_url_is_a_scheme_a_host_and_a_port(endpoint: str, parts: tuple[str, int, bool]) -> None:
    assert _parts(endpoint) == parts


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "opa:8181",
        "ftp://opa:21",
        "http://",
        "http://opa:8181/v1/data/other",
        "http://opa:8181?x=1",
        "http://user:secret@opa:8181",
        "http://opa:8181#x",
    ],
)
def test_an_opa_url_with_more_parts_is_refused_without_repeating_it(endpoint: str) -> None:
    with pytest.raises(ValueError, match="http://host:port") as refused:
        OpaDecider(endpoint, None, timeout_s=1)
    assert "secret" not in str(refused.value)

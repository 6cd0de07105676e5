# SPDX-License-Identifier: Apache-2.0
"""Values of the delegation header; an unknown value must not grant more (LG-DEC-08)."""

from __future__ import annotations

import pytest

from gateway.api.header_values import client_manages_storage, prefers_signing
from gateway.iceberg.errors import BadRequestException


@pytest.mark.parametrize(
    ("header", "managed"),
    [
        (None, False),
        ("", False),
        (" , ", False),
        ("vended-credentials", False),
        ("remote-signing", False),
        ("vended-credentials,remote-signing", False),
        ("client-managed", True),
        (" Client-Managed ", True),
        ("client-managed,client-managed", True),
        ("client-managed, vended-credentials", False),
    ],
)
def test_only_client_managed_alone_requests_no_credentials(header: str | None, managed: bool) -> None:
    assert client_manages_storage(header) is managed


@pytest.mark.parametrize(
    ("header", "signing"),
    [
        (None, False),
        ("vended-credentials", False),
        ("remote-signing", True),
        (" Remote-Signing ,", True),
        ("vended-credentials,remote-signing", False),
        ("client-managed", False),
        ("client-managed, remote-signing", True),
    ],
)
def test_only_remote_signing_without_vended_credentials_prefers_signatures(header: str | None, signing: bool) -> None:
    assert prefers_signing(header) is signing


@pytest.mark.parametrize("header", ["true", "vended_credentials", "vended-credentials;q=1", "client-managed, x", "*"])
def test_an_unknown_value_is_400(header: str) -> None:
    with pytest.raises(BadRequestException, match="unknown value"):
        client_manages_storage(header)
    with pytest.raises(BadRequestException, match="unknown value"):
        prefers_signing(header)


def test_a_long_unknown_value_is_not_repeated_in_full() -> None:
    with pytest.raises(BadRequestException) as raised:
        client_manages_storage("x" * 10_000)
    assert len(raised.value.message) < 300

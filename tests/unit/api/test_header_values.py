# SPDX-License-Identifier: Apache-2.0
"""Values of the delegation header; an unknown value must not grant more (LG-DEC-08)."""

from __future__ import annotations

import pytest

from gateway.api.binding import client_manages_storage, prefers_signing


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
        ("vended-credential", True),
        ("*", True),
        ("client-managed, later", True),
        ("later, vended-credentials", False),
        ("later, remote-signing", False),
    ],
)
def test_a_header_without_a_known_way_of_access_requests_no_credentials(header: str | None, managed: bool) -> None:
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
        ("later, remote-signing", True),
        ("later", False),
    ],
)
def test_only_remote_signing_without_vended_credentials_prefers_signatures(header: str | None, signing: bool) -> None:
    assert prefers_signing(header) is signing

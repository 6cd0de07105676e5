# SPDX-License-Identifier: Apache-2.0
"""``lakegate trino check`` without a server: its messages contain no secret."""

from __future__ import annotations

import httpx2

from lakegate.local.trino_check import BridgeCheck, Question


def test_the_secrets_of_an_address_are_not_printed() -> None:
    def silent(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    address = "http://trino:hidden-1@opa.example:8282/v1/data/trino/allow?key=hidden-2"
    with httpx2.Client(base_url=address, transport=httpx2.MockTransport(silent)) as http:
        [finding] = BridgeCheck(http, None, Question(user="alice", catalog="ice")).run()
    assert finding.text == "OPA does not answer at http://opa.example:8282: ConnectError"
    assert "hidden" not in finding.remedy

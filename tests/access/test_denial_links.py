# SPDX-License-Identifier: Apache-2.0
"""The link in the message of a refusal leads to the server of the settings, never to one that the request names."""

from __future__ import annotations

import dataclasses
from unittest.mock import patch

import pytest

from gateway.access.nouns.cards import EXPLAINABLE, VISIBLE_BY
from gateway.access.operations.tables import DropTable
from gateway.features.grants import check_requests
from tests.support.door.app import Running, running
from tests.support.door.examples import EXAMPLES

FOREIGN = "evil.example"
DROP = next(each for each in EXAMPLES if isinstance(each.operation, DropTable))


async def _refusal(app: Running, base_uri: str | None, **headers: str) -> str:
    """Return the message of a refused request to a gateway with this address in its settings."""
    app.app.state.services = dataclasses.replace(app.app.state.services, base_uri=base_uri)
    judge = app.door_fixture.judge
    with patch.object(judge, "answer", lambda question: question.relation is VISIBLE_BY.get(question.object.type)):
        answer = await app.send(DROP, **headers)
    assert answer.status_code == 403, answer.text
    assert FOREIGN not in answer.text
    message: str = answer.json()["error"]["message"]
    return message.partition(" Reason, and request for access: ")[2].partition("?denial=")[0]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": FOREIGN},
        {"x-forwarded-host": FOREIGN, "x-forwarded-proto": "https"},
        {"forwarded": f"host={FOREIGN};proto=https"},
        {"x-forwarded-prefix": f"//{FOREIGN}"},
    ],
    ids=lambda headers: "+".join(headers) or "none",
)
async def test_headers_of_the_request_do_not_choose_the_server(headers: dict[str, str]) -> None:
    async with running() as app:
        assert await _refusal(app, None, **headers) == "/ui"
        assert await _refusal(app, "https://lake.example", **headers) == "https://lake.example/ui"


def test_a_denial_leads_to_an_explanation_on_each_type_of_object_that_checks_can_be_about() -> None:
    assert {each.replace("-", "_") for each in check_requests._REFS} - {"tabular"} == EXPLAINABLE


async def test_a_slash_at_the_end_of_the_address_is_not_doubled() -> None:
    async with running() as app:
        assert await _refusal(app, "https://lake.example/") == "https://lake.example/ui"

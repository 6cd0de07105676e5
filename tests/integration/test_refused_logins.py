# SPDX-License-Identifier: Apache-2.0
"""A running gateway records refused logins in the audit log, without anything of the token."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

import httpx
import pytest

from tests.support.load.kills import Killable, soon
from tests.support.stack.world import World

pytestmark = pytest.mark.servers

_COUNTED = (
    "select convert_from(record, 'utf8'), actor_id, outcome, request_id from audit_log "
    "where operation = 'authenticate' and at >= $1"
)


def _counts(world: World, since: datetime) -> Counter[str]:
    """Return the number of requests by reason that were recorded since then."""
    total: Counter[str] = Counter()
    for record, *_ in world.sql(_COUNTED, since):
        detail = json.loads(record)["detail"]
        total[detail["reason"]] += int(detail["requests"])
    return total


def _requests(world: World) -> list[httpx.Response]:
    """Send requests that authentication refuses, one for each reason that this test provokes, and one more."""
    good = world.people["alice"].token
    head, payload, signature = good.split(".")
    forged = f"{head}.{payload}.{signature[:-8]}AAAAAAAA"
    foreign = world.person_with("claimed-subject", iss="https://elsewhere.example").token
    expired = world.person_with("claimed-subject", exp=1_700_000_000).token
    audience = world.person_with("claimed-subject", aud="another-service").token
    with httpx.Client(base_url=world.base, trust_env=False, timeout=60) as client:
        sent = [client.get("/catalog/v1/config?warehouse=w")]
        for token in ("not-a-jwt", forged, forged, foreign, expired, audience):
            sent.append(client.get("/catalog/v1/config?warehouse=w", headers={"Authorization": f"Bearer {token}"}))
    return sent


def test_refused_logins_are_recorded_once_a_window(stopped_gateway: Killable) -> None:
    with stopped_gateway.serving(AUDIT__REFUSED_LOGINS="0.5") as world:
        [(began,)] = world.sql("select now()")
        answers = _requests(world)
        assert [each.status_code for each in answers] == [401] * 7
        expected = {"missing": 1, "malformed": 1, "signature": 2, "issuer": 1, "expired": 1, "audience": 1}
        soon(lambda: _counts(world, began) == expected, f"recorded: {_counts(world, began)}")
        rows = world.sql(_COUNTED, began)
        assert {(actor, outcome) for _, actor, outcome, _ in rows} == {("", "unauthenticated")}
        assert {request_id for *_, request_id in rows} <= {each.headers["x-request-id"] for each in answers}
        assert {json.loads(record)["client_address"] for record, *_ in rows} == {"127.0.0.1"}
        assert not any(part in record for record, *_ in rows for part in world.people["alice"].token.split("."))
        assert "claimed-subject" not in str(rows)

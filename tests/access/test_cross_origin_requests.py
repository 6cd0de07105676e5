# SPDX-License-Identifier: Apache-2.0
"""Pages of another origin and the real application: preflight requests, refusals, and the default."""

from __future__ import annotations

import pytest

from tests.support.door.app import running

ORIGIN = "https://console.example.com"
PATHS = (
    "/catalog/v1/config",
    "/catalog/v1/0192c4b2-0000-7000-8000-000000000001/namespaces/a/tables/t",
    "/management/v1/warehouse",
    "/management/v1/role/x/members",
)
PREFLIGHT = {
    "Origin": ORIGIN,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-project-id",
}


@pytest.mark.parametrize("path", PATHS)
async def test_preflight_with_the_authorization_header_works_without_a_token(path: str) -> None:
    async with running(allowed_origins=(ORIGIN,)) as app:
        answer = await app.client.options(path, headers=PREFLIGHT)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, ORIGIN)
        assert "authorization" in answer.headers["access-control-allow-headers"]
        assert app.spy.calls == []


@pytest.mark.parametrize("path", PATHS)
async def test_a_refusal_can_be_read_by_an_allowed_page_and_by_no_other(path: str) -> None:
    async with running(allowed_origins=(ORIGIN,)) as app:
        refused = await app.client.get(path, headers={"Origin": ORIGIN})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == ORIGIN
        foreign = await app.client.get(path, headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in foreign.headers


async def test_without_the_setting_no_page_gets_permission() -> None:
    async with running() as app:
        for path in PATHS:
            for answer in (
                await app.client.options(path, headers=PREFLIGHT),
                await app.client.get(path, headers={"Origin": ORIGIN}),
            ):
                assert not any(name.startswith("access-control-") for name in answer.headers)

# SPDX-License-Identifier: Apache-2.0
"""Create the first project and warehouse over the public HTTP API. A repeated run changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from lakegate.local.errors import StackError
from lakegate.local.object_store import BUCKET
from lakegate.local.ports import without_tls
from lakegate.local.ready import PROGRAMS, TRINO, TRINO_BRIDGE, write_private
from lakegate.local.stack import DEFAULT_PROJECT, Stack

WAREHOUSE = "demo"
ADMINISTRATOR = "admin"

_GRANTS = (
    ("select", "alice"),
    ("modify", "bob"),
    ("create", "bob"),
    ("describe", TRINO),
    ("delegate", TRINO),
    ("enforcer", TRINO),
    ("inspector", TRINO_BRIDGE),
    ("enforcer", TRINO_BRIDGE),
)
_CALL_SECONDS = 60.0


class Management:
    """A client of the management API for one user. Errors contain the response of the server, which has no secret."""

    def __init__(self, base: str, token: str) -> None:
        self._client = httpx2.AsyncClient(
            base_url=f"{base}/management/v1/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_CALL_SECONDS,
            trust_env=False,
            verify=without_tls(),
        )

    async def __aenter__(self) -> Management:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def get(self, path: str) -> Any:
        """Return the decoded response of a GET.

        Raises:
            StackError: the gateway did not respond, or not with success.
        """
        return (await self._call("GET", path, None)).json()

    async def post(self, path: str, body: dict[str, Any], *, already: int | None = None) -> Any:
        """Return the decoded response of a POST, or None if it has no body or its status is ``already``.

        Raises:
            StackError: the gateway did not respond, or with another status.
        """
        answer = await self._call("POST", path, body, already)
        return answer.json() if answer.content and answer.is_success else None

    async def _call(
        self, method: str, path: str, body: dict[str, Any] | None, already: int | None = None
    ) -> httpx2.Response:
        try:
            answer = await self._client.request(method, path, json=body)
        except httpx2.TransportError as error:
            raise StackError(f"the gateway did not answer {method} /management/v1/{path}: {error!r}") from error
        if not answer.is_success and answer.status_code != already:
            raise StackError(
                f"the gateway answered {method} /management/v1/{path} with status {answer.status_code}: "
                f"{answer.text[:500]}"
            )
        return answer


async def run(stack: Stack) -> tuple[str, str]:
    """Bootstrap the server as ``admin``, register all users, create a warehouse, and make the first grants.

    Return the warehouse's name and id. In it ``alice`` may read everything, ``bob`` may also write, ``carol`` has no
    right. Trino may act for users there, and the OPA beside it may query their rights. A marker file with the id makes
    further calls return immediately.

    Raises:
        StackError: the gateway refused a step.
    """
    done = stack.plan.data / "bootstrapped"
    if done.exists() and (known := done.read_text()):  # earlier versions wrote an empty file
        return WAREHOUSE, known
    token = await stack.identity_provider.token(ADMINISTRATOR)
    async with Management(stack.gateway.url, token) as admin:
        if not (await admin.get("info"))["bootstrapped"]:
            await admin.post("bootstrap", {"accept-terms-of-use": True, "user-name": ADMINISTRATOR})
        await asyncio.gather(*(_register(stack, name) for name in stack.secrets.clients))
        warehouse = await _warehouse(admin, stack)
        for privilege, user in _GRANTS:
            body = {"writes": [{"type": privilege, "user": f"oidc~{user}"}]}
            path = f"permissions/warehouse/{warehouse}/assignments"
            await admin.post(path, body, already=httpx2.codes.CONFLICT)
    write_private(done, warehouse.encode())
    return WAREHOUSE, warehouse


async def _register(stack: Stack, name: str) -> None:
    kind = "application" if name in PROGRAMS else "human"
    async with Management(stack.gateway.url, await stack.identity_provider.token(name)) as user:
        await user.post("user", {"name": name, "user-type": kind, "update-if-exists": True})


def _delete_profile(keep_dropped_days: int) -> dict[str, Any]:
    if keep_dropped_days == 0:
        return {"type": "hard"}
    return {"type": "soft", "expiration-seconds": keep_dropped_days * 86_400}


async def _warehouse(admin: Management, stack: Stack) -> str:
    """Return the id of the demonstration's warehouse. Create the warehouse if it is missing."""
    known = await admin.get("warehouse")
    for warehouse in known["warehouses"]:
        if warehouse["name"] == WAREHOUSE:
            return str(warehouse["warehouse-id"])
    made = await admin.post(
        "warehouse",
        {
            "warehouse-name": WAREHOUSE,
            "project-id": DEFAULT_PROJECT,
            "storage-profile": {**stack.object_store.profile(), "bucket": BUCKET, "key-prefix": WAREHOUSE},
            "storage-credential": {
                "type": "s3",
                "credential-type": "access-key",
                "access-key-id": stack.secrets.s3_access_key,
                "secret-access-key": stack.secrets.s3_secret_key,
            },
            "delete-profile": _delete_profile(stack.plan.keep_dropped_days),
        },
    )
    return str(made["warehouse-id"])

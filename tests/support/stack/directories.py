# SPDX-License-Identifier: Apache-2.0
"""A test directory that provisions users and groups by SCIM, with a token made by the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from tests.support.lakegate_command import run_lakegate
from tests.support.stack.providers import AUDIENCE, StubProvider
from tests.support.stack.world import Person, World, send_until_decided, unique

USERS, GROUPS = "/scim/v2/Users", "/scim/v2/Groups"
CORE_USER = "urn:ietf:params:scim:schemas:core:2.0:User"
CORE_GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


def settings_of(provider: StubProvider) -> dict[str, str]:
    """Return settings of a gateway with three identity providers.

    `entra` names its users by `externalId` and `okta` by `userName`. `plain` has no provisioning.
    """
    provider_settings = {
        "ENTRA": {"AUDIENCE": AUDIENCE, "ROLES_CLAIM": "groups", "SCIM_SUBJECT": "externalId"},
        "OKTA": {"AUDIENCE": "okta", "SCIM_SUBJECT": "userName"},
        "PLAIN": {"AUDIENCE": "plain"},
    }
    return {
        f"OPENID_PROVIDERS__{id}__{name}": value
        for id, settings in provider_settings.items()
        for name, value in {"URI": provider.issuer, **settings}.items()
    }


@contextmanager
def provisioning(
    world: World, base: str, gateway: psutil.Process, provider: StubProvider, **audiences: str
) -> Iterator[dict[str, Directory]]:
    """Allow these providers' directories, by id, to provision the world's project during the block."""
    found = {}
    for id, audience in audiences.items():
        scim = Person(f"scim-{id}", f"lakegate~scim-{id}", issued(gateway, id, world.project), base)
        world.grant("provisioner", scim, "server", "")
        found[id] = Directory(id, world, base, gateway, provider, audience, scim)
    yield found
    for each in found.values():
        world.revoke("provisioner", each.scim, "server", "")
        each.scim.http.close()


@dataclass
class Directory:
    """Directory of one provider.

    `scim` uses the directory's provisioning token; its users use tokens of the provider.
    """

    id: str
    world: World
    base: str
    gateway: psutil.Process
    provider: StubProvider
    audience: str
    scim: Person

    def sign_in(self, subject: str, **claims: Any) -> Person:
        """Return a user of the provider with a token."""
        token = self.provider.token(subject, aud=self.audience, **claims)
        return Person(subject, f"{self.id}~{subject}", token, self.base)

    def user(self, subject: str | None = None, **more: Any) -> dict[str, Any]:
        """Create a user; return the response."""
        subject = subject or unique("ann")
        body = {"schemas": [CORE_USER], "userName": f"{subject}@example.com", "externalId": subject, "active": True}
        made = send_until_decided(lambda: self.scim.post(USERS, body | more))
        assert made.status_code == 201, made.text
        return dict(made.json())

    def group(self, *members: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Create a group with these members; return the response."""
        name = unique("Group")
        body: dict[str, Any] = {"schemas": [CORE_GROUP], "displayName": name, "externalId": f"{name}-id"}
        body |= {"members": [{"value": each["id"]} for each in members]}
        made = send_until_decided(lambda: self.scim.post(GROUPS, body | more))
        assert made.status_code == 201, made.text
        return dict(made.json())

    def patch(self, resource: dict[str, Any], *operations: dict[str, Any], expect: int | None = None) -> httpx.Response:
        """Send a PATCH; with `expect`, require that status."""
        group = resource["meta"]["resourceType"] == "Group"
        path = f"{GROUPS if group else USERS}/{resource['id']}"
        patch = {"schemas": [PATCH_OP], "Operations": list(operations)}
        answer = send_until_decided(lambda: self.scim.send("PATCH", path, json=patch), unless=expect or 0)
        assert answer.status_code == (expect or (204 if group else 200)), answer.text
        return answer

    def give(self, privilege: str, group: dict[str, Any], kind: str, id: str, *, expect: int = 204) -> None:
        """Grant a privilege to the role of a group."""
        entry = {"writes": [{"type": privilege, "role": group["id"]}]}
        answer = send_until_decided(
            lambda: self.world.admin.post(self.world.grants_path(kind, id), entry), unless=expect
        )
        assert answer.status_code == expect, answer.text


def lakegate(process: psutil.Process, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `lakegate` with the settings of this gateway."""
    return run_lakegate(*arguments, environment=process.environ())


def issued(process: psutil.Process, provider: str, project: str) -> str:
    """Issue a new provisioning token."""
    done = lakegate(process, "secrets", "scim-token", "issue", "--provider", provider, "--project", project)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def scim_error(answer: httpx.Response) -> tuple[int, str]:
    """Return (status, scimType) of a SCIM error after a check of its form."""
    body = answer.json()
    assert answer.headers["content-type"].startswith("application/scim+json"), answer.text
    assert body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"], answer.text
    assert body["status"] == str(answer.status_code) and body["detail"], answer.text
    return answer.status_code, body.get("scimType", "")

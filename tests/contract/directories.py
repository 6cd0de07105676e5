# SPDX-License-Identifier: Apache-2.0
"""A company's directory as tests play it: it comes by SCIM, with a token that the command line made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from tests.contract.providers import AUDIENCE, StubProvider
from tests.contract.world import Person, World, asked_again, unique
from tests.lakegate_command import run_lakegate

USERS, GROUPS = "/scim/v2/Users", "/scim/v2/Groups"
CORE_USER = "urn:ietf:params:scim:schemas:core:2.0:User"
CORE_GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


def settings_of(provider: StubProvider) -> dict[str, str]:
    """Settings of a gateway with three providers: `entra` names its users by `externalId`, `okta` by `userName`, and
    `plain` keeps nobody here.
    """
    told = {
        "ENTRA": {"AUDIENCE": AUDIENCE, "ROLES_CLAIM": "groups", "SCIM_SUBJECT": "externalId"},
        "OKTA": {"AUDIENCE": "okta", "SCIM_SUBJECT": "userName"},
        "PLAIN": {"AUDIENCE": "plain"},
    }
    return {
        f"OPENID_PROVIDERS__{id}__{name}": value
        for id, settings in told.items()
        for name, value in {"URI": provider.issuer, **settings}.items()
    }


@contextmanager
def provisioning(
    world: World, base: str, gateway: psutil.Process, provider: StubProvider, **audiences: str
) -> Iterator[dict[str, Directory]]:
    """While these providers' directories, by id, may keep users and groups in the world's project."""
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
    """One provider's directory. `scim` comes with its token; its people come with tokens of the provider."""

    id: str
    world: World
    base: str
    gateway: psutil.Process
    provider: StubProvider
    audience: str
    scim: Person

    def comes(self, subject: str, **claims: Any) -> Person:
        """Somebody of the provider with a token."""
        token = self.provider.token(subject, aud=self.audience, **claims)
        return Person(subject, f"{self.id}~{subject}", token, self.base)

    def user(self, subject: str | None = None, **more: Any) -> dict[str, Any]:
        """A new user; the answer."""
        subject = subject or unique("ann")
        body = {"schemas": [CORE_USER], "userName": f"{subject}@example.com", "externalId": subject, "active": True}
        made = asked_again(lambda: self.scim.post(USERS, body | more))
        assert made.status_code == 201, made.text
        return dict(made.json())

    def group(self, *members: dict[str, Any], **more: Any) -> dict[str, Any]:
        """A new group with these users in it; the answer."""
        name = unique("Group")
        body: dict[str, Any] = {"schemas": [CORE_GROUP], "displayName": name, "externalId": f"{name}-id"}
        body |= {"members": [{"value": each["id"]} for each in members]}
        made = asked_again(lambda: self.scim.post(GROUPS, body | more))
        assert made.status_code == 201, made.text
        return dict(made.json())

    def patch(self, resource: dict[str, Any], *operations: dict[str, Any], expect: int | None = None) -> httpx.Response:
        """A patch; with `expect` it must have that status."""
        group = resource["meta"]["resourceType"] == "Group"
        path = f"{GROUPS if group else USERS}/{resource['id']}"
        patch = {"schemas": [PATCH_OP], "Operations": list(operations)}
        answer = asked_again(lambda: self.scim.ask("PATCH", path, json=patch), unless=expect or 0)
        assert answer.status_code == (expect or (204 if group else 200)), answer.text
        return answer

    def give(self, privilege: str, group: dict[str, Any], kind: str, id: str, *, expect: int = 204) -> None:
        """A grant to the role that a group is."""
        entry = {"writes": [{"type": privilege, "role": group["id"]}]}
        answer = asked_again(lambda: self.world.admin.post(self.world.grants_path(kind, id), entry), unless=expect)
        assert answer.status_code == expect, answer.text


def lakegate(process: psutil.Process, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A verb of the command line, by the settings of this gateway."""
    return run_lakegate(*arguments, environment=process.environ())


def issued(process: psutil.Process, provider: str, project: str) -> str:
    """A new token for provisioning."""
    done = lakegate(process, "secrets", "scim-token", "issue", "--provider", provider, "--project", project)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def scim_error(answer: httpx.Response) -> tuple[int, str]:
    """(status, scimType) of a refusal of SCIM, whose form is looked at."""
    body = answer.json()
    assert answer.headers["content-type"].startswith("application/scim+json"), answer.text
    assert body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"], answer.text
    assert body["status"] == str(answer.status_code) and body["detail"], answer.text
    return answer.status_code, body.get("scimType", "")

# SPDX-License-Identifier: Apache-2.0
"""Files for `lakegate apply`, and the plans and changes of one test."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.lakegate_command import run_lakegate
from tests.support.stack.warehouses import profile
from tests.support.stack.world import Person, World, unique

CHANGES = 2


@dataclass(frozen=True)
class Desk:
    """A directory with the file of a project of its own, and the commands on it."""

    world: World
    file: Path
    content: dict[str, Any]

    @property
    def project(self) -> dict[str, Any]:
        """Return the project in the file."""
        found: dict[str, Any] = self.content["projects"][0]
        return found

    @property
    def warehouse(self) -> dict[str, Any]:
        """Return the warehouse in the file."""
        found: dict[str, Any] = self.project["warehouses"][0]
        return found

    @property
    def namespace(self) -> dict[str, Any]:
        """Return the first namespace in the file."""
        found: dict[str, Any] = self.warehouse["namespaces"][0]
        return found

    def run(self, command: str, *options: str, by: Person | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command as a user."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "LAKEGATE_TOKEN": (by or self.world.admin).token,
            "LAKEGATE_APPLY_WAREHOUSE_KEY": self.world.ready.s3.secret_key,
        }
        return run_lakegate(command, *options, "--gateway", self.world.base, environment=environment)

    def apply(self, *options: str, by: Person | None = None) -> subprocess.CompletedProcess[str]:
        """Write the file and apply it."""
        self.file.write_text(yaml.safe_dump(self.content, sort_keys=False))
        return self.run("apply", "-f", str(self.file), *options, by=by)

    def applied(self, *options: str) -> str:
        """Apply the file; return the output of the command, which succeeds."""
        done = self.apply("--yes", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def agrees(self, *options: str) -> bool:
        """Return whether a plan has no changes."""
        done = self.apply("--plan", *options)
        assert done.returncode in (0, CHANGES), done.stdout + done.stderr
        return done.returncode == 0


def full_content(world: World, reader: Person, writer: Person) -> dict[str, Any]:
    """Return a file that uses everything which can be created."""
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": world.ready.s3.access_key,
        "secret-access-key": {"env": "LAKEGATE_APPLY_WAREHOUSE_KEY"},
    }
    namespaces = [
        {
            "name": "sales",
            "properties": {"owner": "crm", "zone": "eu"},
            "managed-access": True,
            "grants": [{"privilege": "select", "role": "analysts", "reason": "reports"}],
        },
        {"name": ["sales", "raw"], "protected": True},
    ]
    warehouse = {
        "name": "main",
        "storage": profile(world),
        "credential": credential,
        "delete-profile": {"type": "soft", "expiration-seconds": 3600},
        "allowed-format-versions": [2],
        "protected": True,
        "policy-loss": "announce",
        "task-queues": {"soft_deletion": {"max-seconds-since-last-heartbeat": 300}},
        "grants": [{"privilege": "create", "user": writer.id, "expires-at": "2090-01-01T00:00:00+01:00"}],
        "namespaces": namespaces,
    }
    project = {
        "id": unique("shop").replace("_", "-"),
        "name": unique("Shop"),
        "grants": [{"privilege": "describe", "role": "leads"}],
        "roles": [
            {"name": "analysts", "description": "read", "members": [{"user": reader.id}, {"role": "leads"}]},
            {"name": "leads", "members": []},
        ],
        "warehouses": [warehouse],
    }
    client = {"id": f"oidc~{unique('robot')}", "name": "Robot", "type": "application"}
    return {"version": 1, "users": [client], "projects": [project]}


def warehouse_id(desk: Desk) -> str:
    listed = desk.world.admin.get("/management/v1/warehouse", headers={"x-project-id": desk.project["id"]})
    [found] = listed.json()["warehouses"]
    return str(found["warehouse-id"])

# SPDX-License-Identifier: Apache-2.0
"""A stack whose gateway has a verifier that the test controls, for tests of the approval of changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from pyiceberg.catalog import Catalog, load_catalog

from gateway.cli import main
from tests.support.load.kills import Killable
from tests.support.stack.verified_gateway import COMMAND, VARIABLE
from tests.support.stack.world import Person, World


@dataclass
class Site:
    """A stack whose gateway has a verifier, and the file with its answers."""

    world: World
    answers: Path

    @contextmanager
    def answering(self, change: str, *answer: str) -> Iterator[None]:
        """Let the verifier answer so for a kind of change; afterwards it concerns nothing."""
        with self.answering_all({change: answer}):
            yield

    @contextmanager
    def answering_all(self, answers: Mapping[str, Sequence[str]]) -> Iterator[None]:
        """Let the verifier answer so for several kinds of changes; afterwards it concerns nothing."""
        self.answers.write_text(json.dumps(answers))
        try:
            yield
        finally:
            self.answers.write_text("{}")

    def pyiceberg(self, person: Person) -> Catalog:
        """Return PyIceberg's catalog for a user."""
        uri = f"{self.world.base}/catalog"
        return load_catalog("lake", type="rest", uri=uri, warehouse=self.world.ready.warehouse, token=person.token)

    @property
    def path(self) -> str:
        """Return the path of the tickets."""
        return f"/management/v1/warehouse/{self.world.warehouse}/change-tickets"

    def tickets(self, person: Person, *, status: str = "pending") -> list[dict[str, Any]]:
        """Return the tickets that a user sees."""
        answer = person.get(self.path, params={"status": status})
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["change-tickets"]
        return found

    def only(self, name: str, *, status: str = "pending") -> dict[str, Any]:
        """Return the one ticket about the object of this name."""
        [listed] = [each for each in self.tickets(self.world.admin, status=status) if each["name"] == name]
        # The list has no updates.
        assert "change" not in listed
        ticket: dict[str, Any] = self.world.admin.get(f"{self.path}/{listed['id']}").json()
        return ticket

    def approve(self, ticket: dict[str, Any], *, by: Person | None = None, expect: int = 204) -> str:
        """Approve a ticket, and return the text of the answer."""
        answer = (by or self.world.admin).post(f"{self.path}/{ticket['id']}/approve", {})
        assert answer.status_code == expect, answer.text
        return answer.text

    def command(self, person: Person, *arguments: str) -> Result:
        """Run `lakegate changes` as a user."""
        where = ("--warehouse", self.world.warehouse, "--gateway", self.world.base)
        return CliRunner().invoke(main, ["changes", *arguments, *where], env={"LAKEGATE_TOKEN": person.token})


@contextmanager
def verified_site(gateway: Killable, scratch: Path) -> Iterator[Site]:
    """Run such a gateway until the block ends. `scratch` is a directory for the answers of its verifier."""
    answers = scratch / "answers.json"
    answers.write_text("{}")
    root = str(Path(__file__).parents[3])
    verified = gateway.changed(COMMAND, {VARIABLE: str(answers), "PYTHONPATH": root})
    with verified.serving() as world:
        yield Site(world, answers)

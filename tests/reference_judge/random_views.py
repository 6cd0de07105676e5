# SPDX-License-Identifier: Apache-2.0
"""Random questions about views: creations, sequences of commits, and adopted documents."""

from __future__ import annotations

import copy
import time
from random import Random
from typing import Any

from tests.reference_judge.random_parts import Parts

JSON = dict[str, Any]
LOCATION = "s3://bucket/v"


class Views:
    """Makes questions. `document` is the view on which the next commit is made, or None before the first creation."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.parts = Parts(random)
        self.document: JSON | None = None

    def keep(self, document: JSON) -> None:
        """Continue with a document that the catalog stored."""
        self.document = document

    def question(self) -> JSON:
        """Return the next question."""
        choice = self.random.random()
        if self.document is None or choice < 0.1:
            return self.creation()
        if choice < 0.25:
            return self.reading(self.document)
        return self.commit(self.document)

    def creation(self) -> JSON:
        """Return a request that creates a view."""
        request: JSON = {
            "name": "v",
            "location": LOCATION,
            "schema": self.parts.schema(version=3),
            "view-version": self.version(schema_id=0),
            "properties": self.properties(),
        }
        if self.parts.odd():
            request.pop(self.random.choice(["schema", "view-version", "properties"]))
        return {"kind": "create", "view": True, "request": request}

    def version(self, *, schema_id: int) -> JSON:
        """Return a version of a view."""
        made: JSON = {
            "version-id": self.random.choice([1, 1, 2, 5, 9]),
            "timestamp-ms": int(time.time() * 1000),
            "schema-id": schema_id,
            "summary": self.random.choice([{"engine-name": "spark"}, {}, {"operation": "create"}]),
            "default-namespace": self.random.choice([["ns"], [], ["a", "b"]]),
            "representations": [self.representation() for _ in range(self.random.choice([1, 1, 2]))],
        }
        if self.parts.flip(0.3):
            made["default-catalog"] = self.random.choice(["c", None, ""])
        if self.parts.odd():
            made.pop(self.random.choice(list(made)))
        if self.parts.odd():
            made[self.random.choice(list(made))] = self.random.choice([None, "x", 3, [], {}])
        return made

    def representation(self) -> JSON:
        """Return a representation."""
        made: JSON = {
            "type": "sql",
            "sql": f"select {self.random.randrange(4)}",
            "dialect": self.random.choice(["spark", "trino", "Spark", "hive"]),
        }
        if self.parts.odd():
            made[self.random.choice(list(made))] = self.random.choice(["", None, "other", "SQL"])
        if self.parts.odd():
            made.pop(self.random.choice(list(made)))
        return made

    def properties(self) -> JSON:
        """Return properties of a view."""
        made: JSON = {}
        if self.parts.flip(0.5):
            made["replace.drop-dialect.allowed"] = self.random.choice(["true", "true", "false"])
        if self.parts.flip(0.3):
            made["version.history.num-entries"] = self.random.choice(
                ["1", "2", "3"] if not self.parts.odd() else ["0", "x"]
            )
        return made

    def commit(self, base: JSON) -> JSON:
        """Return a commit on the current view."""
        updates: list[JSON] = []
        for _ in range(self.random.choice([1, 1, 2])):
            updates += self.random.choice([self._replace, self._replace, self._other])(base)
        requirements: list[JSON] = []
        if self.parts.flip(0.3):
            requirements.append({"type": "assert-view-uuid", "uuid": base["view-uuid"]})
        return {
            "kind": "commit",
            "view": True,
            "base": base,
            "request": {"requirements": requirements, "updates": updates},
        }

    def _replace(self, base: JSON) -> list[JSON]:
        updates: list[JSON] = []
        schema_id = self.random.choice([each["schema-id"] for each in base["schemas"]])
        if self.parts.flip(0.4):
            updates.append({"action": "add-schema", "schema": self.parts.schema(version=3)})
            schema_id = -1
        if self.parts.odd():
            schema_id = self.random.choice([-1, 55])
        version = self.version(schema_id=schema_id)
        if self.parts.flip(0.2):
            version = {**self.random.choice(base["versions"]), "version-id": self.random.choice([1, 4])}
        updates.append({"action": "add-view-version", "view-version": version})
        if self.parts.flip(0.9):
            updates.append({"action": "set-current-view-version", "view-version-id": -1})
        return updates

    def _other(self, base: JSON) -> list[JSON]:
        known = [each["version-id"] for each in base["versions"]]
        return [
            self.random.choice(
                [
                    {"action": "set-current-view-version", "view-version-id": self.random.choice([*known, 55, -1])},
                    {"action": "set-properties", "updates": self.properties() or {"a": "b"}},
                    {"action": "remove-properties", "removals": ["a"]},
                    {
                        "action": "set-location",
                        "location": self.random.choice([LOCATION, LOCATION + "2", LOCATION + "/"]),
                    },
                    {"action": "assign-uuid", "uuid": base["view-uuid"]},
                    {"action": "upgrade-format-version", "format-version": self.random.choice([1, 1, 2, 0])},
                ]
            )
        ]

    def reading(self, base: JSON) -> JSON:
        """Return a question about a document of another catalog."""
        document = copy.deepcopy(base)
        for _ in range(self.random.choice([1, 1, 2])):
            name = self.random.choice(list(document))
            choice = self.random.randrange(5)
            if choice == 0:
                document.pop(name)
            elif choice == 1:
                document[name] = None
            elif choice == 2 and isinstance(document[name], int):
                document[name] += self.random.choice([-1, 1])
            elif isinstance(document[name], list) and document[name]:
                part = self.random.choice(document[name])
                member = self.random.choice(list(part))
                part[member] = self.random.choice([None, "x", 1, [], {}, part[member]])
        return {"kind": "read", "view": True, "document": document}

# SPDX-License-Identifier: Apache-2.0
"""Random questions about tables: creations, sequences of commits, and adopted documents."""

from __future__ import annotations

import copy
import time
from contextlib import suppress
from random import Random
from typing import Any

from tests.reference_judge.comparison import BASE_FILE, LOCATION
from tests.reference_judge.random_parts import NAMES, Parts

JSON = dict[str, Any]
REFS = ["main", "dev", "audit", "tag1"]
SUMMARIES: list[Any] = [
    {"operation": "append"},
    {"operation": "append", "added-records": "1"},
    {"operation": "overwrite"},
]
ODD_SUMMARIES: list[Any] = [{}, {"added-records": "1"}, {"operation": "Append"}, {"operation": "merge"}, None, []]


class Tables:
    """Makes questions. `document` is the table on which the next commit is made, or None before the first creation."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.parts = Parts(random)
        self.document: JSON | None = None
        self.known: list[JSON] = []
        self.made = 0

    def keep(self, document: JSON) -> None:
        """Continue with a document that the catalog stored."""
        self.document = document
        self.known = [*self.known[-20:], document]

    def question(self) -> JSON:
        """Return the next question: mostly a commit on the current table."""
        choice = self.random.random()
        if self.document is None or choice < 0.06:
            return self.creation()
        if choice < 0.10:
            return self.create_commit()
        if choice < 0.14:
            self.document = self.random.choice(self.known)
        return self.commit()

    def creation(self) -> JSON:
        """Return a request that creates a table."""
        version = self.random.choice([1, 2, 2, 3, 3])
        schema = self.parts.schema(version=version)
        request: JSON = {
            "name": "t",
            "location": LOCATION,
            "schema": schema,
            "properties": {"format-version": str(version)},
        }
        if self.parts.flip():
            request["partition-spec"] = self.parts.spec(schema, with_ids=self.parts.flip(0.2))
        if self.parts.flip(0.4):
            request["write-order"] = self.parts.order(schema)
        return {"kind": "create", "view": False, "request": request}

    def create_commit(self) -> JSON:
        """Return a commit that creates a table."""
        version = self.random.choice([1, 2, 2, 3, 3])
        schema = self.parts.schema(version=version)
        updates: list[JSON] = [
            {"action": "assign-uuid", "uuid": "0193a5b2-4c1e-7f00-8000-00000000abcd"},
            {"action": "upgrade-format-version", "format-version": version},
            {"action": "add-schema", "schema": schema},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": self.parts.spec(schema, with_ids=self.parts.flip())},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": self.parts.order(schema)},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": LOCATION},
            {"action": "set-properties", "updates": {"a": "1"}},
        ]
        if self.parts.odd():
            updates.pop(self.random.randrange(2, len(updates)))
        request = {"requirements": [{"type": "assert-create"}], "updates": updates}
        return {"kind": "commit", "view": False, "base": None, "request": request}

    def commit(self) -> JSON:
        """Return a commit on the current table."""
        base = self.document
        assert base is not None
        self.now = int(time.time() * 1000)
        self.sequence = base.get("last-sequence-number", 0)
        self.row = base.get("next-row-id", 0)
        self.added: list[int] = []
        makers = [self._schema, self._spec, self._order, self._append, self._append, self._append, self._ref, self._ref]
        makers += [self._expire, self._remove_ref, self._properties, self._upgrade, self._statistics, self._removals]
        makers += [self._keys, self._current, self._fixed]
        updates: list[JSON] = []
        for _ in range(self.random.choice([1, 1, 2, 3])):
            updates += self.random.choice(makers)(base)
        requirements = [self._requirement(base) for _ in range(self.random.choice([0, 0, 1]))]
        return {
            "kind": "commit",
            "view": False,
            "base": base,
            "request": {"requirements": requirements, "updates": updates},
        }

    def document_question(self) -> JSON:
        """Return a question about a document of another catalog: a known one with one to three changes."""
        document = copy.deepcopy(self.random.choice(self.known))
        for _ in range(self.random.choice([1, 1, 2, 3])):
            # A change before may have replaced what this one would change.
            with suppress(TypeError, KeyError, AttributeError, IndexError):
                self._mutate(document)
        return {"kind": "read", "view": False, "document": document}

    # ---- updates -----------------------------------------------------------------------------------------------

    def _schema(self, base: JSON) -> list[JSON]:
        version = base["format-version"]
        current = next(s for s in base["schemas"] if s["schema-id"] == base["current-schema-id"])
        schema = self.parts.schema(version=version, start=[base["last-column-id"]], base=current)
        added: JSON = {"action": "add-schema", "schema": schema}
        if self.parts.flip(0.1):
            added["last-column-id"] = base["last-column-id"]
        made = [added]
        if self.parts.flip(0.8):
            made.append({"action": "set-current-schema", "schema-id": -1})
        return made

    def _schema_now(self, base: JSON) -> JSON:
        found: JSON = next(s for s in base["schemas"] if s["schema-id"] == base["current-schema-id"])
        return found

    def _spec(self, base: JSON) -> list[JSON]:
        made: list[JSON] = [{"action": "add-spec", "spec": self.parts.spec(self._schema_now(base))}]
        if self.parts.flip(0.8):
            made.append({"action": "set-default-spec", "spec-id": -1})
        return made

    def _order(self, base: JSON) -> list[JSON]:
        made: list[JSON] = [{"action": "add-sort-order", "sort-order": self.parts.order(self._schema_now(base))}]
        if self.parts.flip(0.8):
            made.append({"action": "set-default-sort-order", "sort-order-id": -1})
        return made

    def _append(self, base: JSON) -> list[JSON]:
        self.made += 1
        number = 1000 + self.made
        name = self.random.choice(REFS[:3])
        self.sequence += 1
        snapshot: JSON = {
            "snapshot-id": number,
            "sequence-number": self.sequence,
            "timestamp-ms": self.now,
            "manifest-list": f"{LOCATION}/metadata/{number}.avro",
            "summary": self.random.choice(SUMMARIES),
            "schema-id": base["current-schema-id"],
        }
        if (head := base["refs"].get(name)) is not None and self.parts.flip(0.9):
            snapshot["parent-snapshot-id"] = head["snapshot-id"]
        if base["format-version"] > 2 or self.parts.odd():
            snapshot |= {"first-row-id": self.row, "added-rows": 3}
            self.row += 3
        if self.parts.odd():
            self._spoil(snapshot, base)
        self.added.append(number)
        added: JSON = {"action": "add-snapshot", "snapshot": snapshot}
        ref: JSON = {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": number}
        return [added, ref] if self.parts.flip(0.9) else [added]

    def _spoil(self, snapshot: JSON, base: JSON) -> None:
        choice = self.random.randrange(9)
        if choice == 0:
            snapshot["sequence-number"] = self.random.choice([0, 1, self.sequence - 1, None])
        elif choice == 1:
            snapshot.pop(self.random.choice(list(snapshot)))
        elif choice == 2:
            snapshot["summary"] = self.random.choice(ODD_SUMMARIES)
        elif choice == 3:
            snapshot["first-row-id"] = self.random.choice([0, -1, None, self.row + 5])
        elif choice == 4:
            snapshot["added-rows"] = self.random.choice([-1, None, 0])
        elif choice == 5:
            snapshot["schema-id"] = self.random.choice([None, 99, -1])
        elif choice == 6 and base["snapshots"]:
            snapshot["snapshot-id"] = base["snapshots"][0]["snapshot-id"]
        elif choice == 7:
            snapshot["parent-snapshot-id"] = self.random.choice([None, 12345])
        else:
            snapshot["key-id"] = self.random.choice(["k", None])

    def _snapshot_id(self, base: JSON) -> int:
        ids = [each["snapshot-id"] for each in base["snapshots"]] + self.added
        found: int = self.random.choice(ids) if ids and not self.parts.odd() else 404
        return found

    def _ref(self, base: JSON) -> list[JSON]:
        kind = self.random.choice(["branch", "branch", "tag"] if not self.parts.odd() else ["BRANCH", "Tag", "twig"])
        name = self.random.choice(REFS) if not self.parts.odd() else self.random.choice(["", "é", "a b"])
        made: JSON = {
            "action": "set-snapshot-ref",
            "ref-name": name,
            "type": kind,
            "snapshot-id": self._snapshot_id(base),
        }
        for member in ("max-ref-age-ms", "max-snapshot-age-ms", "min-snapshots-to-keep"):
            if self.parts.flip(0.15):
                made[member] = self.random.choice([1, 100, 100] if not self.parts.odd() else [0, -1, None, 2**40])
        return [made]

    def _expire(self, base: JSON) -> list[JSON]:
        return [{"action": "remove-snapshots", "snapshot-ids": [self._snapshot_id(base)]}]

    def _remove_ref(self, base: JSON) -> list[JSON]:
        return [{"action": "remove-snapshot-ref", "ref-name": self.random.choice(REFS)}]

    def _properties(self, base: JSON) -> list[JSON]:
        if self.parts.flip():
            return [{"action": "remove-properties", "removals": [self.random.choice("ab")]}]
        updates: JSON = {self.random.choice("ab"): self.random.choice("12")}
        if self.parts.odd():
            updates = {
                self.random.choice(["a", "uuid", "write.metadata.previous-versions-max"]): self.random.choice(
                    ["0", "x", "2"]
                )
            }
        return [{"action": "set-properties", "updates": updates}]

    def _upgrade(self, base: JSON) -> list[JSON]:
        return [{"action": "upgrade-format-version", "format-version": self.random.choice([1, 2, 3, 3, 4, 0])}]

    def _statistics(self, base: JSON) -> list[JSON]:
        number = self._snapshot_id(base)
        blob = {"type": "x", "snapshot-id": number, "sequence-number": 1, "fields": [1]}
        file: JSON = {"snapshot-id": number, "statistics-path": f"{LOCATION}/s.puffin", "file-size-in-bytes": 9}
        whole = {**file, "file-footer-size-in-bytes": 3, "blob-metadata": [blob]}
        if self.parts.odd():
            whole.pop(self.random.choice(list(whole)))
        return self.random.choice(
            [
                [{"action": "set-statistics", "snapshot-id": number, "statistics": whole}],
                [{"action": "remove-statistics", "snapshot-id": number}],
                [{"action": "set-partition-statistics", "partition-statistics": file}],
                [{"action": "remove-partition-statistics", "snapshot-id": number}],
            ]
        )

    def _removals(self, base: JSON) -> list[JSON]:
        if self.parts.flip():
            ids = [each["schema-id"] for each in base["schemas"]]
            return [{"action": "remove-schemas", "schema-ids": self.random.sample([*ids, 55], k=1)}]
        ids = [each["spec-id"] for each in base["partition-specs"]]
        return [{"action": "remove-partition-specs", "spec-ids": self.random.sample([*ids, 55], k=1)}]

    def _keys(self, base: JSON) -> list[JSON]:
        if self.parts.flip(0.3):
            return [{"action": "remove-encryption-key", "key-id": "k"}]
        key: JSON = {
            "key-id": self.random.choice("kl"),
            "encrypted-key-metadata": self.random.choice(["aGk=", "aGk=", "!!", ""]),
        }
        if self.parts.flip(0.3):
            key |= {"encrypted-by-id": self.random.choice(["m", None]), "properties": {"a": "b"}}
        return [{"action": "add-encryption-key", "encryption-key": key}]

    def _current(self, base: JSON) -> list[JSON]:
        return [
            self.random.choice(
                [
                    {"action": "set-current-schema", "schema-id": self.random.choice([0, 1, 2, -1, 55])},
                    {"action": "set-default-spec", "spec-id": self.random.choice([0, 1, 2, -1, 55])},
                    {"action": "set-default-sort-order", "sort-order-id": self.random.choice([0, 1, 2, -1, 55])},
                ]
            )
        ]

    def _fixed(self, base: JSON) -> list[JSON]:
        if self.parts.flip():
            return [{"action": "assign-uuid", "uuid": base["table-uuid"]}]
        return [{"action": "set-location", "location": self.random.choice([LOCATION, LOCATION, LOCATION + "/"])}]

    def _requirement(self, base: JSON) -> JSON:
        wrong = self.parts.odd()
        head = base["refs"].get("main", {}).get("snapshot-id")
        return self.random.choice(
            [
                {"type": "assert-table-uuid", "uuid": base["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 404 if wrong else head},
                {"type": "assert-last-assigned-field-id", "last-assigned-field-id": base["last-column-id"] + wrong},
                {"type": "assert-current-schema-id", "current-schema-id": base["current-schema-id"] + wrong},
                {
                    "type": "assert-last-assigned-partition-id",
                    "last-assigned-partition-id": base["last-partition-id"] + wrong,
                },
                {"type": "assert-default-spec-id", "default-spec-id": base["default-spec-id"] + wrong},
                {
                    "type": "assert-default-sort-order-id",
                    "default-sort-order-id": base["default-sort-order-id"] + wrong,
                },
            ]
        )

    # ---- documents ---------------------------------------------------------------------------------------------

    def _mutate(self, document: JSON) -> None:
        self.random.choice([self._member, self._parts, self._order_of_parts, self._spelling, self._inner])(document)

    def _member(self, document: JSON) -> None:
        """Remove or change a member of the document."""
        choice = self.random.randrange(4)
        name = self.random.choice(list(document))
        if choice == 0:
            document.pop(name)
        elif choice == 1:
            document[name] = None
        elif choice == 2 and isinstance(document[name], int):
            document[name] += self.random.choice([-1, 1, -100_000, 100_000])
        elif choice == 3:
            document["format-version"] = self.random.choice([1, 2, 3])
            self._old(document)

    def _parts(self, document: JSON) -> None:
        """Add or replace schemas, specs and orders."""
        choice = self.random.randrange(3)
        schema = self.random.choice(document["schemas"])
        if choice == 0:
            start = [document.get("last-column-id") or 9]
            document["schemas"] = [*document["schemas"], self.parts.schema(version=3, start=start)]
        elif choice == 1:
            spec = self.parts.spec(schema, spec_id=document.get("default-spec-id"), with_ids=True)
            document["partition-specs"] = [spec]
        else:
            order = self.parts.order(schema, order_id=document.get("default-sort-order-id"))
            document["sort-orders"] = [order, *(document.get("sort-orders") or [])]

    def _order_of_parts(self, document: JSON) -> None:
        """Change the order of parts, or the times of a log."""
        for name in ("snapshots", "snapshot-log", "metadata-log", "schemas", "partition-specs", "sort-orders"):
            if document.get(name) and self.parts.flip(0.3):
                self.random.shuffle(document[name])
        for entry in document.get(self.random.choice(["snapshot-log", "metadata-log"])) or []:
            entry["timestamp-ms"] = (entry.get("timestamp-ms") or 0) + self.random.choice([0, 59_000, 61_000, -61_000])

    def _spelling(self, document: JSON) -> None:
        """Spell types of refs and names of columns differently."""
        for ref in document["refs"].values():
            if self.parts.flip(0.3):
                ref["type"] = self.random.choice(["branch", "BRANCH", "tag", "Tag", "twig"])
        for schema in document["schemas"]:
            if schema["fields"] and self.parts.flip(0.3):
                self.random.choice(schema["fields"])["name"] = self.random.choice(NAMES)

    def _inner(self, document: JSON) -> None:
        """Change one member of one part."""
        lists = [name for name, value in document.items() if isinstance(value, list) and value]
        if not lists:
            return
        part = self.random.choice(document[self.random.choice(lists)])
        if not isinstance(part, dict):
            return
        member = self.random.choice(list(part))
        choice = self.random.randrange(4)
        if choice == 0:
            part.pop(member)
        elif choice == 1:
            part[member] = None
        elif choice == 2 and isinstance(part[member], int):
            part[member] += self.random.choice([-1, 1, 5])
        elif member == "summary":
            part[member] = self.random.choice(ODD_SUMMARIES)
        else:
            part[member] = self.random.choice(["x", 5, [], {}, True])

    def _old(self, document: JSON) -> None:
        """Write some members as early writers of version 1 did."""
        if document["format-version"] != 1 or not document.get("schemas"):
            return
        if self.parts.flip():
            document["schema"] = document["schemas"][-1]
            document["partition-spec"] = (document.get("partition-specs") or [{"fields": []}])[-1]["fields"]
        for name in ("table-uuid", "schemas", "partition-specs", "sort-orders", "refs", "last-partition-id"):
            if self.parts.flip(0.4):
                document.pop(name, None)


__all__ = ["BASE_FILE", "Tables"]

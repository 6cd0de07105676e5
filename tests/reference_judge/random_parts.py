# SPDX-License-Identifier: Apache-2.0
"""Random schemas, partition specs and sort orders: most are valid, some break one rule."""

from __future__ import annotations

from random import Random
from typing import Any

JSON = dict[str, Any]

PRIMITIVES = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "uuid",
] + ["binary", "fixed[4]", "decimal(9,2)", "decimal(38, 10)", "int", "long", "string", "date", "timestamp"]
NEW_TYPES = ["timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geometry(srid:3857)", "geography"]
ODD_TYPES = ["decimal(39,1)", "decimal(4,5)", "fixed[0]", "Long", "STRING", "varchar", "geography(srid:4326, karney)"]
DEFAULTS: list[Any] = [
    True,
    1,
    2**31,
    2**63,
    -1,
    1.5,
    1e300,
    "x",
    "",
    "0a",
    "0A0b0c0d",
    "2020-02-30",
    "2020-02-29",
    "10:11:12",
]
DEFAULTS += ["10:11:12.123456789", "2020-01-01T10:11:12", "2020-01-01T10:11:12.000001", "2020-01-01T10:11:12+00:00"]
DEFAULTS += [
    "2020-01-01T10:11:12.5Z",
    "12.34",
    "1234567890.12",
    "1.5",
    "1E2",
    {},
    [],
    {"1": 2},
    {"keys": [], "values": []},
]
DEFAULTS += [
    "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "f79c3e09677c4bbda4793f349cb785e7",
    [1, 2],
    "2020-01-01T10:11:12+01:00",
]
NAMES = ["a", "b", "c", "d", "a.b", "A", "a_bucket", "p", "ts_day", "element", "key", "value", "é", ""]
TRANSFORMS = ["identity", "bucket[4]", "truncate[3]", "year", "month", "day", "hour", "void"]
ODD_TRANSFORMS = [
    "Identity",
    "DAY",
    "Bucket[4]",
    "juggle[2]",
    "bucket",
    "bucket[0]",
    "zorder",
    "bucket[ 4 ]",
    "day[1]",
    "years",
]


class Parts:
    """Makes parts of documents with a random generator. `strange` is the share of parts that break a rule."""

    def __init__(self, random: Random, strange: float = 0.06) -> None:
        self.random = random
        self.strange = strange

    def odd(self) -> bool:
        """Return True for a part that may break a rule."""
        return self.random.random() < self.strange

    def type(self, ids: list[int], depth: int = 0, *, version: int = 2) -> Any:
        """Return a type. New ids are drawn from `ids`."""
        if self.odd():
            return self.random.choice(ODD_TYPES)
        if version > 2 and self.random.random() < 0.25 or self.odd():
            return self.random.choice(NEW_TYPES)
        if depth < 3 and self.random.random() < 0.3:
            kind = self.random.choice(["struct", "list", "map"])
            if kind == "struct":
                return {"type": "struct", "fields": self.fields(ids, depth + 1, version=version, count=2)}
            if kind == "list":
                element = self.id(ids)
                inner = self.type(ids, depth + 1, version=version)
                return {"type": "list", "element-id": element, "element": inner, "element-required": self.flip()}
            key, value = self.id(ids), self.id(ids)
            kinds = self.type(ids, depth + 1, version=version), self.type(ids, depth + 1, version=version)
            members = {"key-id": key, "key": kinds[0], "value-id": value, "value": kinds[1]}
            return {"type": "map", **members, "value-required": self.flip()}
        return self.random.choice(PRIMITIVES)

    def id(self, ids: list[int]) -> int:
        """Return the next field id, rarely one that is used or not allowed."""
        if self.odd():
            return self.random.choice([*ids, 0, -1, 2_147_483_546, 77])
        ids.append(max(ids, default=0) + 1)
        return ids[-1]

    def flip(self, share: float = 0.5) -> bool:
        """Return True with a probability."""
        return self.random.random() < share

    def fields(self, ids: list[int], depth: int = 0, *, version: int, count: int = 4) -> list[JSON]:
        """Return the fields of a struct."""
        made: list[JSON] = []
        names = self.random.sample(NAMES[:-1], k=self.random.randint(1, count))
        for each in names:
            name = self.random.choice(NAMES) if self.odd() else each
            field = {"id": self.id(ids), "name": name, "required": self.flip(0.3)}
            field["type"] = self.type(ids, depth, version=version)
            if self.flip(0.15 if version > 2 else 0.03):
                field["initial-default"] = self.default(field["type"])
                if self.flip():
                    field["required"] = True
            if self.flip(0.15 if version > 2 else 0.03):
                field["write-default"] = self.default(field["type"])
            made.append(field)
        return made

    def default(self, kind: Any) -> Any:
        """Return a default value, often one of the type."""
        fitting = {
            "boolean": True, "int": 34, "long": 2**40, "float": 1.5, "double": 2.5, "date": "2020-02-29",
            "time": "10:11:12.000001", "timestamp": "2020-01-01T10:11:12.000001", "string": "x", "binary": "0a0b",
            "timestamptz": "2020-01-01T10:11:12.000001+00:00", "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
            "fixed[4]": "0a0b0c0d", "decimal(9,2)": "12.34",
        }  # fmt: skip
        if isinstance(kind, str) and kind in fitting and self.flip(0.6):
            return fitting[kind]
        return self.random.choice(DEFAULTS)

    def schema(self, *, version: int, start: list[int] | None = None, base: JSON | None = None) -> JSON:
        """Return a schema: a new one, or `base` with a column more, less or renamed."""
        ids = list(start or [])
        made: JSON = {"type": "struct", "schema-id": self.random.choice([0, 0, 1, 7])}
        if base is not None and self.flip(0.8):
            fields = [dict(field) for field in base["fields"]]
            what = self.random.random()
            if what < 0.5 or not fields:
                fields += self.fields(ids, version=version, count=1)
            elif what < 0.75:
                fields.pop(self.random.randrange(len(fields)))
            else:
                self.random.choice(fields)["name"] = self.random.choice(NAMES[:-1])
        else:
            fields = self.fields(ids, version=version)
        made["fields"] = fields
        if self.flip(0.15):
            made["identifier-field-ids"] = self.random.sample(ids or [1], k=1)
        if self.odd():
            made.pop("schema-id")
        return made

    def spec(self, schema: JSON, *, spec_id: int | None = None, with_ids: bool = False) -> JSON:
        """Return a partition spec for a schema."""
        fields: list[JSON] = []
        for index in range(self.random.choice([0, 1, 1, 1, 2, 3])):
            source, name, kind = self._column(schema)
            transform = self.transform(kind)
            label = self.random.choice([f"p{index}", f"{name}_{transform[:3]}", "p", name if self.flip(0.3) else "q"])
            if self.odd():
                label = self.random.choice([*NAMES, "a.b", "p"])
            field = {"source-id": source, "name": label, "transform": transform}
            if with_ids or self.flip(0.15):
                field["field-id"] = 1000 + index if not self.odd() else self.random.choice([1000, 1001, 1007, 5])
            fields.append(field)
        made: JSON = {"fields": fields}
        if spec_id is not None or self.flip():
            made["spec-id"] = spec_id or self.random.choice([0, 0, 1, 9])
        return made

    def transform(self, kind: Any) -> str:
        """Return a transform, mostly one for the type."""
        if self.odd():
            return self.random.choice(ODD_TRANSFORMS)
        if self.flip(0.2) or not isinstance(kind, str):
            return self.random.choice(TRANSFORMS)
        fitting = ["identity", "void", "bucket[4]"]
        if kind.startswith(("timestamp", "date")):
            fitting += ["year", "month", "day"]
        if kind in ("int", "long", "string", "binary"):
            fitting.append("truncate[3]")
        return self.random.choice(fitting)

    def order(self, schema: JSON, *, order_id: int | None = None) -> JSON:
        """Return a sort order for a schema."""
        fields = []
        for _ in range(self.random.choice([0, 1, 1, 2])):
            source, _, kind = self._column(schema)
            direction = self.random.choice(["asc", "desc"] if not self.odd() else ["ASC", "Desc", "up"])
            nulls = self.random.choice(
                ["nulls-first", "nulls-last"]
                if not self.odd()
                else ["NULLS-FIRST", "Nulls-Last", "nulls_first", "nulls last"]
            )
            fields.append(
                {"source-id": source, "transform": self.transform(kind), "direction": direction, "null-order": nulls}
            )
        chosen = order_id if order_id is not None else (1 if fields else 0)
        return {"order-id": self.random.choice([0, 1, 5]) if self.odd() else chosen, "fields": fields}

    def _column(self, schema: JSON) -> tuple[int, str, Any]:
        """Return (id, name, type) of a column, mostly at the top level."""
        if self.odd() or not schema["fields"]:
            return self.random.choice([99, 0]), "x", "long"
        found = self.random.choice(schema["fields"])
        while isinstance(found["type"], dict) and self.flip(0.8):
            kind = found["type"]
            if kind["type"] == "struct":
                found = self.random.choice(kind["fields"]) if kind["fields"] else found
                if not kind["fields"]:
                    break
            elif kind["type"] == "list":
                found = {"id": kind["element-id"], "name": "element", "type": kind["element"]}
            else:
                side = self.random.choice(["key", "value"])
                found = {"id": kind[f"{side}-id"], "name": side, "type": kind[side]}
        return found["id"], found["name"], found["type"]

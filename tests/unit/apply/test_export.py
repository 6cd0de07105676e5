# SPDX-License-Identifier: Apache-2.0
"""An exported file states exactly the state that it was made from, whatever the names and values are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args
from uuid import UUID

import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.operations.warehouse_bodies import PolicyLoss
from gateway.apply.data_policies import readable
from gateway.apply.export import document_of
from gateway.apply.kinds import desired_state, read_all
from gateway.apply.planner import Plan, plan
from gateway.apply.profiles import present_profile_fields
from gateway.apply.state import Address, Kind, Resource, State, binding_address, namespace_address
from gateway.iceberg.identifiers import fold
from gateway.obligations.data_policies import AppliesTo

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROFILE = {"type": "s3", "bucket": "lake", "region": "eu", "sts-enabled": False}

#: Names with everything that has a meaning in YAML, in addresses or in file names.
NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12),
    st.sampled_from(["no", "null", "~", "1.0", "2027-01-01", "<<", "*a", "a.b", "a/b", "a: b", "role:x", " "]),
)
VALUE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
GRANT = {"expires-at": None, "reason": None}
VALUES = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), NAMES)


@st.composite
def grants(draw: st.DrawFn, on: Address, roles: list[str]) -> list[Resource]:
    """Return grants on an object to users and roles."""
    people = st.one_of(
        st.sampled_from(["user:oidc~ann", "user:oidc~bob b"]), st.sampled_from(roles).map("role:{}".format)
    )
    names = draw(st.sets(st.tuples(st.sampled_from(["select", "modify"]), people), max_size=3))
    ends = st.sampled_from([None, datetime(2090, 1, 1, 12, 30, 1, 5, tzinfo=UTC)])
    reasons = st.one_of(st.none(), NAMES)
    return [
        Resource(Address(Kind.GRANT, " ".join(name), on), {"expires-at": draw(ends), "reason": draw(reasons)})
        for name in sorted(names)
    ]


@st.composite
def policies(draw: st.DrawFn, project: Address, roles: list[str]) -> list[Resource]:
    """Return tags, mapping tables with entries, and data policies of a project."""
    found: list[Resource] = []
    for name in draw(_distinct()):
        values = draw(st.none() | st.sets(NAMES, min_size=1, max_size=3).map(sorted))
        kind: dict[str, Any] = (
            {"value-kind": "marker"} if values is None else {"value-kind": "enumerated", "allowed-values": values}
        )
        fields = {"name": name, "description": draw(st.none() | NAMES), "scope": ["table", "column"], **kind}
        found.append(Resource(tag := Address(Kind.TAG, fold(name), project), fields))
        found += (Resource(Address(Kind.GRANT, f"apply role:{each}", tag), GRANT) for each in roles)
    for name in draw(_distinct()):
        table = Address(Kind.MAPPING_TABLE, fold(name), project)
        found.append(Resource(table, {"name": name, "description": draw(st.none() | NAMES)}))
        values = draw(st.sets(NAMES, min_size=1, max_size=3).map(sorted))
        found += (Resource(Address(Kind.MAPPING_ENTRY, f"role:{each}", table), {"values": values}) for each in roles)
    for name in draw(_distinct()):
        fields = {"name": name, "description": None, "definition": draw(definitions(roles))}
        fields |= {"applies-to": draw(st.sampled_from(AppliesTo)).value, "allow-append": draw(st.booleans())}
        found.append(Resource(Address(Kind.DATA_POLICY, fold(name), project), fields))
        found.append(Resource(Address(Kind.GRANT, f"exempt role:{roles[0]}", found[-1].address), GRANT))
    return found


@st.composite
def definitions(draw: st.DrawFn, roles: list[str]) -> Any:
    """Return a mask, or a row filter that tests a role, in the form of JSON."""
    column = draw(st.sampled_from([{"name": "a"}, {"tag": "pii"}]))
    if draw(st.booleans()):
        return _as_read({"kind": "mask", "action": "mask-alphanum", "columns": [column]})
    value = draw(st.one_of(NAMES, st.booleans(), st.integers(-5, 5), st.sampled_from([0.5, -1.0])))
    tests = [
        {"type": "has-role", "role": draw(st.sampled_from(roles))},
        {"type": "in", "column": column, "values": [value]},
        {"type": "compare", "operator": "eq", "column": column, "value": value},
    ]
    return _as_read({"kind": "row-filter", "test": {"type": "or", "operands": tests}})


def _as_read(definition: dict[str, Any]) -> Any:
    """Return a definition as the reader returns it."""
    return readable(definition, {}, None)


@st.composite
def attached(draw: st.DrawFn, found: list[Resource], project: Address, on: tuple[Address, ...]) -> list[Resource]:
    """Return attachments of some tags to some of the objects."""
    tags = [each.address.name for each in found if each.address.kind is Kind.TAG]
    known = {each.address for each in found}
    places = [Address(Kind.ATTACHMENT, tag, each) for each in on for tag in tags]
    chosen = draw(st.sets(st.sampled_from(places))) if places else set()
    return [Resource(each, {"value": draw(st.none() | VALUE)}) for each in chosen - known]


@st.composite
def bound(draw: st.DrawFn, found: list[Resource], project: Address, on: tuple[Address, ...]) -> list[Resource]:
    """Return bindings of some data policies to some of the objects and tags."""
    by_kind = {kind: [each.address for each in found if each.address.kind is kind] for kind in Kind}
    targets = [*on, *by_kind[Kind.TAG]]
    places = [binding_address(policy, each) for policy in by_kind[Kind.DATA_POLICY] for each in targets]
    chosen = draw(st.sets(st.sampled_from(places))) if places else set()
    return [Resource(each) for each in chosen - {each.address for each in found}]


def _distinct() -> st.SearchStrategy[list[str]]:
    return st.lists(NAMES, max_size=2, unique_by=fold)


@st.composite
def projects(draw: st.DrawFn) -> State:
    """Return the state of a project with everything below it, as a reader returns it."""
    project = Address(Kind.PROJECT, "shop")
    found = [Resource(project, {"name": draw(NAMES)}, id="shop")]
    roles = sorted(draw(st.sets(NAMES, min_size=1, max_size=3)))
    for number, name in enumerate(roles):
        role, id = Address(Kind.ROLE, name, project), str(UUID(int=number))
        fields = {"name": name, "description": draw(st.none() | NAMES), "provider-id": "lakekeeper", "source-id": id}
        found.append(Resource(role, fields, id=id))
        found += (Resource(Address(Kind.MEMBER, f"role:{each}", role)) for each in roles if each != name)
    found += draw(policies(project, roles))
    warehouse = Address(Kind.WAREHOUSE, draw(NAMES.filter(lambda name: "/" not in name)), project)
    versions: tuple[list[int], int | None] = draw(st.sampled_from([([1, 2, 3], None), ([2], None), ([1, 2, 3], 3)]))
    stated: dict[str, Any] = {
        **present_profile_fields(PROFILE),
        **{"name": warehouse.name, "credential": "s3/access-key", "managed-by": "self-managed"},
        **{"allowed-format-versions": versions[0], "default-format-version": versions[1]},
        "delete-profile": draw(st.sampled_from([{"type": "hard"}, {"type": "soft", "expiration-seconds": 5}])),
        **{"managed-access": draw(st.booleans()), "protected": draw(st.booleans())},
        **{"policy-loss": draw(st.sampled_from(get_args(PolicyLoss))), "status": "active"},
        "task-queues.soft_deletion": draw(st.sampled_from([None, {"max-seconds-since-last-heartbeat": 300}])),
    }
    found.append(Resource(warehouse, stated))
    for levels in draw(st.sets(st.lists(NAMES, min_size=1, max_size=2).map(tuple), max_size=3)):
        namespace = namespace_address(warehouse, levels)
        properties = draw(st.dictionaries(NAMES.map("properties.{}".format), VALUES, max_size=3))
        found.append(Resource(namespace, {**properties, "managed-access": False, "protected": draw(st.booleans())}))
        table = Address(Kind.TABLE, draw(NAMES), namespace)
        column = Address(Kind.COLUMN, draw(NAMES), table)
        found.append(Resource(files := Address(Kind.GENERIC_TABLE, draw(NAMES), namespace), {"protected": True}))
        found += (Resource(table, {"protected": draw(st.booleans())}), Resource(column))
        found += draw(grants(namespace, roles))
        found += draw(attached(found, project, (warehouse, namespace, table, column)))
        found += draw(bound(found, project, (warehouse, namespace, table, files)))
        found += [each for each in draw(grants(column, roles)) if each.address.name.startswith("select ")]
    found += draw(grants(project, roles))
    return State({each.address: each for each in found}, _scopes(found))


def _scopes(found: list[Resource]) -> frozenset[Any]:
    kinds = {
        Kind.PROJECT: (Kind.ROLE, Kind.WAREHOUSE, Kind.TAG, Kind.MAPPING_TABLE, Kind.DATA_POLICY),
        Kind.ROLE: (Kind.MEMBER,),
        Kind.WAREHOUSE: (Kind.NAMESPACE, Kind.ATTACHMENT),
        **dict.fromkeys((Kind.NAMESPACE, Kind.TABLE, Kind.COLUMN), (Kind.ATTACHMENT,)),
        Kind.MAPPING_TABLE: (Kind.MAPPING_ENTRY,),
        Kind.DATA_POLICY: (Kind.BINDING,),
    }
    of_kinds = {(kind, each.address) for each in found for kind in kinds.get(each.address.kind, ())}
    without = (Kind.GRANT, Kind.MEMBER, Kind.MAPPING_TABLE, Kind.MAPPING_ENTRY, Kind.ATTACHMENT, Kind.BINDING)
    grantable = [each for each in found if each.address.kind not in without]
    return frozenset({*of_kinds, *((Kind.GRANT, each.address) for each in grantable)})


@given(state=projects())
def test_an_exported_file_has_no_changes(state: State) -> None:
    text = yaml.safe_dump(document_of(state), sort_keys=False, allow_unicode=True)
    desired = desired_state(read_all({"file.yaml": text}), now=NOW)
    assert plan(desired, state, prune=True, prune_containers=True) == Plan()
    for address, resource in state.resources.items():
        if address.kind in (Kind.TABLE, Kind.COLUMN, Kind.MAPPING_TABLE):
            continue
        stated = {name: value for name, value in resource.fields.items() if not _is_default(name, value)}
        assert stated.items() <= desired.resources[address].fields.items()


def _is_default(name: str, value: Any) -> bool:
    """Return whether the file leaves a field out: it has the value of a new object, or the server sets it."""
    values = (None, False, {"type": "hard"}, [1, 2, 3], "self-managed", "refuse-restricted", "active")
    return value in values or name in ("credential", "provider-id", "source-id")

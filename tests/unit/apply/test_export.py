# SPDX-License-Identifier: Apache-2.0
"""An exported file states exactly the state that it was made from, whatever the names and values are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.apply.desired import desired_state, read_all
from gateway.apply.export import document_of
from gateway.apply.planner import Plan, plan
from gateway.apply.profiles import present_profile_fields
from gateway.apply.state import Address, Kind, Resource, State, namespace_address

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROFILE = {"type": "s3", "bucket": "lake", "region": "eu", "sts-enabled": False}

#: Names with everything that has a meaning in YAML, in addresses or in file names.
NAMES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12),
    st.sampled_from(["no", "null", "~", "1.0", "2027-01-01", "<<", "*a", "a.b", "a/b", "a: b", "role:x", " "]),
)
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
    warehouse = Address(Kind.WAREHOUSE, draw(NAMES.filter(lambda name: "/" not in name)), project)
    versions: tuple[list[int], int | None] = draw(st.sampled_from([([1, 2, 3], None), ([2], None), ([1, 2, 3], 3)]))
    stated: dict[str, Any] = {
        **present_profile_fields(PROFILE),
        **{"name": warehouse.name, "credential": "s3/access-key", "managed-by": "self-managed"},
        **{"allowed-format-versions": versions[0], "default-format-version": versions[1]},
        "delete-profile": draw(st.sampled_from([{"type": "hard"}, {"type": "soft", "expiration-seconds": 5}])),
        **{"managed-access": draw(st.booleans()), "protected": draw(st.booleans())},
    }
    found.append(Resource(warehouse, stated))
    for levels in draw(st.sets(st.lists(NAMES, min_size=1, max_size=2).map(tuple), max_size=3)):
        namespace = namespace_address(warehouse, levels)
        properties = draw(st.dictionaries(NAMES.map("properties.{}".format), VALUES, max_size=3))
        found.append(Resource(namespace, {**properties, "managed-access": False, "protected": draw(st.booleans())}))
        table = Address(Kind.TABLE, draw(NAMES), namespace)
        column = Address(Kind.COLUMN, draw(NAMES), table)
        found += (Resource(table, {"protected": draw(st.booleans())}), Resource(column))
        found += draw(grants(namespace, roles))
        found += [each for each in draw(grants(column, roles)) if each.address.name.startswith("select ")]
    found += draw(grants(project, roles))
    return State({each.address: each for each in found}, _scopes(found))


def _scopes(found: list[Resource]) -> frozenset[Any]:
    kinds = {Kind.PROJECT: (Kind.ROLE, Kind.WAREHOUSE), Kind.ROLE: (Kind.MEMBER,), Kind.WAREHOUSE: (Kind.NAMESPACE,)}
    of_kinds = {(kind, each.address) for each in found for kind in kinds.get(each.address.kind, ())}
    grantable = [each for each in found if each.address.kind not in (Kind.GRANT, Kind.MEMBER)]
    return frozenset({*of_kinds, *((Kind.GRANT, each.address) for each in grantable)})


@given(state=projects())
def test_an_exported_file_has_no_changes(state: State) -> None:
    text = yaml.safe_dump(document_of(state), sort_keys=False, allow_unicode=True)
    desired = desired_state(read_all({"file.yaml": text}), now=NOW)
    assert plan(desired, state, prune=True, prune_containers=True) == Plan()
    for address, resource in state.resources.items():
        if address.kind in (Kind.TABLE, Kind.COLUMN):
            continue
        stated = {name: value for name, value in resource.fields.items() if not _is_default(name, value)}
        assert stated.items() <= desired.resources[address].fields.items()


def _is_default(name: str, value: Any) -> bool:
    """Return whether the file leaves a field out: it has the value of a new object, or the server sets it."""
    values = (None, False, {"type": "hard"}, [1, 2, 3], "self-managed")
    return value in values or name in ("credential", "provider-id", "source-id")

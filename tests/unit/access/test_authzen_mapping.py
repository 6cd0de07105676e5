# SPDX-License-Identifier: Apache-2.0
"""The mapping of AuthZEN types, actions and ids: every id that a search returns is read back as the same object."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.authzen_mapping import (
    MAPPED_TYPES,
    AuthZenMapping,
    InvalidMapping,
    MappedType,
    mapped_type,
    own_type,
)
from gateway.access.nouns.cards import ACTIONS
from gateway.access.nouns.refs import NamespaceIdRef, NamespaceRef, ObjectType, Table, TabularRef, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.tuples import Principal, PrincipalType
from gateway.assembly.authzen import authzen_mapping
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.settings import SettingsError, load
from gateway.settings.authzen import AuthZen, MappedResources

WAREHOUSE = UUID(int=7)
_OUTSIDE = {ObjectType.SERVER, ObjectType.PROJECT, ObjectType.ROLE, ObjectType.TAG, ObjectType.DATA_POLICY}
_NAMES = st.text(min_size=1, max_size=30).filter(str.isprintable)
_PRINCIPALS = st.one_of(
    st.builds(lambda id: Principal(PrincipalType.ROLE, str(id)), st.uuids()),
    st.builds(
        lambda provider, subject: Principal(PrincipalType.USER, f"{provider}~{subject}"),
        st.sampled_from(["oidc", "k8s"]),
        _NAMES,
    ),
)
_SUBJECTS = {type.value: type for type in PrincipalType}


@given(st.sampled_from(MAPPED_TYPES), st.uuids())
def test_ids_of_rows_are_read_back(type: ObjectType, id: UUID) -> None:
    mapped, warehouse = own_type(type), None if type in _OUTSIDE else WAREHOUSE
    row_id = "server" if type is ObjectType.SERVER else str(WAREHOUSE if type is ObjectType.WAREHOUSE else id)
    assert mapped.reference(mapped.id_of(row_id, warehouse, "name")) == mapped.reference_of(row_id, warehouse)


@given(_PRINCIPALS, st.sampled_from([None, "oidc"]))
def test_ids_of_principals_are_read_back(principal: Principal, provider: str | None) -> None:
    mapping = AuthZenMapping({}, _SUBJECTS, provider)
    assert mapping.principal(principal.type.value, mapping.subject_id(principal)) == principal


@given(_NAMES, st.lists(_NAMES, min_size=1, max_size=3))
def test_names_are_percent_encoded_parts(name: str, levels: list[str]) -> None:
    id = "/".join(quote(part, safe="") for part in (str(WAREHOUSE), *levels, name))
    expected = TabularRef(Table, WAREHOUSE, TableIdentifier(Namespace(tuple(levels)), name))
    assert own_type(ObjectType.TABLE).reference(id) in (expected, None)


@given(st.sampled_from(MAPPED_TYPES), st.text(max_size=60))
def test_no_text_is_an_error(type: ObjectType, text: str) -> None:
    for id in (text, f"{WAREHOUSE}/{text}"):
        found = own_type(type).reference(id)
        assert found is None or found.type is type
    for kind in PrincipalType:
        AuthZenMapping({}, _SUBJECTS, "oidc").principal(kind.value, text)


def test_forms_of_ids() -> None:
    id, namespace, table = UUID(int=9), own_type(ObjectType.NAMESPACE), own_type(ObjectType.TABLE)
    assert own_type(ObjectType.WAREHOUSE).reference(str(WAREHOUSE)) == WarehouseRef(WAREHOUSE)
    assert namespace.reference(f"{WAREHOUSE}/{id}") == NamespaceIdRef(id, WAREHOUSE)
    assert namespace.reference(f"{WAREHOUSE}/a/b%2Fc") == NamespaceRef(WAREHOUSE, Namespace(("a", "b/c")))
    assert table.reference(f"{WAREHOUSE}/{id}") == TabularRef(Table, WAREHOUSE, id)
    for wrong in (str(WAREHOUSE), f"{WAREHOUSE}/", f"{WAREHOUSE}/name", f"x/{id}", f"{WAREHOUSE}//name", "a\x00b"):
        assert table.reference(wrong) is None, wrong


def test_own_names_have_every_action_but_reading_columns() -> None:
    for type in MAPPED_TYPES:
        assert set(own_type(type).actions.values()) == ACTIONS[type] - {Can.READ_COLUMNS}
    assert set(MAPPED_TYPES) == set(ObjectType) - {ObjectType.COLUMN, ObjectType.USER}


def test_settings_map_names() -> None:
    within = f"{WAREHOUSE}/sales"
    environment = {
        "LAKEGATE__AUTHZEN__TYPES__RECORD__TYPE": "table",
        "LAKEGATE__AUTHZEN__TYPES__RECORD__NAME": "urn:Record",
        "LAKEGATE__AUTHZEN__TYPES__RECORD__WITHIN": within,
        "LAKEGATE__AUTHZEN__TYPES__RECORD__ACTIONS": "read=read_data,write=commit",
        "LAKEGATE__AUTHZEN__TYPES__TABLE__TYPE": "view",
        "LAKEGATE__AUTHZEN__SUBJECTS": "identity=user",
        "LAKEGATE__AUTHZEN__PROVIDER": "oidc",
    }
    required = {"LAKEGATE__PG_DATABASE_URL_WRITE": "postgresql://localhost/x"}
    mapping = authzen_mapping(load({**required, **environment}).authzen)
    record = mapping.types["urn:Record"]
    assert record.actions == {"read": Can.READ_DATA, "write": Can.COMMIT}
    expected = TabularRef(Table, WAREHOUSE, TableIdentifier(Namespace(("sales",)), "record-1"))
    assert record.reference("record-1") == expected
    assert record.id_of(str(UUID(int=1)), WAREHOUSE, "record-1") == "record-1"
    assert mapping.types["table"].type is ObjectType.VIEW, "an entry replaces the type of its name"
    assert mapping.principal("identity", "alice") == Principal(PrincipalType.USER, "oidc~alice")
    assert mapping.principal("ghost", "alice") is None
    only = authzen_mapping(AuthZen(own_names=False))
    assert (only.types, only.subjects) == ({}, {})


@pytest.mark.parametrize(
    ("type", "actions", "within"),
    [
        ("column", (), None),
        ("spaceship", (), None),
        ("table", ("read=fly",), None),
        ("table", ("read=read_columns",), None),
        ("role", (), f"{WAREHOUSE}/sales"),
        ("table", (), "sales"),
        ("table", (), str(WAREHOUSE)),
        ("table", (), f"{WAREHOUSE}/"),
    ],
)
def test_a_mapping_that_means_nothing_is_refused_at_the_start(
    type: str, actions: tuple[str, ...], within: str | None
) -> None:
    with pytest.raises(InvalidMapping, match="record"):
        mapped_type("record", type, actions, within)
    entry = MappedResources(type=type, actions=actions, within=within)
    with pytest.raises(SettingsError, match="LAKEGATE__AUTHZEN__TYPES: record"):
        authzen_mapping(AuthZen(types={"record": entry}))


def test_resources_within_a_namespace_keep_to_it() -> None:
    inside = MappedType("record", ObjectType.TABLE, {}, NamespaceRef(WAREHOUSE, Namespace(("sales",))))
    found = inside.reference(f"{UUID(int=8)}/other/secret")
    assert isinstance(found, TabularRef)
    assert found.warehouse_id == WAREHOUSE
    assert found.identifier.namespace.levels == ("sales",)

# SPDX-License-Identifier: Apache-2.0
"""Files of `lakegate apply`: what is accepted, and errors with line, path, allowed values and a suggestion."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.apply.document import schema
from gateway.apply.kinds import KINDS, desired_state, read_all
from gateway.apply.planner import plan, plan_lines
from gateway.apply.profiles import SecretMissing, read_credential
from gateway.apply.source import InvalidSource
from gateway.apply.state import Address, Kind, State
from tests.support.apply_documents import NOW
from tests.support.docs_commands import block

ROOT = Path(__file__).parents[3]
PROJECT = Address(Kind.PROJECT, "Shop")

_S3 = "storage: {type: s3, bucket: lake, region: eu, sts-enabled: false, %s}"


def _desired(*texts: str, rotate: bool = False) -> State:
    files = {f"file{place}.yaml": text for place, text in enumerate(texts)}
    return desired_state(read_all(files), now=NOW, rotate=rotate)


def _warehouse(fields: str) -> str:
    return f"projects:\n- name: Shop\n  warehouses:\n  - name: main\n    {fields}\n"


def _project(fields: str) -> str:
    return f"projects:\n- name: Shop\n  {fields}\n"


def test_the_documented_example_for_the_embedded_stack_names_its_warehouse() -> None:
    """Its warehouse exists, so the example has neither a storage nor a credential."""
    state = _desired(block("docs/apply.md", "oidc~carol").text)
    [warehouse] = state.of_kind(Kind.WAREHOUSE)
    assert warehouse.address.name == "demo"
    assert len(list(state.of_kind(Kind.ROLE))) == len(list(state.of_kind(Kind.NAMESPACE))) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "projects:\n- name: Shop\n  rolse: []",
            "line 3: projects[0].rolse: this key is unknown. Did you mean 'roles'",
        ),
        (_warehouse("protectd: true"), "line 5: projects[0].warehouses[0].protectd: this key is unknown."),
        (_warehouse(_S3 % "buket: x"), "line 5: projects[0].warehouses[0].storage: Invalid storage profile"),
        (_warehouse("protected: maybe"), "line 5: projects[0].warehouses[0].protected: Expected `bool"),
        (_warehouse("name: other"), "line 5: projects[0].warehouses[0].name: this key is given twice"),
        (_warehouse("default-format-version: 2"), "default-format-version: this field needs allowed-format-versions"),
        (_warehouse("credential: {secret-access-key: abc}"), "secrets do not belong into this file"),
        (_warehouse("credential: {secret-access-key: {}}"), "give exactly one of env and file"),
        (_warehouse("id: main"), "warehouses[0].id: 'main' is not a UUID"),
        (
            _warehouse("grants:\n    - {privilege: selct, user: oidc~ann}"),
            "line 6: projects[0].warehouses[0].grants[0].privilege: 'selct' cannot be granted here. Did you mean "
            "'select'? Allowed: ownership,",
        ),
        (_warehouse("grants: [{privilege: select}]"), "grants[0]: give exactly one of user and role"),
        (
            _warehouse("grants: [{privilege: select, user: ann}]"),
            "grants[0].user: Expected a user id `<provider>~<subject>`",
        ),
        (
            _warehouse("grants: [{privilege: select, user: oidc~a, expires-at: 2027-01-01T00:00:00}]"),
            "expires-at: Expected `datetime` with a timezone component",
        ),
        (
            _warehouse("grants: [{privilege: select, user: oidc~a}, {privilege: select, user: oidc~a}]"),
            "grants[1]: grant select on warehouse Shop/main to user oidc~a is stated twice",
        ),
        ("server: {grants: [{privilege: admin, role: leads}]}", "a role on the server is given by its UUID"),
        ("projects: [{name: a, roles: [{name: b, grants: [{privilege: assignee, user: oidc~a}]}]}]", "`members`"),
        (
            "projects: [{name: a, roles: [{name: b, provider-id: entra, members: [{user: oidc~a}]}]}]",
            "roles[0].members: the provider entra manages the members of this role",
        ),
        (_project("tag-definitions: [{name: a, value-kind: marker}, {name: A}]"), "tag Shop/a is stated twice"),
        (
            _project("tag-definitions: [{name: a, value-kind: number}]"),
            "tag-definitions[0].value-kind: Invalid value 'number', which must be one of: ",
        ),
        (_project("mapping-tables: [{name: a, entries: [{values: [x]}]}]"), "entries[0]: give exactly one of user and"),
        (_project("data-policies: [{name: a, bindings: [{}]}]"), "bindings[0]: give either `tag`, or `warehouse`"),
        (
            _project("data-policies: [{name: a, bindings: [{tag: b, warehouse: c}]}]"),
            "bindings[0]: give either `tag`, or `warehouse`",
        ),
        (
            _project("data-policies: [{name: a, bindings: [{warehouse: c, table: d}]}]"),
            "bindings[0]: a table needs `namespace` too",
        ),
        (
            _project("data-policies: [{name: a, grants: [{privilege: exemt, user: oidc~a}]}]"),
            "'exemt' cannot be granted here. Did you mean 'exempt'",
        ),
        (
            _project("data-policies: [{name: a, definition: {kind: mask, action: show-all}}]"),
            "definition.action: Invalid value 'show-all', which must be one of: ",
        ),
        (
            _project("data-policies: [{name: a, definition: {kind: mask, action: mask-alphanum, colums: []}}]"),
            "definition.colums: this key is unknown",
        ),
        (
            _project(
                "data-policies:\n  - name: a\n    definition:\n      kind: row-filter\n      test:\n"
                "        type: not\n        operand: {type: has-role, role: leads}"
            ),
            "line 9: projects[0].data-policies[0].definition.test.operand: `not` must not contain `has-role`",
        ),
        ("projects: [\n", "line 2: the file is not valid YAML"),
        ("a: &a [*a]", "an alias refers to a value that contains it"),
        ("projects: !!python/object:os.system x", "not valid YAML: could not determine a constructor"),
        ("version: 2", "version: Invalid value 2, which must be one of: 1"),
        (f"version: {'1' * 5000}", "line 1: version: this value does not have the form of its type"),
        ("version: !!timestamp 2020-99-99", "line 1: version: this value does not have the form of its type"),
        ("version: 1\n? [a, b]\n: 1", "line 2: a key must be a text"),
        ("[" * 5000, "nested too deeply"),
        ("- a", "file0.yaml, line 1: Expected `object`, got `array`"),
    ],
)
def test_an_invalid_file_is_refused_with_place_and_remedy(text: str, message: str) -> None:
    with pytest.raises(InvalidSource) as refused:
        _desired(text)
    assert message in str(refused.value)


def test_nested_aliases_cannot_exhaust_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InvalidSource, match="more than 500,000 values"):
        _desired("\n".join(lines))


def test_an_unstated_field_or_list_is_not_declared_and_an_empty_list_is() -> None:
    open_, closed = _desired("projects: [{name: Shop}]"), _desired("projects: [{name: Shop, grants: [], roles: []}]")
    assert open_.scopes == frozenset()
    assert closed.scopes == {(Kind.GRANT, PROJECT), (Kind.ROLE, PROJECT)}
    assert open_.resources[PROJECT].fields == {"name": "Shop"}


def test_two_files_may_divide_a_project_and_may_not_describe_one_object_differently() -> None:
    first, second = _warehouse("protected: true"), "projects: [{name: Shop, roles: [{name: leads}]}]"
    assert len(_desired(first, second).resources) == 3
    with pytest.raises(InvalidSource, match="file1.yaml, line 1: warehouse Shop/main is described in another file"):
        _desired(first, _warehouse("protected: false"))


def test_an_expired_grant_of_the_file_is_not_desired() -> None:
    """The gateway would refuse to grant it, so each run after its expiry would fail."""
    text = _warehouse("grants: [{privilege: select, user: oidc~a, expires-at: '2025-12-31T23:59:59Z'}]")
    assert not _desired(text).of_kind(Kind.GRANT)


def test_equal_profiles_in_different_forms_do_not_differ() -> None:
    """Aliases and defaults are resolved as in the gateway; otherwise each plan would have a change."""
    [one] = _desired(_warehouse(_S3 % "key-prefix: a/")).of_kind(Kind.WAREHOUSE)
    [other] = _desired(_warehouse(_S3 % "key-prefix: a, path-style-access: false")).of_kind(Kind.WAREHOUSE)
    assert one.fields == other.fields


def test_secrets_are_compared_by_their_kind_only_and_rotation_always_differs() -> None:
    text = _warehouse("credential: {type: s3, credential-type: access-key, secret-access-key: {env: LAKEGATE_APPLY_A}}")
    [kept] = _desired(text).of_kind(Kind.WAREHOUSE)
    [rotated] = _desired(text, rotate=True).of_kind(Kind.WAREHOUSE)
    assert kept.fields["credential"] == "s3/access-key"
    assert rotated.fields["credential"] == "s3/access-key (new secrets)"


def _credential(reference: str, field: str = "secret-access-key") -> Any:
    text = f"credential: {{type: s3, credential-type: access-key, {field}: {reference}}}"
    [found] = _desired(_warehouse(text)).of_kind(Kind.WAREHOUSE)
    return found.spec.credential


def test_secrets_are_read_from_variables_and_files_of_one_directory(tmp_path: Path) -> None:
    variables: dict[str, str] = {}

    def read(reference: str, secrets: Path | None = tmp_path) -> str:
        return read_credential(_credential(reference), secrets=secrets, variables=variables.get)["secret-access-key"]

    with pytest.raises(SecretMissing, match="LAKEGATE_APPLY_KEY is not set"):
        read("{env: LAKEGATE_APPLY_KEY}")
    variables["LAKEGATE_APPLY_KEY"] = "a"
    assert read("{env: LAKEGATE_APPLY_KEY}") == "a"
    with pytest.raises(SecretMissing, match="needs --secrets-dir"):
        read("{file: key}", None)
    with pytest.raises(SecretMissing, match="cannot be read: No such file"):
        read("{file: key}")
    (tmp_path / "key").write_text("b\n")
    assert read("{file: key}") == "b"
    # As Kubernetes mounts a secret: links inside of the directory.
    (tmp_path / "..data").symlink_to(tmp_path)
    (tmp_path / "mounted").symlink_to("..data/key")
    assert read("{file: mounted}") == "b"


@pytest.mark.threat("LG-DIS-21")
@pytest.mark.parametrize(
    ("reference", "field", "fault"),
    [
        ("{env: HOME}", "secret-access-key", "rename it to LAKEGATE_APPLY_HOME"),
        ("{env: LAKEGATE_TOKEN}", "secret-access-key", "cannot be read"),
        ("{env: lakegate_apply_a}", "secret-access-key", "cannot be read"),
        ("{file: /etc/passwd}", "secret-access-key", "relative to the directory of --secrets-dir"),
        ("{file: ../key}", "secret-access-key", "without `..`"),
        ("{file: a/../../key}", "secret-access-key", "without `..`"),
        ("{env: LAKEGATE_APPLY_A}", "access-key-id", "access-key-id is no secret"),
        ("{env: LAKEGATE_APPLY_A}", "external-id", "external-id is no secret"),
        ("{file: key}", "credential-type", "credential-type is no secret"),
        ("{env: LAKEGATE_APPLY_A, file: a}", "secret-access-key", "exactly one"),
    ],
)
def test_a_file_cannot_name_other_variables_and_files_of_the_machine(reference: str, field: str, fault: str) -> None:
    text = f"credential: {{type: s3, {field}: {reference}}}"
    with pytest.raises(InvalidSource, match=re.escape(fault)):
        _desired(_warehouse(text))


@pytest.mark.threat("LG-DIS-21")
def test_a_link_cannot_lead_out_of_the_directory(tmp_path: Path) -> None:
    secrets, outside = tmp_path / "secrets", tmp_path / "outside"
    secrets.mkdir()
    outside.mkdir()
    (outside / "key").write_text("other")
    (secrets / "key").symlink_to(outside / "key")
    (secrets / "folder").symlink_to(outside)
    for reference in ("{file: key}", "{file: folder/key}"):
        with pytest.raises(SecretMissing, match="is a link to a place outside of"):
            read_credential(_credential(reference), secrets=secrets, variables=lambda name: None)


@pytest.mark.parametrize(
    ("reference", "place"),
    [("{env: LAKEGATE_APPLY_A}", "variable LAKEGATE_APPLY_A"), ("{file: a/b}", "file a/b of --secrets-dir")],
)
def test_the_plan_names_each_reference_that_it_will_read(reference: str, place: str) -> None:
    desired = _desired(
        _warehouse(f"credential: {{type: s3, credential-type: access-key, secret-access-key: {reference}}}")
    )
    planned = plan(desired, State({}), prune=False, prune_containers=False)
    assert f"    credential.secret-access-key: read from the {place}" in plan_lines(planned, prune=False)


def test_the_published_schema_is_the_one_of_the_form() -> None:
    """Editors use the file. Regenerate it with `lakegate apply-schema > docs/apply.schema.json`."""
    assert json.loads((ROOT / "docs/apply.schema.json").read_text()) == json.loads(json.dumps(schema()))


def test_each_kind_of_the_order_has_one_declaration() -> None:
    """A name is only the object of a binding."""
    assert set(KINDS) == set(Kind) - {Kind.NAME}
    assert all(noun.kind is kind for kind, noun in KINDS.items())

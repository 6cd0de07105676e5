# SPDX-License-Identifier: Apache-2.0
"""The relationship model: its tests, and the rules of its README checked on the compiled model."""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path

import pytest

from gateway.access.nouns.relations import Can
from gateway.fga.compile import ACTIONS_FILE, MODEL_FILE, compile_model, fga_command
from gateway.fga.compiled import (
    actions_of,
    compiled_model,
    content_hash,
    grantable_of,
    model_version,
    relations_of,
    same_model,
)
from gateway.fga.model_rules import (
    HEIGHT,
    Model,
    assignable_actions,
    downward_steps,
    downward_subjects,
    stray_wildcards,
    subjects,
)

GRANTABLE_SUBJECTS = [
    {"type": "user"},
    {"type": "user", "condition": "unexpired"},
    {"type": "role", "relation": "assignee"},
    {"type": "role", "relation": "assignee", "condition": "unexpired"},
]


#: Privileges that are meant to bind the owners and grant managers of the object.
BINDING = ("delegate", "enforcer", "inspector", "manage_tags", "approve_changes", "auditor", "break_glass")


@pytest.fixture(scope="module")
def model() -> Model:
    return compiled_model()


def test_the_model_tests_pass(fga_model: Path) -> None:
    files = sorted((fga_model / "tests").glob("*.fga.yaml"))
    assert {file.name.split(".")[0] for file in files} == {*HEIGHT, "golden"}, "each type must have a file of tests"
    done = subprocess.run(
        [fga_command(), "model", "test", "--allow-external-files", "--tests", str(fga_model / "tests" / "*.fga.yaml")],
        capture_output=True,
        text=True,
        timeout=420,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Checks " in done.stderr


def test_a_wrong_expectation_in_the_model_tests_fails(fga_model: Path, tmp_path: Path) -> None:
    text = (fga_model / "tests" / "server.fga.yaml").read_text(encoding="utf-8")
    wrong = text.replace("can_grant_admin: true", "can_grant_admin: false", 1).replace("../", f"{fga_model}/")
    (tmp_path / "server.fga.yaml").write_text(wrong.replace("./tuples", f"{fga_model}/tests/tuples"), encoding="utf-8")
    done = subprocess.run(
        [fga_command(), "model", "test", "--allow-external-files", "--tests", str(tmp_path / "server.fga.yaml")],
        capture_output=True,
        text=True,
        timeout=420,
        check=False,
    )
    assert done.returncode != 0
    assert "expected=false, got=true" in done.stdout + done.stderr


def test_the_model_tests_assert_every_action_as_allowed_and_denied(fga_model: Path, model: Model) -> None:
    for type_name, actions in actions_of(model).items():
        text = (fga_model / "tests" / f"{type_name}.fga.yaml").read_text(encoding="utf-8")
        for action in actions:
            assert f"{action}: true" in text, f"no test asserts that a user has {type_name}#{action}"
            assert f"{action}: false" in text, f"no test asserts that a user lacks {type_name}#{action}"


def test_the_committed_model_and_actions_equal_the_compiled_source() -> None:
    compiled, actions = compile_model()
    assert MODEL_FILE.read_text(encoding="utf-8") == compiled, "run `make model`"
    assert ACTIONS_FILE.read_text(encoding="utf-8") == actions, "run `make model`"


def test_no_relation_is_inherited_from_a_descendant(model: Model) -> None:
    assert downward_steps(model) == []


def test_a_relation_inherited_from_a_descendant_is_detected(model: Model) -> None:
    down = {
        "type": "warehouse",
        "relations": {
            "child": {"this": {}},
            "can_see": {"tupleToUserset": {"tupleset": {"relation": "child"}, "computedUserset": {"relation": "x"}}},
        },
        "metadata": {"relations": {"child": {"directly_related_user_types": [{"type": "namespace"}]}}},
    }
    assert [str(fault) for fault in downward_steps({"type_definitions": [down]})] == [
        "warehouse#can_see goes down by child to {'type': 'namespace'}"
    ]


def test_no_relation_is_assignable_to_a_userset_of_a_descendant(model: Model) -> None:
    assert downward_subjects(model) == []


def test_a_relation_assignable_to_a_userset_of_a_descendant_is_detected() -> None:
    sees = [{"type": "user"}, {"type": "role", "relation": "assignee"}, {"type": "table", "relation": "describes"}]
    below = {
        "type": "warehouse",
        "relations": {"sees": {"this": {}}},
        "metadata": {"relations": {"sees": {"directly_related_user_types": sees}}},
    }
    faults = downward_subjects({"type_definitions": [below]})
    assert [str(fault) for fault in faults] == ["warehouse#sees takes table#describes"]


def test_only_managed_access_allows_a_wildcard_subject(model: Model) -> None:
    assert stray_wildcards(model) == []
    for type_name in ("warehouse", "namespace"):
        assert subjects(model, type_name, "managed_access") == [
            {"type": "user", "wildcard": {}},
            {"type": "role", "wildcard": {}},
        ]


def test_a_wildcard_on_a_privilege_is_detected() -> None:
    principals = {
        "type": "table",
        "relations": {"select": {"this": {}}},
        "metadata": {"relations": {"select": {"directly_related_user_types": [{"type": "user", "wildcard": {}}]}}},
    }
    faults = stray_wildcards({"type_definitions": [principals]})
    assert [(fault.type, fault.relation) for fault in faults] == [("table", "select")]


def test_every_grantable_relation_takes_users_and_roles_with_and_without_expiry(model: Model) -> None:
    # Membership of a role in a role has no expiry (fga_model/VERSIONS.md, "What the model costs").
    in_roles = [subject for subject in GRANTABLE_SUBJECTS if subject != GRANTABLE_SUBJECTS[-1]]
    for type_name, relations in grantable_of(model).items():
        expected = in_roles if type_name == "role" else GRANTABLE_SUBJECTS
        for relation in [*relations, *({"traverse", "read_columns"} & relations_of(model)[type_name])]:
            found = subjects(model, type_name, relation)
            assert sorted(str(sorted(each.items())) for each in found) == sorted(
                str(sorted(each.items())) for each in expected
            ), f"{type_name}#{relation}"


def test_no_grantable_relation_is_also_computed(model: Model) -> None:
    computed = [
        f"{each['type']}#{relation}"
        for each in model["type_definitions"]
        for relation, definition in (each.get("relations") or {}).items()
        if subjects(model, each["type"], relation) and definition != {"this": {}}
    ]
    # If a noun were computed, a verb that names several nouns would traverse the hierarchy once for each.
    assert computed == ["role#assignee"]


def test_no_action_is_assignable(model: Model) -> None:
    assert assignable_actions(model) == []


def test_each_grantable_relation_has_its_own_grant_permission(model: Model) -> None:
    for type_name, relations in grantable_of(model).items():
        # The right to grant on a column is decided on its table.
        actions = actions_of(model)["table" if type_name == "column" else type_name]
        if type_name == "column":
            assert {f"can_grant_{relation}" for relation in relations} <= actions
            continue
        for relation in relations:
            right = "can_change_ownership" if relation == "ownership" else f"can_grant_{relation}"
            assert right in actions, f"{type_name}#{relation}"
        granted_privileges = {
            action.removeprefix("can_grant_") for action in actions if action.startswith("can_grant_")
        }
        assert granted_privileges <= relations, type_name


def test_grantable_relations_equal_those_of_the_reference_model(model: Model) -> None:
    below = {
        "ownership", "pass_grants", "manage_grants", "manage_tags", "approve_changes", "describe", "select", "create",
        "modify",
    }  # fmt: skip
    on_projects = {
        "project_admin", "security_admin", "data_admin", "role_creator", "tag_creator", "approve_changes", "auditor",
    }  # fmt: skip
    taken = {"break_glass", "requester"}
    assert grantable_of(model) == {
        "server": {"admin", "operator", "provisioner", "policy_reader", "auditor"},
        "project": on_projects | {"describe", "select", "create", "modify", "delegate", "enforcer", "inspector"},
        "warehouse": below | {"delegate", "enforcer", "inspector", "manage_storage", "auditor", *taken},
        "namespace": below | {"enforcer", *taken},
        "table": below - {"create"} | {"enforcer"},
        "column": {"select"},
        "view": below - {"create"},
        "generic_table": below - {"create"},
        "role": {"assignee", "ownership"},
        "tag": {"ownership", "apply", "remove", "requester"},
        "data_policy": {"ownership", "subject", "exempt"},
    }


#: The actions of access checks in Lakekeeper, by type.
PUBLISHED = {
    "server": "create_project update_users delete_users list_users provision_users read_grants",
    "project": "create_warehouse delete rename get_metadata list_warehouses include_in_list create_role list_roles "
    "search_roles get_endpoint_statistics modify_task_queue_config get_task_queue_config get_project_tasks "
    "control_project_tasks create_tag list_tags read_grants",
    "warehouse": "create_namespace delete update_storage get_metadata get_config list_namespaces list_everything use "
    "include_in_list deactivate activate rename list_deleted_tabulars modify_soft_deletion get_task_queue_config "
    "modify_task_queue_config get_all_tasks control_all_tasks set_protection set_format_version_policy "
    "get_endpoint_statistics manage_tags accept_moved_namespace read_grants",
    "namespace": "create_table create_view create_generic_table create_namespace delete update_properties get_metadata "
    "list_tables list_views list_generic_tables list_namespaces list_everything set_protection include_in_list "
    "manage_tags move accept_moved_namespace read_grants",
    "table": "drop write_data read_data get_metadata commit rename include_in_list undrop get_tasks control_tasks "
    "set_protection manage_tags read_grants",
    "view": "drop get_metadata commit rename include_in_list undrop get_tasks control_tasks set_protection manage_tags "
    "read_grants select",
    "generic_table": "drop write_data read_data get_metadata rename include_in_list undrop get_tasks control_tasks "
    "set_protection manage_tags read_grants",
    "role": "read read_metadata delete update manage_role_assignments read_role_assignments update_source_system",
    "tag": "read update delete apply remove read_attachments read_grants",
}


def test_every_checkable_action_is_in_the_model(model: Model) -> None:
    """Actions on users are relations of the server (`fga_model/user.fga`)."""
    for type_name, actions in PUBLISHED.items():
        requested = {f"can_{action}" for action in actions.split()}
        assert requested <= actions_of(model)[type_name], (type_name, requested - actions_of(model)[type_name])


def test_every_demanded_relation_exists_in_the_model(model: Model) -> None:
    everywhere = frozenset().union(*actions_of(model).values())
    assert {relation.value for relation in Can} <= everywhere


def test_model_equality_ignores_order_and_source_metadata(model: Model) -> None:
    shuffled = {
        "id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "schema_version": model["schema_version"],
        "conditions": model["conditions"],
        "type_definitions": [
            {**each, "metadata": {**(each.get("metadata") or {}), "module": "m", "source_info": {"file": "f"}}}
            for each in reversed(model["type_definitions"])
        ],
    }
    assert same_model(model, shuffled)


@pytest.mark.parametrize("change", ["relation", "subject", "operator", "direct", "condition", "schema"])
def test_models_with_a_relevant_difference_are_not_equal(change: str) -> None:
    changed = compiled_model()
    table = next(each for each in changed["type_definitions"] if each["type"] == "table")
    if change == "relation":
        table["relations"]["can_drop"] = {"computedUserset": {"relation": "select"}}
    elif change == "subject":
        table["metadata"]["relations"]["select"]["directly_related_user_types"].append({"type": "user", "wildcard": {}})
    elif change == "operator":
        table["relations"]["can_grant_select"]["union"]["child"].reverse()
        table["relations"]["can_grant_select"] = {"intersection": table["relations"]["can_grant_select"]["union"]}
    elif change == "direct":
        role = next(each for each in changed["type_definitions"] if each["type"] == "role")
        role["relations"]["assignee"]["union"]["child"].remove({"this": {}})
    elif change == "condition":
        changed["conditions"]["unexpired"]["expression"] = "current_time <= expires_at"
    else:
        changed["schema_version"] = "1.1"
    assert not same_model(compiled_model(), changed)
    assert not same_model(changed, compiled_model())


def test_the_last_recorded_version_is_the_compiled_model(fga_model: Path, model: Model) -> None:
    rows = [line for line in (fga_model / "VERSIONS.md").read_text(encoding="utf-8").splitlines() if line[:3] == "| 1"]
    version, _, _, hashed = (cell.strip() for cell in rows[-1].strip("|").split("|"))
    assert version == model_version()
    assert hashed == f"`{content_hash(model)[:12]}`", "a changed model is a new version: add a row to VERSIONS.md"


def test_version_1_7_only_adds_to_version_1_6(fga_model: Path, model: Model) -> None:
    """An installation loses no right by the upgrade, and no principal gets one without a new grant.

    Without the additions the model has the recorded hash of version 1.6.
    """
    added = {"approve_changes", "approves", "can_approve_changes", "can_grant_approve_changes", "can_read_events"}
    later = {"policy_reader", "can_read_policies", "can_grant_policy_reader"}
    former = _without(_before_1_9(model), added | {"can_manage_events"} | later)
    for type_definition in former["type_definitions"]:
        arms = ((type_definition.get("relations") or {}).get("describes") or {}).get("union", {}).get("child", [])
        arms[:] = [arm for arm in arms if arm != {"computedUserset": {"relation": "approve_changes"}}]
    assert _recorded(fga_model, "1.6") == f"`{content_hash(former)[:12]}`"


def test_version_1_8_only_adds_to_version_1_7(fga_model: Path, model: Model) -> None:
    """Without the additions the model has the recorded hash of version 1.7."""
    former = _without(_before_1_9(model), {"policy_reader", "can_read_policies", "can_grant_policy_reader"})
    assert _recorded(fga_model, "1.7") == f"`{content_hash(former)[:12]}`"


def test_version_1_9_only_adds_to_version_1_8(fga_model: Path, model: Model) -> None:
    """Without the additions the model has the recorded hash of version 1.8."""
    assert _recorded(fga_model, "1.8") == f"`{content_hash(_before_1_9(model))[:12]}`"


def _before_1_9(model: Model) -> Model:
    """Return the model without data policies, and without enforcers of namespaces and tables."""
    model = _before_1_10(model)
    on_projects = {"can_create_data_policy", "can_list_data_policies", "can_manage_mapping_tables"}
    former = _without(model, on_projects | {"can_bind_data_policy"})
    kept = [each for each in former["type_definitions"] if each["type"] != "data_policy"]
    lower = [each for each in kept if each["type"] in ("namespace", "table")]
    trimmed = _without({"type_definitions": lower}, {"enforcer", "can_enforce", "can_grant_enforcer"})
    rest = [each for each in kept if each["type"] not in ("namespace", "table")]
    return {**former, "type_definitions": rest + list(trimmed["type_definitions"])}


def _before_1_10(model: Model) -> Model:
    """Return the model in which grant managers hand out what is meant to bind owners, and `apply` detaches tags."""
    former = _without(_before_1_11(model), {"secures", "remove", "removes", "can_grant_remove"})
    types = {each["type"]: each.get("relations", {}) for each in former["type_definitions"]}
    types["project"]["secures"] = next(
        each["relations"]["secures"] for each in model["type_definitions"] if each["type"] == "project"
    )
    manages, from_project = _computed("manages_grants"), _from("project", "secures")
    for name in ("warehouse", "namespace", "table", "view", "generic_table"):
        relations = types[name]
        for privilege in (*BINDING, "manage_storage"):
            if f"can_grant_{privilege}" in relations:
                relations[f"can_grant_{privilege}"] = from_project if privilege == "manage_storage" else manages
        relations["can_approve_changes"] = _union(_computed("approves"), manages)
    for name in ("namespace", "table"):
        arms = [manages, _from("parent", "can_grant_enforcer")]
        types[name]["can_grant_enforcer"] = {"intersection": {"child": arms}}
    types["warehouse"]["manages_grants"] = _union(_computed("manage_grants"), _computed("ownership"), from_project)
    types["warehouse"]["manages_tags"] = _union(_computed("manage_tags"), from_project)
    types["tag"]["can_remove"] = _computed("applies")
    types["tag"]["can_read"] = _union(_computed("applies"), _from("project", "can_list_tags"))
    return former


def _before_1_14(model: Model) -> Model:
    """Return the model without the right to read the audit log."""
    return _without(model, {"can_read_audit"})


def _before_1_13(model: Model) -> Model:
    """Return the model without requesters."""
    model = _before_1_14(model)
    return _without(model, {"requester", "requests", "can_request_access", "can_grant_requester"})


def _before_1_12(model: Model) -> Model:
    """Return the model without break-glass."""
    model = _before_1_13(model)
    actions = {f"can_{each}_break_glass" for each in ("confirm", "review", "grant")}
    return _without(model, {"break_glass", "breaks_glass", "can_break_glass"} | actions)


def _before_1_11(model: Model) -> Model:
    """Return the model without auditors."""
    model = _before_1_12(model)
    added = {"auditor", "audits", "can_grant_auditor", "can_describe_everything", "can_read_change_tickets"}
    former = _without(model, added)
    arms = [_computed("auditor"), _computed("audits"), *(_from(edge, "audits") for edge in ("project", "parent"))]
    for type_definition in former["type_definitions"]:
        relations = type_definition.get("relations") or {}
        for name, definition in relations.items():
            if "union" not in definition:
                continue
            left = [arm for arm in definition["union"]["child"] if arm not in arms]
            relations[name] = left[0] if len(left) == 1 else {"union": {"child": left}}
    return former


def _computed(relation: str) -> dict[str, object]:
    return {"computedUserset": {"relation": relation}}


def _from(parent: str, relation: str) -> dict[str, object]:
    return {"tupleToUserset": {"computedUserset": {"relation": relation}, "tupleset": {"relation": parent}}}


def _union(*arms: dict[str, object]) -> dict[str, object]:
    return {"union": {"child": list(arms)}}


def _without(model: Model, added: set[str]) -> Model:
    """Return a copy of the model without these relations."""
    former = copy.deepcopy(model)
    for type_definition in former["type_definitions"]:
        about = (type_definition.get("metadata") or {}).get("relations") or {}
        for name in added:
            (type_definition.get("relations") or {}).pop(name, None)
            about.pop(name, None)
    return former


def _recorded(fga_model: Path, version: str) -> str:
    """Return the recorded hash of a version."""
    rows = (fga_model / "VERSIONS.md").read_text(encoding="utf-8").splitlines()
    (hashed,) = (row.strip("| ").split("|")[-1].strip() for row in rows if row.startswith(f"| {version} "))
    return hashed


def test_version_1_10_changes_only_what_binds_owners_of_version_1_9(fga_model: Path, model: Model) -> None:
    """With the former rules of these relations the model has the recorded hash of version 1.9."""
    assert _recorded(fga_model, "1.9") == f"`{content_hash(_before_1_10(model))[:12]}`"


def test_version_1_11_only_adds_auditors_to_version_1_10(fga_model: Path, model: Model) -> None:
    """Without the auditors the model has the recorded hash of version 1.10: no other right changes."""
    assert _recorded(fga_model, "1.10") == f"`{content_hash(_before_1_11(model))[:12]}`"


def test_version_1_12_only_adds_break_glass_to_version_1_11(fga_model: Path, model: Model) -> None:
    """Without break-glass the model has the recorded hash of version 1.11."""
    assert _recorded(fga_model, "1.11") == f"`{content_hash(_before_1_12(model))[:12]}`"


def test_version_1_13_only_adds_requesters_to_version_1_12(fga_model: Path, model: Model) -> None:
    """Without requesters the model has the recorded hash of version 1.12."""
    assert _recorded(fga_model, "1.12") == f"`{content_hash(_before_1_13(model))[:12]}`"


def test_version_1_14_only_adds_the_right_to_read_the_audit_log_to_version_1_13(fga_model: Path, model: Model) -> None:
    """Without that right the model has the recorded hash of version 1.13."""
    assert _recorded(fga_model, "1.13") == f"`{content_hash(_before_1_14(model))[:12]}`"


def test_requesting_leads_to_no_action_but_its_own(model: Model) -> None:
    """The privilege gives the action and shows nothing, so it implies no other relation on the same object."""
    found = {
        (each["type"], relation)
        for each in model["type_definitions"]
        for relation, definition in (each.get("relations") or {}).items()
        if "request" in str(definition) and relation != "requests"
    }
    types = ("warehouse", "namespace", "table", "view", "generic_table", "tag")
    assert found == {(type, "can_request_access") for type in types}


def test_break_glass_leads_to_no_action_but_its_own(model: Model) -> None:
    """Each relation that the privilege implies on the same object is in this list."""
    found = {
        (each["type"], relation)
        for each in model["type_definitions"]
        for relation, definition in (each.get("relations") or {}).items()
        if "break" in str(definition) and relation != "breaks_glass"
    }
    types = ("warehouse", "namespace", "table", "view", "generic_table")
    assert found == {(type, f"can_{each}break_glass") for type in types for each in ("", "confirm_")}


def test_auditing_leads_to_no_action_but_reading(model: Model) -> None:
    """Each relation that `audits` implies on the same object is in this list."""
    found = {
        (each["type"], relation)
        for each in model["type_definitions"]
        for relation, definition in (each.get("relations") or {}).items()
        if "audit" in str(definition) and relation not in ("audits", "auditor")
    }
    shown = {"can_get_metadata", "can_list_everything", "can_read_assignments"}
    assert found == {
        *(("server", each) for each in ("can_list_all_projects", "can_list_users", "can_read_assignments")),
        *(("project", each) for each in ("can_get_metadata", "can_list_roles", "can_list_tags")),
        *(("project", each) for each in ("can_list_data_policies", "can_read_assignments")),
        *(("warehouse", each) for each in (*shown, "can_read_change_tickets", "can_review_break_glass")),
        ("project", "can_review_break_glass"),
        *(("namespace", each) for each in shown),
        *((type, "can_include_in_list") for type in ("table", "view", "generic_table")),
        *((type, "can_read_assignments") for type in ("table", "view", "generic_table", "role", "tag", "data_policy")),
        ("tag", "can_read_attachments"),
        ("data_policy", "can_read"),
        ("data_policy", "can_read_affected"),
        *((type, "can_read_audit") for type in ("server", "project", "warehouse")),
    }


def test_no_right_below_the_project_leads_to_handing_out_what_binds_its_holder(model: Model) -> None:
    """Only principals that secure the project grant these privileges, and `secures` follows the hierarchy alone."""
    types = {each["type"]: each.get("relations", {}) for each in model["type_definitions"]}
    for name in ("warehouse", "namespace", "table", "view", "generic_table"):
        held = {each for each in BINDING if f"can_grant_{each}" in types[name]}
        assert held == {each for each in BINDING if each in types[name]}, name
        assert {str(types[name][f"can_grant_{each}"]) for each in held} == {str(_computed("secures"))}, name
        assert types[name]["secures"] == _from("project" if name == "warehouse" else "parent", "secures"), name
        assert types[name]["can_approve_changes"] == _union(_computed("approves"), _computed("secures")), name


def test_principals_that_read_events_before_version_1_7_still_can(model: Model) -> None:
    types = {each["type"]: each.get("relations", {}) for each in model["type_definitions"]}
    server = types["server"]
    assert server["can_read_events"] == server["can_update_users"]
    assert server["can_manage_events"] == server["can_create_project"]


def test_the_hash_of_a_model_depends_only_on_its_content(model: Model) -> None:
    types = model["type_definitions"]
    assert content_hash({**model, "id": "01ARZ3", "type_definitions": list(reversed(types))}) == content_hash(model)
    assert content_hash({**model, "type_definitions": types[1:]}) != content_hash(model)


def test_a_missing_model_is_not_the_shipped_model(model: Model) -> None:
    assert not same_model({}, model)

# SPDX-License-Identifier: Apache-2.0
"""The relationship model and the guardrails in use, for policy authors."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.opa.policy_files import shipped_policies
from tests.support.stack.world import World

MODEL = "/management/v1/policies/model"
GUARDRAILS = "/management/v1/policies/guardrails"


@pytest.mark.parametrize("path", [MODEL, GUARDRAILS])
def test_only_readers_of_policies_get_them(world: World, path: str) -> None:
    author, auditor = world.stranger(), world.stranger()
    world.grant("policy_reader", author, "server", "")
    world.grant("auditor", auditor, "server", "")
    assert author.get(path).status_code == 200
    assert world.admin.get(path).status_code == 200
    assert auditor.get(path).status_code == 403
    assert world.stranger().get(path).status_code == 403
    for person in (author, auditor):
        world.strip(person)


def test_model_has_each_relation_as_the_files_define_it(world: World) -> None:
    shown = world.admin.get(MODEL).json()
    types = {each["type"]: {one["name"]: one for one in each["relations"]} for each in shown["types"]}
    assert types.keys() == {each["type"] for each in shown["model"]["type_definitions"]}
    files = Path(__file__).parents[2] / "fga_model"
    defined = 0
    for type, relations in types.items():
        file = files / f"{type}.fga"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        for line in (each.strip() for each in lines):
            if line.startswith("define "):
                name, _, definition = line.removeprefix("define ").partition(": ")
                assert relations[name]["definition"] == definition
                defined += 1
    assert defined > 200
    assert types["warehouse"]["auditor"]["kind"] == "privilege"
    assert types["warehouse"]["auditor"]["title"] == "Auditor"
    assert types["warehouse"]["can_read_audit"]["kind"] == "action"
    assert types["warehouse"]["audits"]["kind"] == "other"
    assert len(shown["id"]) == 26
    assert shown["version"]


def test_guardrails_are_the_files_of_the_bundle(world: World) -> None:
    shown = world.admin.get(GUARDRAILS).json()
    modules = {each["path"]: each for each in shown["modules"]}
    directory = shipped_policies()
    for path, module in modules.items():
        assert module["text"] == (directory / path).read_text(encoding="utf-8")
    assert not any(path.startswith("trino/") or path.endswith("_test.rego") for path in modules)
    assert modules["gateway/main.rego"]["guardrail"] is False
    guardrails = {each["package"] for each in modules.values() if each["guardrail"]}
    assert guardrails
    assert all(each.startswith("gateway.guardrails") for each in guardrails)
    bundle = world.admin.get("/management/v1/policy-bundle/gateway")
    assert shown["revision"] in bundle.headers["etag"]

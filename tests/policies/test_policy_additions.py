# SPDX-License-Identifier: Apache-2.0
"""Rules of a policy repository that could read OPA's tokens, send data, or replace the rules about OPA's callers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.opa.policy_files import ALLOWED_FUNCTIONS, policy_files
from gateway.opa.syntax import InvalidPolicies
from tests.policies.conftest import Run
from tests.support.servers.opa_program import source

HEAD = "package gateway.guardrails.mine\n\n"
RULE = (
    'denials[index] contains {"code": "c", "message": sprintf("%v", [_text])} if {\n'
    "\tsome index, _ in input.questions\n}\n\n"
)
_TOKEN = "a rule refers to data.system.authz._operator_token"

READING = {
    "the token": ("_text := data.system.authz._operator_token\n", _TOKEN),
    "the token by keys": ('_text := data["system"]["authz"]["_operator_token"]\n', _TOKEN),
    "a computed key": ('_text := data[concat("", ["sys", "tem"])].authz._operator_token\n', "a rule refers to data,"),
    "a variable key": ("_text := [value | value := data[_].authz._operator_token]\n", "a rule refers to data,"),
    "all data": ("_text := data\n", "a rule refers to data,"),
    "all data in a collection": ('_text := {"a": [data]}\n', "a rule refers to data,"),
    "all data as an argument": ("_text := [value | walk(data, [_, value])]\n", "a rule refers to data,"),
    "a template": ('_text := $"{data.system.authz._operator_token}"\n', _TOKEN),
    "a comprehension": ("_text := {v | some v in [data.system.authz._operator_token]}\n", _TOKEN),
    "a replaced rule": ("_text := 1 if input.a with data.system.authz as {}\n", "a rule refers to data.system.authz,"),
    "another branch": ("_text := 1 if input.a else := data.system.authz._operator_token\n", _TOKEN),
    "a default": ("default _text(_) := 1\n\n_text(x) := data.system.authz._operator_token if x\n", _TOKEN),
    "the configuration": ("_text := data.system.bundles\n", "a rule refers to data.system.bundles"),
    "the bridge": ("_text := data.trino.settings\n", "a rule refers to data.trino.settings"),
    "the environment": ("_text := opa.runtime().env\n", "a rule calls opa.runtime"),
    "the environment by key": ('_text := opa["runtime"]()\n', "a rule calls opa.runtime"),
    "a request": ('_text := http.send({"method": "get", "url": "http://a"})\n', "a rule calls http.send"),
    "a name server": ('_text := net.lookup_ip_addr("a")\n', "a rule calls net.lookup_ip_addr"),
    "a schema that OPA fetches": ('_text := json.match_schema({}, {"$ref": "http://a"})\n', "calls json.match_schema"),
    "OPA's clock": ("_text := time.now_ns()\n", "a rule calls time.now_ns"),
    "chance": ('_text := rand.intn("a", 5)\n', "a rule calls rand.intn"),
    "the log": ('_text := 1 if print("a")\n', "a rule calls print"),
    "a function that does not exist": ("_text := vault.read(1)\n", "a rule calls vault.read"),
    "a function behind an import": ("_text := authz._is(1)\n", "a rule refers to data.system.authz,"),
}
_IMPORTS = {"a function behind an import": "import data.system.authz\n\n"}
FOLDERS = [
    ".",
    "trino",
    "system",
    "schemas",
    "gateway/guardrails",
    "gateway/guardrails/trino",
    "gateway/schemas/system",
]


def repository(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        file = folder / "policies" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


@pytest.mark.threat("LG-POL-14")
@pytest.mark.parametrize("name", READING)
def test_a_rule_that_could_read_or_send_a_secret_is_refused(tmp_path: Path, name: str) -> None:
    text, fault = READING[name]
    text = HEAD + _IMPORTS.get(name, "") + RULE + text
    folder = repository(tmp_path, **{"gateway/guardrails/mine.rego": text})
    with pytest.raises(InvalidPolicies) as refused:
        policy_files(source(folder))
    assert fault in str(refused.value)
    assert str(refused.value).startswith(f"{folder}/policies/gateway/guardrails/mine.rego: ")


def test_an_import_of_all_data_is_refused(tmp_path: Path) -> None:
    for imported in ("data as everything", "data.system", "data.system.authz as z"):
        text = f"{HEAD}import {imported}\n\n{RULE}_text := 1\n"
        folder = repository(tmp_path, **{"gateway/guardrails/mine.rego": text})
        with pytest.raises(InvalidPolicies, match="a rule refers to data"):
            policy_files(source(folder))


@pytest.mark.threat("LG-POL-14")
@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folder_is_exempt_and_no_option_skips_the_check(tmp_path: Path, folder: str) -> None:
    built = repository(tmp_path / "r", **{f"{folder}/mine.rego": HEAD + RULE + "_text := opa.runtime().env\n"})
    for options in ([], ["--no-check"]):
        output = tmp_path / "b.tar.gz"
        done = run("policy", "bundle", "--for", "gateway", "--directory", built, "-o", output, *options)
        assert (done.exit_code, output.exists()) == (1, False), options
        assert "a rule calls opa.runtime" in done.output
    assert "a rule calls opa.runtime" in run("policy", "check", built).output


def test_a_test_is_checked_and_runs_without_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI_SECRET", "from-the-environment")
    secret = "test_a if opa.runtime().env.CI_SECRET\n"
    name = "gateway/guardrails/mine_test.rego"
    head = "package gateway_test.guardrails.mine\n\n"
    folder = repository(tmp_path, **{"gateway/guardrails/mine.rego": HEAD + RULE + "_text := 1\n", name: head + secret})
    done = run("policy", "test", folder)
    assert (done.exit_code, "a rule calls opa.runtime" in done.output) == (1, True)
    repository(tmp_path, **{name: head + "import data.gateway.guardrails.mine\n\ntest_a if mine.denials\n"})
    assert run("policy", "test", folder).exit_code == 0
    # The second barrier, without the first: OPA itself gets no variable.
    monkeypatch.setattr("gateway.opa.policy_files.check_additions", lambda *_, **__: None)
    repository(tmp_path, **{name: head + secret})
    assert "FAIL" in run("policy", "test", folder).output


def test_ordinary_rules_pass(tmp_path: Path) -> None:
    text = RULE + '_text := concat("", [lower(x) | some x in data.policy_data.mine.list; _ok(x)])\n\n'
    text += '_ok(x) if {\n\tx != "a"\n\tregex.match("a", data.gateway.guardrails.mine._other)\n}\n\n_other := "a"\n'
    folder = repository(tmp_path, **{"gateway/guardrails/mine.rego": HEAD + text, "policy_data/mine/data.json": "{}"})
    assert "gateway/guardrails/mine.rego" in policy_files(source(folder))


def test_every_allowed_function_exists_and_none_depends_on_anything_else(opa: Run) -> None:
    known = {each["name"]: each for each in json.loads(opa("capabilities", "--current").stdout)["builtins"]}
    assert known.keys() >= ALLOWED_FUNCTIONS
    assert not [name for name in ALLOWED_FUNCTIONS if known[name].get("nondeterministic")]


def test_a_complete_set_needs_the_setting(policies: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(policies, tmp_path / "policies"))
    with pytest.raises(InvalidPolicies, match=r"main\.rego replaces the rules .* set LAKEGATE__POLICY_COMPLETE=true"):
        policy_files(source(copy))
    assert policy_files(source(copy, complete=True)) == policy_files(None)


@pytest.mark.threat("LG-POL-14")
@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("system/authz.rego", "system.authz"),
        ("more.rego", "system.authz"),
        ("gateway/guardrails/more.rego", "system.authz.more"),
        ("system/more.rego", "system"),
        ("system/log.rego", "system.log"),
    ],
)
def test_a_complete_set_never_replaces_the_rules_about_the_callers_of_opa(
    policies: Path, tmp_path: Path, name: str, package: str
) -> None:
    copy = Path(shutil.copytree(policies, tmp_path / "policies"))
    (copy / name).write_text(f"package {package}\n\nallow := true\n")
    with pytest.raises(InvalidPolicies, match=f"cannot contain the package {package} other than"):
        policy_files(source(copy, complete=True))


def test_a_complete_set_without_system_authz_gets_it_and_cannot_read_its_tokens(policies: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(policies, tmp_path / "policies"))
    for file in ("authz.rego", "authz_test.rego"):
        (copy / "system" / file).unlink()
    assert policy_files(source(copy, complete=True)) == policy_files(None)
    main_rego = copy / "gateway" / "main.rego"
    main_rego.write_text(main_rego.read_text() + "\nleak := data.system.authz._gateway_token\n")
    with pytest.raises(InvalidPolicies, match="a rule refers to data.system.authz._gateway_token"):
        policy_files(source(copy, complete=True))
    main_rego.write_text((policies / "gateway" / "main.rego").read_text())
    (copy / "system" / "authz").mkdir()
    (copy / "system" / "authz" / "data.json").write_text('{"_gateway_token": "known"}')
    with pytest.raises(InvalidPolicies, match="policy data must be in"):
        policy_files(source(copy, complete=True))

# SPDX-License-Identifier: Apache-2.0
"""The policies: their tests, their form, and their input schema."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from gateway.opa.schema import SCHEMA_FILE, input_schema
from tests.policies.conftest import Run

FORBIDDEN_CALLS = re.compile(
    r"\b(http\.send|net\.lookup_ip_addr|time\.now_ns|rand\.intn|uuid\.rfc4122|io\.jwt\.decode_verify)\b"
)


def rego_files(policies: Path) -> list[Path]:
    files = sorted(policies.rglob("*.rego"))
    assert files
    return files


def test_the_policy_tests_pass_and_cover_every_line(opa: Run, policies: Path) -> None:
    done = opa("test", "--ignore=schemas", "--timeout=60s", "--coverage", "--threshold=100", "--format=json", policies)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["coverage"] == 100


def test_the_policies_compile_strictly_against_the_input_schema(opa: Run, policies: Path) -> None:
    done = opa("check", "--strict", "--ignore=schemas", f"--schema={policies / 'schemas'}", policies)
    assert done.returncode == 0, done.stderr


def test_a_field_that_the_gateway_does_not_send_does_not_compile(opa: Run, policies: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(policies, tmp_path / "policies")
    rule = copy / "gateway" / "guardrails" / "contractors.rego"
    text = rule.read_text(encoding="utf-8")
    assert "input.actor.assumed_role" in text
    rule.write_text(text.replace("input.actor.assumed_role", "input.actor.asumed_role"), encoding="utf-8")
    done = opa("check", "--strict", "--ignore=schemas", f"--schema={policies / 'schemas'}", copy)
    assert done.returncode != 0
    assert "undefined ref: input.actor.asumed_role" in done.stderr


def test_the_committed_input_schema_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == input_schema(), "run `python -m gateway.opa.schema`"


def test_the_policies_are_formatted(opa: Run, policies: Path) -> None:
    done = opa("fmt", "--fail", "--list", policies)
    assert done.returncode == 0, done.stdout


def test_each_package_is_named_by_its_path(policies: Path) -> None:
    for file in rego_files(policies):
        parts = file.relative_to(policies).with_suffix("").parts
        if parts[-1] in ("main", "main_test"):
            parts = (*parts[:-2], parts[-2] + parts[-1].removeprefix("main"))
        if parts[:2] == ("gateway", "guardrails") and parts[-1].endswith("_test"):
            # Every package below gateway.guardrails is evaluated as a guardrail.
            parts = ("gateway_test", "guardrails", parts[-1].removesuffix("_test"))
        assert f"\npackage {'.'.join(parts)}\n" in file.read_text(encoding="utf-8"), file


def test_each_policy_has_a_test_file(policies: Path) -> None:
    for file in rego_files(policies):
        if not file.stem.endswith("_test"):
            assert file.with_name(f"{file.stem}_test.rego").exists(), file


def undescribed_rules(text: str) -> list[str]:
    """Return the rules without a comment block directly above with METADATA and a description.

    A rule may share the block of its `default`.
    """
    lines = text.splitlines()
    missing = []
    for number, line in enumerate(lines):
        rule = re.match(r"(?:default )?([a-z_][a-z_0-9]*)(\(.*\))?( contains .*)?( :=| if|$)", line)
        if rule is None or line.startswith(("package ", "import ")):
            continue
        above = []
        while number and lines[number - 1].startswith("#"):
            number -= 1
            above.append(lines[number])
        described = "# METADATA" in above and any(each.startswith("# description: ") for each in above)
        if not described and f"default {rule.group(1)} " not in text.replace(line, ""):
            missing.append(line)
    return missing


def test_each_rule_has_a_description(policies: Path) -> None:
    for file in rego_files(policies):
        if not file.stem.endswith("_test"):
            assert undescribed_rules(file.read_text(encoding="utf-8")) == [], file


def test_a_rule_without_a_description_is_detected() -> None:
    described = "# METADATA\n# description: why\nx := 1\n"
    assert undescribed_rules(described) == []
    assert undescribed_rules(described + "\n_y(z) := 1\n") == ["_y(z) := 1"]
    assert undescribed_rules("# a comment\ndeny contains x if {\n}\n") == ["deny contains x if {"]


@pytest.mark.parametrize("line", ['x := http.send({"url": "u"})', "now := time.now_ns()"])
def test_an_http_call_in_a_policy_is_detected(line: str) -> None:
    assert FORBIDDEN_CALLS.search(line)


def test_no_policy_makes_http_calls_or_reads_another_clock(policies: Path) -> None:
    for file in rego_files(policies):
        assert file in calls_other_hosts(policies) or not FORBIDDEN_CALLS.search(file.read_text(encoding="utf-8")), file


def calls_other_hosts(policies: Path) -> set[Path]:
    """Return True for the policies that may call the gateway, which belong to the Trino bridge.

    One file calls the gateway, another fetches its token, and a third masks the token in the decision log. The
    gateway's own OPA evaluates none of them (`system/authz.rego`).
    """
    asking = {policies / "trino" / name for name in ("gateway.rego", "log.rego", "settings.rego")}
    return asking | {file for file in rego_files(policies / "trino") if file.stem.endswith("_test")}


def test_the_bridge_does_not_cache_gateway_responses(policies: Path) -> None:
    text = (policies / "trino" / "gateway.rego").read_text(encoding="utf-8")
    code = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    assert any("http.send(" in line for line in code)
    assert not [line for line in code if "cache" in line], "a cached response would outlive a revocation"


def test_only_authorization_revision_and_bridge_settings_read_the_opa_runtime(policies: Path) -> None:
    reading = [file for file in rego_files(policies) if "opa.runtime" in file.read_text(encoding="utf-8")]
    bridge = [file for file in reading if file.parent.name == "trino"]
    readers = {file.name for file in reading if file not in bridge}
    assert readers == {"authz.rego", "authz_test.rego", "revision.rego", "revision_test.rego", "residual_test.rego"}
    # The bridge reads its settings from its environment. `setup.rego` reports their state and no value.
    assert {file.name for file in bridge if not file.stem.endswith("_test")} == {
        "authz.rego",
        "settings.rego",
        "setup.rego",
    }
    # The environment contains the tokens, so only the authorization policy may read them.
    text = (policies / "system/revision.rego").read_text(encoding="utf-8")
    assert re.findall(r"runtime\(\)[.\[]?(.*)", text) == ["env.LAKEGATE_OPA_REVISION"]

# SPDX-License-Identifier: Apache-2.0
"""Rules for the Helm chart, checked without rendering it; `tests/e2e/test_helm.py` renders it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gateway import settings
from gateway.cli.engines import probe as probe_command

CHART = Path(__file__).resolve().parents[3] / "deploy" / "helm"
TEMPLATES = sorted((CHART / "templates").iterdir())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
EXAMPLES = sorted((CHART / "examples").iterdir())
POLICIES = CHART.parents[1] / "policies"
VARIABLES = {row.variable for row in settings.rows()}


PROBE: dict[str, Any] = {
    "name": "trino-lake",
    "schedule": "15 3 * * *",
    "image": "registry.example.com/lakegate-probe:1",
    "serviceAccountName": "lakegate-probe",
    "engine": "oidc~trino",
    "warehouse": "lake",
}


def text_of(name: str) -> str:
    return (CHART / "templates" / name).read_text()


def test_default_values_satisfy_the_schema_that_lists_each_of_them() -> None:
    jsonschema_rs.validator_for(SCHEMA).validate(VALUES)
    assert set(VALUES) == set(SCHEMA["properties"]) - {"global"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"replica": 2},
        {"replicas": 0},
        {"maintenanceMode": "readonly"},
        {"baseUri": "https://lake.example/"},
        {"secretName": ""},
        {"secretSettings": ["PG_ENCRYPTION_KEY"]},
        {"openfga": {"enabled": False}},
        {"openfga": {"image": "openfga/openfga"}},
        {"opa": {"enabled": False}},
        {"opa": {"files": {"../authz.rego": "x"}}},
        {"opa": {"files": {"gateway/.hidden.rego": "x"}}},
        {"opa": {"files": {"gateway__main.rego": "x"}}},
        {"postgres": {"embeded": True}},
        {"gatewayApi": {"enabled": True, "parentRefs": []}},
        {"openfga": {"endpoint": "openfga:8080"}},
        {"settings": {"PG_PASSWORD": "x"}},
        {"engineProbes": [{"name": "trino", "schedule": "15 3 * * *"}]},
        {"engineProbes": [PROBE | {"name": "Trino"}]},
        {"engineProbes": [PROBE | {"arguments": []}]},
        {"engineProbes": [PROBE | {"engine": "trino"}]},
        {"settings": {"OPENFGA__API_KEY": "x"}},
        {"settings": {"KV2__SECRET_ID": "x"}},
        {"ingress": {"enabled": True, "host": "lake.example", "tlsSecretName": ""}},
    ],
)
def test_misspelt_values_and_secrets_among_the_settings_are_refused(wrong: dict[str, Any]) -> None:
    assert not jsonschema_rs.validator_for(SCHEMA).is_valid(VALUES | wrong)


def test_a_probe_of_an_engine_satisfies_the_schema_and_uses_options_of_the_command() -> None:
    self_test = {"user": "oidc~probe", "arguments": ["--trino-url=https://trino.example.com"]}
    for probe in (PROBE, PROBE | self_test):
        jsonschema_rs.validator_for(SCHEMA).validate(VALUES | {"engineProbes": [probe]})
    options = {option for parameter in probe_command.params for option in parameter.opts}
    named = set(re.findall(r"^ +- (--[a-z-]+)=", text_of("engine-probes.yaml"), re.MULTILINE))
    assert named and named <= options


def test_the_chart_has_the_package_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    (version,) = re.findall(r'^version = "(.+)"$', (CHART.parents[1] / "pyproject.toml").read_text(), re.MULTILINE)
    assert (chart["apiVersion"], str(chart["appVersion"])) == ("v2", version)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_value_that_a_template_names_exists(template: Path) -> None:
    for path in re.findall(r"\.Values\.([A-Za-z.]+)", template.read_text()):
        found: Any = VALUES
        for part in path.split("."):
            assert part in found, f".Values.{path}"
            found = found[part]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_block_is_closed_and_every_helper_is_defined(template: Path) -> None:
    text = template.read_text()
    actions = re.findall(r"\{\{-?\s*(.*?)\s*-?\}\}", text, re.DOTALL)
    assert text.count("{{") == text.count("}}") == len(actions)
    opened = sum(action.split()[0] in ("if", "with", "range", "define") for action in actions if action)
    assert opened == sum(action == "end" for action in actions)
    defined = set(re.findall(r'define "([^"]+)"', text_of("_helpers.tpl")))
    assert set(re.findall(r'include "([^"]+)"', text)) <= defined


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_satisfies_the_schema_and_names_only_settings(example: Path) -> None:
    values = yaml.safe_load(example.read_text())
    jsonschema_rs.validator_for(SCHEMA).validate(_merged(VALUES, values))
    named = {f"LAKEGATE__{name}" for name in (*values.get("settings", {}), *values.get("secretSettings", []))}
    assert named <= VARIABLES


def test_there_is_an_example_for_each_platform() -> None:
    assert {each.stem for each in EXAMPLES} == {"aws", "azure", "gcp", "on-premises", "trial"}
    trials = {each.stem for each in EXAMPLES if yaml.safe_load(each.read_text()).get("postgres", {}).get("embedded")}
    assert trials == {"trial"}, "the PostgreSQL of the chart is for trials only"


def _merged(default: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Merge values as Helm does: mappings key by key, all other values whole."""
    both = {
        name: _merged(default[name], value)
        if isinstance(default.get(name), dict) and isinstance(value, dict)
        else value
        for name, value in values.items()
    }
    return default | both


def test_the_policies_of_the_chart_are_those_of_the_repository() -> None:
    left_out = ("_test.rego", "README.md")
    ours = {
        str(each.relative_to(POLICIES)): each.read_bytes()
        for each in POLICIES.rglob("*")
        if each.is_file() and not each.name.endswith(left_out) and each.parent.name != "schemas"
    }
    copied = {
        str(each.relative_to(CHART / "policies")): each.read_bytes()
        for each in (CHART / "policies").rglob("*")
        if each.is_file()
    }
    assert copied == ours, "run `make chart-policies`"
    assert "system/authz.rego" in copied


def test_every_variable_is_a_setting_of_the_gateway() -> None:
    named = {name for each in TEMPLATES for name in re.findall(r"(LAKEGATE__[A-Z_]+[A-Z])\b", each.read_text())}
    (secrets,) = re.findall(r"concat \(list (.+?)\) \.Values\.secretSettings", text_of("_helpers.tpl"))
    named |= {f"LAKEGATE__{name}" for name in re.findall(r'"([A-Z_]+)"', secrets)}
    assert len(named) > 10
    assert named <= VARIABLES, "an unknown variable makes every command fail"


def test_the_gateway_reads_secrets_as_files_and_never_as_variables() -> None:
    helpers = text_of("_helpers.tpl")
    assert "LAKEGATE__SETTINGS_DIRECTORY, value: /etc/lakegate/secrets" in helpers
    assert "secretKeyRef" not in helpers
    # OPA and PostgreSQL cannot read files.
    assert [each.name for each in TEMPLATES if "secretKeyRef" in each.read_text()] == ["opa.yaml", "postgres.yaml"]
    (made,) = (each for each in TEMPLATES if "kind: Secret" in each.read_text())
    assert "if not .Values.secretName" in made.read_text()
    assert "helm.sh/resource-policy: keep" in made.read_text(), "the volume of PostgreSQL needs its password later"


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_configuration_of_openfga_contains_no_line_break_of_the_secret(tmp_path: Path, end: str) -> None:
    (tmp_path / "OPENFGA_DATASTORE_URI").write_text(f"postgres://db/openfga{end}")
    (tmp_path / "OPENFGA__API_KEY").write_text(f"key{end}")
    written = tmp_path / "config.yaml"
    script = [sys.executable, str(CHART / "files" / "configure.py"), str(tmp_path), str(written)]
    subprocess.run(script, check=True, timeout=60)
    assert yaml.safe_load(written.read_text()) == {
        "datastore": {"engine": "postgres", "uri": "postgres://db/openfga"},
        "authn": {"method": "preshared", "preshared": {"keys": ["key"]}},
    }
    (tmp_path / "OPENFGA__API_KEY").write_text("\n")
    refused = subprocess.run(script, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert "must not be empty" in refused.stderr


def test_the_images_of_the_chart_are_those_of_compose() -> None:
    services = yaml.safe_load((CHART.parent / "compose.yaml").read_text())["services"]
    for part in ("postgres", "openfga", "opa"):
        assert VALUES[part]["image"] == services[part]["image"]
    assert VALUES["image"] == {"repository": "lakegate", "tag": "", "pullPolicy": "IfNotPresent", "pullSecrets": []}
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    for page in (CHART.parent / "README.md", CHART / "README.md"):
        named = set(re.findall(r"docker (?:build|push) .*?\b(lakegate(?::\S+)?)(?= |`)", page.read_text()))
        assert named == {f"lakegate:{version}"}, f"{page}: the chart runs this image"


def test_pods_run_unprivileged_with_a_read_only_filesystem() -> None:
    helpers = text_of("_helpers.tpl")
    for line in (
        "runAsNonRoot: true",
        "runAsUser: 10001",
        "type: RuntimeDefault",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        'drop: ["ALL"]',
    ):
        assert line in helpers
    for name in ("deployment.yaml", "_helpers.tpl", "openfga.yaml", "opa.yaml", "postgres.yaml"):
        text = text_of(name)
        assert "lakegate.podSecurity" in text or "runAsNonRoot: true" in text or "lakegate.openfgaPod" in text
        assert "lakegate.containerSecurity" in text or "lakegate.openfgaContainer" in text
    assert VALUES["kubernetesAuthentication"]["enabled"] is False
    assert "automountServiceAccountToken: {{ .Values.kubernetesAuthentication.enabled }}" in text_of("deployment.yaml")
    for name in ("serviceaccount.yaml", "_helpers.tpl", "opa.yaml", "postgres.yaml"):
        assert "automountServiceAccountToken: false" in text_of(name)


def test_the_chart_migrates_first_stays_available_and_restricts_the_network() -> None:
    kinds = {kind for each in TEMPLATES for kind in re.findall(r"^kind: (\w+)$", each.read_text(), re.MULTILINE)}
    assert kinds == {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CronJob",
        "Deployment",
        "HTTPRoute",
        "HorizontalPodAutoscaler",
        "Ingress",
        "Job",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Secret",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
        "StatefulSet",
    }
    assert '"pre-install,pre-upgrade"' in text_of("migration.yaml")
    assert '"pre-rollback"' in text_of("rollback-check.yaml")
    assert '"migrate" "--check"' in text_of("rollback-check.yaml")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert probe in text_of("deployment.yaml")
    assert "maxUnavailable: 0" in text_of("deployment.yaml")
    assert 'policyTypes: ["Ingress", "Egress"]' in text_of("networkpolicy.yaml")

# SPDX-License-Identifier: Apache-2.0
"""Rules for the Helm chart, checked without rendering it; `tests/e2e/test_helm.py` renders it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gateway import settings

CHART = Path(__file__).resolve().parents[3] / "deploy" / "helm"
TEMPLATES = sorted((CHART / "templates").iterdir())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VARIABLES = {row.variable for row in settings.rows()}


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
        {"openfga": {"endpoint": "openfga:8080"}},
        {"settings": {"PG_PASSWORD": "x"}},
        {"settings": {"OPENFGA__API_KEY": "x"}},
        {"settings": {"KV2__SECRET_ID": "x"}},
        {"ingress": {"enabled": True, "host": "lake.example", "tlsSecretName": ""}},
    ],
)
def test_misspelt_values_and_secrets_among_the_settings_are_refused(wrong: dict[str, Any]) -> None:
    assert not jsonschema_rs.validator_for(SCHEMA).is_valid(VALUES | wrong)


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


def test_every_variable_is_a_setting_of_the_gateway() -> None:
    named = {name for each in TEMPLATES for name in re.findall(r"(LAKEGATE__[A-Z_]+[A-Z])\b", each.read_text())}
    named |= {
        f"LAKEGATE__{name}" for name in re.findall(r'"((?:PG|OPENFGA|OPA|KV2)_[A-Z_]+)"', text_of("_helpers.tpl"))
    }
    assert named
    assert named <= VARIABLES, "an unknown variable makes every command fail"


def test_secrets_come_from_a_secret_and_no_template_holds_one() -> None:
    secret = {"PG_DATABASE_URL_WRITE", "PG_ENCRYPTION_KEY", "PG_ENCRYPTION_KEY_OTHER", "OPENFGA__API_KEY", "OPA__TOKEN"}
    secret |= {"KV2__PASSWORD", "KV2__SECRET_ID"}
    for name in secret:
        assert name not in text_of("configmap.yaml")
        assert name in text_of("_helpers.tpl")
    assert text_of("_helpers.tpl").count("secretKeyRef") == 2
    assert not any("kind: Secret" in each.read_text() for each in TEMPLATES)


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
    for name in ("deployment.yaml", "migration.yaml"):
        text = text_of(name)
        assert "lakegate.podSecurity" in text
        assert "lakegate.containerSecurity" in text
        assert ".Values.resources" in text
    assert VALUES["kubernetesAuthentication"]["enabled"] is False
    assert "automountServiceAccountToken: {{ .Values.kubernetesAuthentication.enabled }}" in text_of("deployment.yaml")
    for name in ("serviceaccount.yaml", "migration.yaml"):
        assert "automountServiceAccountToken: false" in text_of(name)


def test_the_chart_migrates_first_stays_available_and_restricts_the_network() -> None:
    kinds = {kind for each in TEMPLATES for kind in re.findall(r"^kind: (\w+)$", each.read_text(), re.MULTILINE)}
    assert kinds == {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "Ingress",
        "Job",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }
    assert "helm.sh/hook: pre-install,pre-upgrade" in text_of("migration.yaml")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert probe in text_of("deployment.yaml")
    assert "maxUnavailable: 0" in text_of("deployment.yaml")
    assert 'policyTypes: ["Ingress", "Egress"]' in text_of("networkpolicy.yaml")

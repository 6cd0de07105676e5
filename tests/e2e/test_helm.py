# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: rendered by Helm, validated against Kubernetes' own schemas, with settings that a gateway accepts.

Opt-in by `make test-helm`, which sets LAKEGATE_TEST_HELM: building Helm takes minutes. Checks that need no Helm are in
`tests/unit/deploy/test_helm.py`. No test runs the chart on a cluster.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from gateway import settings
from gateway.embedded.install import build_go_tools, locked_environment
from gateway.embedded.toolchain import GoTool, cache

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_HELM"), reason="needs Helm: run `make test-helm`"),
]

HELM = GoTool("helm", "v3.22.0", "helm.sh/helm/v3/cmd/helm")
CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm"
#: The oldest version that Chart.yaml admits, which is also the oldest with published schemas, and a recent one.
KUBERNETES = ("1.27", "1.34")

LEAST = {"oidc": {"issuer": "https://idp.example/realms/lake"}}
ALL: dict[str, Any] = LEAST | {
    "baseUri": "https://lake.example",
    "maintenanceMode": "read-only",
    "image": {"repository": "registry.example/lakegate", "tag": "1", "pullSecrets": [{"name": "pull"}]},
    "certificates": {"configMapName": "authorities"},
    "kubernetesAuthentication": {"enabled": True, "audience": "lake"},
    "settings": {"PG_READ_POOL_CONNECTIONS": "7", "MAX_REQUEST_BODY_SIZE": 10485760, "UI__ENABLED": False},
    "ingress": {"enabled": True, "className": "nginx", "host": "lake.example", "tlsSecretName": "tls"},
    "networkPolicy": {
        "enabled": True,
        "ingressFrom": [{"namespaceSelector": {"matchLabels": {"name": "engines"}}}],
        "metricsFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
        "egressTo": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
    },
    "serviceAccount": {"annotations": {"example.com/role": "lake"}},
    "podAnnotations": {"example.com/note": "x"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "lake", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    ],
    "affinity": {"nodeAffinity": {}},
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    kept = cache(settings.load())
    build_go_tools([HELM], kept, Console(stderr=True))
    home = tmp_path_factory.mktemp("helm")

    def run(*arguments: str, values: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        file = home / "values.yaml"
        file.write_text(yaml.safe_dump(values or {}))
        return subprocess.run(
            [str(kept.go_tool(HELM)), *arguments, "--values", str(file)],
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture(scope="module")
def validate() -> Callable[[Path, str], str]:
    """Return a function that validates a file against Kubernetes' schemas and returns the errors as text."""
    program = locked_environment(cache(settings.load()), "helm", lambda _: None) / "bin" / "kubernetes-validate"

    def run(file: Path, version: str) -> str:
        output = subprocess.run(
            [str(program), "--strict", "--quiet", "-k", version, str(file)], capture_output=True, text=True, timeout=60
        )
        return "" if output.returncode == 0 else output.stdout + output.stderr

    return run


def _rendered(helm: Run, values: dict[str, Any], version: str) -> str:
    made = helm("template", "lake", str(CHART), "--kube-version", version, values=values)
    assert made.returncode == 0, made.stderr
    return made.stdout


def _of_kind(text: str, kind: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(text) if each and each["kind"] == kind]


@pytest.mark.parametrize("values", [LEAST, ALL], ids=["minimal values", "all values"])
def test_helm_lint_reports_no_fault(helm: Run, values: dict[str, Any]) -> None:
    output = helm("lint", str(CHART), "--strict", "--quiet", "--kube-version", KUBERNETES[0], values=values)
    assert output.returncode == 0, output.stdout + output.stderr


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", [LEAST, ALL], ids=["minimal values", "all values"])
def test_rendered_manifests_are_valid_for_kubernetes(
    helm: Run, validate: Callable[[Path, str], str], tmp_path: Path, values: dict[str, Any], version: str
) -> None:
    file = tmp_path / "rendered.yaml"
    file.write_text(_rendered(helm, values, version))
    assert validate(file, version) == ""
    # Prove that the schemas are applied: a misspelled field is rejected.
    file.write_text(file.read_text().replace("maxSurge:", "maxsurge:"))
    assert "maxsurge" in validate(file, version)


@pytest.mark.parametrize("values", [LEAST, ALL], ids=["minimal values", "all values"])
def test_settings_of_pods_are_valid_gateway_settings(
    helm: Run, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any]
) -> None:
    text = _rendered(helm, values, KUBERNETES[1])
    (map_,) = _of_kind(text, "ConfigMap")
    (deployment,) = _of_kind(text, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    secrets = [each["name"] for each in container["env"] if "valueFrom" in each]
    known = {row.variable for row in settings.rows()}
    assert {*map_["data"], *secrets} <= known
    for name, value in map_["data"].items():
        monkeypatch.setenv(name, value)
    read = settings.load()
    assert read.openid_provider_uri == "https://idp.example/realms/lake"
    assert read.openfga.endpoint == "http://openfga:8080"
    assert (read.maintenance_mode == "read-only") == (values is ALL)
    assert read.enable_kubernetes_authentication is (values is ALL)
    assert values is LEAST or (read.max_request_body_size, read.ui.enabled) == (10485760, False)


def test_token_review_permission_is_granted_only_if_configured(helm: Run) -> None:
    for values, asks in ((LEAST, False), (ALL, True)):
        text = _rendered(helm, values, KUBERNETES[1])
        (deployment,) = _of_kind(text, "Deployment")
        (migration,) = _of_kind(text, "Job")
        assert deployment["spec"]["template"]["spec"]["automountServiceAccountToken"] is asks
        assert migration["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
        rules = [rule for role in _of_kind(text, "ClusterRole") for rule in role["rules"]]
        may = [
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
            {"nonResourceURLs": ["/openid/v1/jwks"], "verbs": ["get"]},
        ]
        assert rules == (may if asks else [])
        bound = [subject["name"] for each in _of_kind(text, "ClusterRoleBinding") for subject in each["subjects"]]
        assert bound == (["lake-lakegate"] if asks else [])


def test_missing_or_misspelt_value_fails_with_its_name(helm: Run) -> None:
    for values, error in (({}, "oidc.issuer must be set"), (LEAST | {"replica": 2}, "replica")):
        made = helm("template", "lake", str(CHART), "--kube-version", KUBERNETES[1], values=values)
        assert made.returncode != 0
        assert error in made.stderr
        assert made.stdout == ""

# SPDX-License-Identifier: Apache-2.0
"""The Helm chart on a Kubernetes API server: installed, upgraded, rolled back and removed.

Opt-in by `make test-kubernetes`, which builds the control plane once and writes `tests/results/kubernetes.json`. The
namespace enforces the Pod Security Standard `restricted`. No container runs: `tests/kubernetes/control_plane.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from rich.console import Console

from gateway import settings
from lakegate.local.install import build_go_tools
from lakegate.local.toolchain import cache
from tests.kubernetes.control_plane import SOURCE, Cluster, control_plane, program
from tests.support.helm_chart import CHART, HELM, VALUES

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_KUBERNETES"), reason="run `make test-kubernetes`"),
    pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning"),
]

PREVIOUS = SOURCE / "lakegate-0.1.0.tgz"
#: The definitions of the custom resources, from the modules of their authors.
DEFINITIONS = {
    "sigs.k8s.io/gateway-api@v1.4.0": "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
    "github.com/prometheus-operator/prometheus-operator@v0.84.0": (
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"
    ),
}
SECRET = (
    "PG_DATABASE_URL_WRITE",
    "PG_DATABASE_URL_READ",
    "PG_ENCRYPTION_KEY",
    "PG_ENCRYPTION_KEY_OTHER",
    "OPENFGA__API_KEY",
    "OPENFGA_DATASTORE_URI",
    "OPA__TOKEN",
    "KV2__SECRET_ID",
)

Helm = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    kept = cache(settings.load())
    build_go_tools([HELM], kept, Console(stderr=True))
    with control_plane(program(kept.root)) as running:
        for module, file in DEFINITIONS.items():
            found = subprocess.run(
                ["go", "mod", "download", "-json", module], capture_output=True, text=True, check=True, timeout=300
            )
            definition = yaml.safe_load((Path(json.loads(found.stdout)["Dir"]) / file).read_text())
            running.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """Return a new namespace with the Secret of the chart and a volume for PostgreSQL."""
    name = f"lake-{uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    secret = {"metadata": {"name": "lakegate"}, "stringData": dict.fromkeys(SECRET, "value\n")}
    cluster.request("POST", f"/api/v1/namespaces/{name}/secrets", secret)
    volume = {
        "capacity": {"storage": "8Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": name, "name": "data-lake-lakegate-postgres-0"},
    }
    cluster.request("POST", "/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": volume})
    return name


@pytest.fixture
def helm(cluster: Cluster, namespace: str, tmp_path: Path) -> Helm:
    tool = cache(settings.load()).go_tool(HELM)

    def run(*arguments: str, values: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(values or {}))
        options = ["--namespace", namespace, *(["--values", str(file)] if values is not None else [])]
        return subprocess.run(
            [str(tool), *arguments, *options],
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "KUBECONFIG": str(cluster.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=600,
        )

    return run


def _done(ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _wait(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.3)


WAIT = ("--wait", "--wait-for-jobs", "--timeout", "5m")


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_the_chart_is_installed_becomes_ready_and_is_removed_without_leftovers(
    cluster: Cluster, namespace: str, helm: Helm, values: dict[str, Any]
) -> None:
    _done(helm("install", "lake", str(CHART), *WAIT, values=values))
    deployments = cluster.list(f"/apis/apps/v1/namespaces/{namespace}/deployments")
    assert all(each["status"].get("readyReplicas", 0) > 0 for each in deployments)
    assert len(deployments) == (1 if "url" in values.get("opa", {}) else 3)
    if values.get("serviceMonitor", {}).get("enabled"):
        monitors = cluster.list(f"/apis/monitoring.coreos.com/v1/namespaces/{namespace}/servicemonitors")
        services = cluster.list(f"/api/v1/namespaces/{namespace}/services")
        wanted = monitors[0]["spec"]["selector"]["matchLabels"].items()
        (found,) = (each for each in services if wanted <= each["metadata"]["labels"].items())
        assert found["spec"]["ports"][0]["name"] == "metrics"
    _done(helm("uninstall", "lake", "--wait", "--timeout", "5m"))
    left = {
        f"{kind}/{each['metadata']['name']}"
        for api in ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/networking.k8s.io/v1", "apis/policy/v1")
        for kind in (
            each["name"]
            for each in cluster.request("GET", f"/{api}")["resources"]
            if each["namespaced"] and "list" in each["verbs"] and each["name"] not in ("events", "pods", "endpoints")
        )
        for each in cluster.list(f"/{api}/namespaces/{namespace}/{kind}")
        if "lake" in each["metadata"]["name"]
    }
    trial = {"secrets/lake-lakegate-generated", "persistentvolumeclaims/data-lake-lakegate-postgres-0"}
    kept = trial if values.get("postgres", {}).get("embedded") else set()
    history = {each for each in left if each.startswith("controllerrevisions/")}  # the garbage collector removes them
    assert left - history == {"secrets/lakegate"} | kept


def test_a_trial_keeps_its_secrets_over_upgrades_and_new_installations(
    cluster: Cluster, namespace: str, helm: Helm
) -> None:
    def generated() -> dict[str, str]:
        path = f"/api/v1/namespaces/{namespace}/secrets/lake-lakegate-generated"
        data: dict[str, str] = cluster.request("GET", path)["data"]
        return data

    _done(helm("install", "lake", str(CHART), *WAIT, values=VALUES["trial"]))
    first = generated()
    assert len(first) == 9
    _done(helm("upgrade", "lake", str(CHART), *WAIT, values=VALUES["trial"] | {"logLevel": "debug"}))
    assert generated() == first
    _done(helm("uninstall", "lake", "--wait"))
    _done(helm("install", "lake", str(CHART), *WAIT, values=VALUES["trial"]))
    assert generated() == first, "the volume of PostgreSQL has the first passwords"


def test_chart_0_1_is_upgraded_as_its_page_says(cluster: Cluster, namespace: str, helm: Helm) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/lake-lakegate"
    values = {"oidc": {"issuer": "https://idp.example"}, "openfga": {"endpoint": "https://fga.example"}}
    _done(helm("install", "lake", str(PREVIOUS), *WAIT, values=values))
    account = cluster.request("GET", path)["metadata"]["uid"]
    own = ("--set", "openfga.enabled=false,opa.enabled=false,opa.url=http://opa:8181")
    refused = helm("upgrade", "lake", str(CHART), "--reset-then-reuse-values", *own, *WAIT)
    assert "cannot be imported into the current release" in refused.stderr
    _done(helm("upgrade", "lake", str(CHART), "--take-ownership", "--reset-then-reuse-values", *own, *WAIT))
    assert cluster.request("GET", path)["metadata"]["uid"] == account, "tokens of running pods need this account"
    _done(helm("upgrade", "lake", str(CHART), "--reuse-values", "--set", "replicas=3", *WAIT))
    assert cluster.request("GET", path)["metadata"]["uid"] == account


def _level(pod: dict[str, Any]) -> str:
    (container,) = pod["spec"]["containers"]
    return next((e["value"] for e in container.get("env", ()) if e["name"] == "LAKEGATE__LOG_LEVEL"), "")


def test_a_failed_check_or_migration_leaves_the_running_version_as_it_is(
    cluster: Cluster, namespace: str, helm: Helm
) -> None:
    """The pods with the log level `debug` are those of an older version, whose check fails."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/lake-lakegate"

    def served() -> tuple[str, int]:
        found = cluster.request("GET", path)
        return _level(found["spec"]["template"]), found["status"]["readyReplicas"]

    minimal = VALUES["minimal"]
    _done(helm("install", "lake", str(CHART), *WAIT, values=minimal | {"logLevel": "debug"}))
    _done(helm("upgrade", "lake", str(CHART), *WAIT, values=minimal))
    cluster.nodes.fails = lambda pod: _level(pod) == "debug" and "--check" in pod["spec"]["containers"][0]["args"]
    refused = helm("rollback", "lake", "1", "--wait", "--timeout", "3m")
    assert refused.returncode != 0
    assert "job lake-lakegate-rollback-check failed" in refused.stderr
    assert served() == ("info", 2)
    (job,) = cluster.list(f"/apis/batch/v1/namespaces/{namespace}/jobs?fieldSelector=status.successful=0")
    assert job["metadata"]["name"] == "lake-lakegate-rollback-check", "its pod's log names the way back"
    _done(helm("rollback", "lake", "2", "--wait", "--timeout", "3m"))  # the way back that the error names
    cluster.nodes.fails = lambda pod: _level(pod) == "warning"
    slow = {"logLevel": "warning", "migration": {"backoffLimit": 0}}
    refused = helm("upgrade", "lake", str(CHART), *WAIT, values=minimal | slow)
    assert "pre-upgrade hooks failed" in refused.stderr
    assert served() == ("info", 2)
    cluster.nodes.fails = lambda _: False
    _done(helm("upgrade", "lake", str(CHART), *WAIT, values=minimal | slow))
    _wait("the pods have the new settings", lambda: served() == ("warning", 2))


def test_the_api_server_rejects_a_manifest_that_is_wrong(cluster: Cluster, namespace: str, helm: Helm) -> None:
    """Prove that objects are validated: the port is out of range, and a limit is below its request."""
    for wrong, reason in (
        ({"service": {"metricsPort": 65535, "annotations": {"Not a key!": "x"}}}, "metadata.annotations"),
        ({"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}, "must be less than or equal to"),
    ):
        refused = helm("install", "lake", str(CHART), "--timeout", "1m", values=VALUES["minimal"] | wrong)
        assert refused.returncode != 0
        assert reason in refused.stderr
        helm("uninstall", "lake", "--ignore-not-found", "--no-hooks")

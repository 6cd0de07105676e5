# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: rendered by Helm, validated against Kubernetes' own schemas, with settings that a gateway accepts.

Opt-in by `make test-helm`, which sets LAKEGATE_TEST_HELM: building Helm takes minutes. Checks that need no Helm are in
`tests/unit/deploy/test_helm.py`, and those on an API server in `tests/e2e/test_kubernetes.py`.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
import yaml
from rich.console import Console

from gateway import settings
from gateway.cli import main
from lakegate.local.install import build_go_tools, locked_environment
from lakegate.local.toolchain import cache, locate_opa
from tests.support.helm_chart import ALL, CHART, HELM, LEAST, OWN_PARTS, VALUES
from tests.support.rows.parts import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_HELM"), reason="needs Helm: run `make test-helm`"),
]

#: The oldest version that Chart.yaml admits, which is also the oldest with published schemas, and a recent one.
KUBERNETES = ("1.27", "1.34")

#: Kinds without a schema: their definitions are not part of Kubernetes.
CUSTOM = {"HTTPRoute", "ServiceMonitor"}


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


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_helm_lint_reports_no_fault(helm: Run, values: dict[str, Any]) -> None:
    output = helm("lint", str(CHART), "--strict", "--quiet", "--kube-version", KUBERNETES[0], values=values)
    assert output.returncode == 0, output.stdout + output.stderr


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_rendered_manifests_are_valid_for_kubernetes(
    helm: Run, validate: Callable[[Path, str], str], tmp_path: Path, values: dict[str, Any], version: str
) -> None:
    file = tmp_path / "rendered.yaml"
    objects = [each for each in yaml.safe_load_all(_rendered(helm, values, version)) if each]
    file.write_text(yaml.safe_dump_all([each for each in objects if each["kind"] not in CUSTOM]))
    assert validate(file, version) == ""
    # Prove that the schemas are applied: a misspelled field is rejected.
    file.write_text(file.read_text().replace("maxSurge:", "maxsurge:"))
    assert "maxsurge" in validate(file, version)


def _containers(text: str, image: str) -> Iterator[dict[str, Any]]:
    """Yield each container of a Deployment, StatefulSet or Job whose image begins with `image`."""
    for kind in ("Deployment", "StatefulSet", "Job"):
        for each in _of_kind(text, kind):
            pod = each["spec"]["template"]["spec"]
            for container in (*pod.get("initContainers", ()), *pod["containers"]):
                if container["image"].startswith(image):
                    yield container


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES.keys())
def test_each_container_of_the_gateway_runs_a_command_with_valid_settings(
    helm: Run, tmp_path: Path, values: dict[str, Any]
) -> None:
    text = _rendered(helm, values, KUBERNETES[1])
    image = values.get("image", {}).get("repository", "lakegate")
    commands = [each for each in _containers(text, image) if "args" in each]
    assert {"serve", "migrate"} == {each["args"][0] for each in commands}
    secrets = ["PG_DATABASE_URL_WRITE", "PG_ENCRYPTION_KEY", "OPENFGA__API_KEY", "OPA__TOKEN"]
    for name in (*secrets, *values.get("secretSettings", ())):
        (tmp_path / name).write_text("postgresql://u:p@db/lake\n" if "URL" in name else "secret\n")
    for container in commands:
        verb, *options = container["args"]
        main.commands[verb].make_context(verb, options)
        environment = {each["name"]: each["value"] for each in container["env"]}
        read = settings.load(environment | {"LAKEGATE__SETTINGS_DIRECTORY": str(tmp_path)})
        assert read.pg_encryption_key and read.pg_encryption_key.reveal() == "secret"
    if values is ALL:
        assert (read.max_request_body_size, read.ui.enabled, read.maintenance_mode) == (10485760, False, "read-only")
    own = values is OWN_PARTS
    assert read.openfga.endpoint == ("https://openfga.example" if own else "http://lake-lakegate-openfga:8080")
    assert read.opa.url == ("https://opa.example" if own else "http://lake-lakegate-opa:8181")
    assert read.enable_kubernetes_authentication is (values is ALL or values is VALUES["on-premises"])


def _deployment(text: str) -> dict[str, Any]:
    (found,) = (each for each in _of_kind(text, "Deployment") if each["metadata"]["name"] == "lake-lakegate")
    return found


@pytest.fixture
def opa_pod(helm: Run, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Start OPA as the rendered pod does, on the files as Kubernetes mounts them. Yield (address, revision)."""
    text = _rendered(helm, ALL, KUBERNETES[1])
    (container,) = _containers(text, "openpolicyagent/opa")
    (pod,) = (each for each in _of_kind(text, "Deployment") if each["metadata"]["name"] == "lake-lakegate-opa")
    (volume,) = (each for each in pod["spec"]["template"]["spec"]["volumes"] if each["name"] == "policies")
    data = next(e for e in _of_kind(text, "ConfigMap") if e["metadata"]["name"] == volume["configMap"]["name"])["data"]
    copy = tmp_path / "..2026_01_01"
    for item in volume["configMap"]["items"]:
        copy.joinpath(item["path"]).parent.mkdir(parents=True, exist_ok=True)
        copy.joinpath(item["path"]).write_text(data[item["key"]])
    (tmp_path / "..data").symlink_to(copy.name)
    for top in {item["path"].split("/")[0] for item in volume["configMap"]["items"]}:
        (tmp_path / top).symlink_to(f"..data/{top}")
    port = free_port()
    arguments = [each.replace("0.0.0.0:8181", f"127.0.0.1:{port}") for each in container["args"]]
    environment = {each["name"]: each.get("value", "the-token\n") for each in container["env"]}
    with subprocess.Popen([str(locate_opa(settings.load())), *arguments], cwd=tmp_path, env=environment) as server:
        try:
            for _ in range(600):
                if server.poll() is not None or any(
                    each.laddr.port == port for each in psutil.Process(server.pid).net_connections()
                ):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", environment["LAKEGATE_OPA_REVISION"]
        finally:
            server.terminate()


def test_opa_loads_the_mounted_policies_once_and_knows_their_revision(opa_pod: tuple[str, str]) -> None:
    address, revision = opa_pod
    gateway = {"Authorization": "Bearer the-token"}
    assert revision
    assert requests.get(f"{address}/health", timeout=30).status_code == 401
    assert requests.get(f"{address}/health", headers=gateway, timeout=30).status_code == 200
    current = requests.post(
        f"{address}/v1/data/system/revision/current", headers=gateway, json={"input": {}}, timeout=30
    ).json()
    assert len(current["result"]) == 129, "the gateway caches nothing without a revision"
    assert requests.get(f"{address}/v1/data/policy_data", headers=gateway, timeout=30).status_code == 401


def test_own_policy_files_change_the_revision_and_replace_those_of_the_chart(helm: Run) -> None:
    path = "policy_data/contractors/data.json"
    texts = [_rendered(helm, values, KUBERNETES[1]) for values in (LEAST, LEAST | {"opa": {"files": {path: "{}"}}})]
    names, data = zip(
        *(
            (each["metadata"]["name"], each["data"]["policy_data__contractors__data.json"])
            for text in texts
            for each in _of_kind(text, "ConfigMap")
        ),
        strict=True,
    )
    assert len(set(names)) == 2, "OPA starts again only if its pod names another ConfigMap"
    assert "weekdays" in data[0]
    assert data[1] == "{}"


def test_generated_secrets_are_distinct_and_need_the_postgresql_of_the_chart(helm: Run) -> None:
    (secret,) = _of_kind(_rendered(helm, VALUES["trial"], KUBERNETES[1]), "Secret")
    values = secret["stringData"]
    assert len(set(values.values())) == len(values) == 9
    assert values["LAKEGATE_DB_PASSWORD"] in values["PG_DATABASE_URL_WRITE"]
    assert values["OPENFGA_DB_PASSWORD"] in values["OPENFGA_DATASTORE_URI"]
    assert _of_kind(_rendered(helm, LEAST, KUBERNETES[1]), "Secret") == []
    refused = helm("template", "lake", str(CHART), "--kube-version", "1.34", values=LEAST | {"secretName": ""})
    assert refused.returncode != 0
    assert "embedded" in refused.stderr


def test_migrations_are_hooks_unless_they_need_a_part_of_the_same_installation(helm: Run) -> None:
    def hooks(values: dict[str, Any], *options: str) -> dict[str, str]:
        made = helm("template", "lake", str(CHART), "--kube-version", "1.34", *options, values=values)
        assert made.returncode == 0, made.stderr
        jobs = [each["metadata"] for each in _of_kind(made.stdout, "Job")]
        return {
            each["labels"]["app.kubernetes.io/name"] + each["name"].removeprefix("lake-lakegate")[:8]: each.get(
                "annotations", {}
            ).get("helm.sh/hook", "none")
            for each in jobs
        }

    hook = "pre-install,pre-upgrade"
    back = {"lakegate-migrate-rollbac": "pre-rollback"}
    mine, fga = "lakegate-migrate-migrate", "lakegate-migrate-openfga"
    assert hooks(OWN_PARTS) == back | {mine: hook}
    assert hooks(LEAST) == back | {mine: "none", fga: hook}
    assert hooks(VALUES["trial"]) == back | {mine: "none", fga: "none"}
    assert hooks(VALUES["trial"], "--is-upgrade") == back | {mine: hook, fga: hook}


def test_token_review_permission_is_granted_only_if_configured(helm: Run) -> None:
    for values, asks in ((LEAST, False), (ALL, True)):
        text = _rendered(helm, values, KUBERNETES[1])
        assert _deployment(text)["spec"]["template"]["spec"]["automountServiceAccountToken"] is asks
        others = [e for kind in ("Job", "Deployment") for e in _of_kind(text, kind) if e != _deployment(text)]
        assert {each["spec"]["template"]["spec"]["automountServiceAccountToken"] for each in others} == {False}
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

# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes control plane: etcd, the API server, the controllers and the scheduler, built from their own source.

No container runs. :class:`Nodes` takes the place of the kubelets: it reports each scheduled pod as running and ready,
and each pod of a Job as completed or failed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.rows.parts import free_port

SOURCE = Path(__file__).parent
VERSION = "v1.34.1"
#: Without it, the API server calls itself version 0.0.0, which the chart refuses.
_VERSION = "k8s.io/component-base/version"
_LINK = f"-s -w -X {_VERSION}.gitVersion={VERSION} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=34"
_START_SECONDS = 180.0


def program(cache: Path) -> Path:
    """Return the path of the control plane; build it if it is missing, which takes up to half an hour."""
    content = b"".join((SOURCE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")) + _LINK.encode()
    target = cache / "tools" / f"kubernetes-{hashlib.sha256(content).hexdigest()[:12]}" / "kubernetes"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="part-", dir=target.parent) as part:
            built = Path(part) / "kubernetes"
            environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-trimpath -mod=readonly"}
            command = ["go", "build", "-C", str(SOURCE), f"-ldflags={_LINK}", "-o", str(built), "."]
            subprocess.run(command, env=environment, check=True, timeout=5400)
            built.rename(target)
    return target


@dataclass(frozen=True)
class Cluster:
    """A running control plane and the credentials of its administrator."""

    url: str
    token: str
    kubeconfig: Path
    nodes: Nodes = field(repr=False)

    def request(self, method: str, path: str, body: object = None, media: str = "application/json") -> Any:
        """Send a request to the API server and return the JSON of the answer. Raises requests.HTTPError."""
        answer = requests.request(
            method,
            self.url + path,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": media},
            data=None if body is None else yaml.safe_dump(body) if "yaml" in media else None,
            json=body if "json" in media and body is not None else None,
            verify=False,  # noqa: S501 - the API server made its certificate itself, on this machine
            timeout=30,
        )
        if answer.status_code >= 400:
            raise requests.HTTPError(f"{method} {path}: {answer.status_code} {answer.text[:500]}", response=answer)
        return answer.json()

    def list(self, path: str) -> list[dict[str, Any]]:
        """Return the objects at a path of the API."""
        found: list[dict[str, Any]] = self.request("GET", path)["items"]
        return found


class Nodes:
    """Reports the state of pods, as kubelets do. `fails` decides which pods of Jobs fail."""

    def __init__(self) -> None:
        self.fails: Callable[[dict[str, Any]], bool] = lambda _: False
        self._stop = threading.Event()

    @contextmanager
    def running(self, cluster: Cluster) -> Iterator[None]:
        """Report states until the block ends."""
        cluster.request("POST", "/api/v1/nodes", _node())
        status = {"status": {"conditions": [_condition("Ready")], "allocatable": _SIZE, "capacity": _SIZE}}
        cluster.request("PATCH", "/api/v1/nodes/node/status", status, "application/merge-patch+json")
        worker = threading.Thread(target=self._work, args=(cluster,), daemon=True)
        worker.start()
        try:
            yield
        finally:
            self._stop.set()
            worker.join(timeout=60)

    def _work(self, cluster: Cluster) -> None:
        while not self._stop.wait(0.2):
            try:
                for pod in cluster.list("/api/v1/pods"):
                    self._report(cluster, pod)
            except (requests.RequestException, KeyError):
                continue  # the pod was deleted meanwhile, or the API server ends

    def _report(self, cluster: Cluster, pod: dict[str, Any]) -> None:
        meta, spec, phase = pod["metadata"], pod["spec"], pod["status"].get("phase")
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if "deletionTimestamp" in meta and "nodeName" in spec:
            cluster.request("DELETE", path, {"gracePeriodSeconds": 0})
        elif phase == "Pending" and "nodeName" in spec:
            job = any(each["kind"] == "Job" for each in meta.get("ownerReferences", ()))
            ended = ("Failed" if self.fails(pod) else "Succeeded") if job else "Running"
            conditions = [_condition(each) for each in ("Initialized", "ContainersReady", "Ready")]
            status = {"phase": ended, "conditions": [] if job else conditions, "startTime": _now()}
            cluster.request("PATCH", f"{path}/status", {"status": status}, "application/merge-patch+json")


_SIZE = {"cpu": "64", "memory": "256Gi", "pods": "500"}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _condition(kind: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": _now()}


def _node() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node", "labels": {"disk": "fast", "zone": "a"}}}


def _kubeconfig(directory: Path, url: str, token: str) -> Path:
    file = directory / "kubeconfig"
    settings = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    file.touch(0o600)
    file.write_text(yaml.safe_dump(settings))
    return file


def _signing_key(directory: Path) -> Path:
    """Write the key that signs the tokens of service accounts."""
    file = directory / "service-accounts.pem"
    file.touch(0o600)
    file.write_bytes(
        rsa.generate_private_key(65537, 2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    return file


@contextmanager
def _process(binary: Path, logs: Path, component: str, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    with (logs / f"{component}.log").open("wb") as log:
        process = subprocess.Popen([str(binary), component, *arguments], cwd=logs, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until_ready(cluster: Cluster, process: subprocess.Popen[bytes], logs: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            # The system's namespaces exist only after the API server has started all its own controllers.
            cluster.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
            return
        except requests.RequestException:
            if process.poll() is not None or time.monotonic() > deadline:
                tail = (logs / "kube-apiserver.log").read_text(errors="replace")[-3000:]
                raise AssertionError(f"the API server did not start:\n{tail}") from None
        time.sleep(0.5)


@contextmanager
def control_plane(binary: Path) -> Iterator[Cluster]:
    """Run a new cluster until the block ends. Its state is lost afterwards."""
    logs = Path(tempfile.mkdtemp(prefix="lakegate-kubernetes-"))
    etcd, peer, port, token = free_port(), free_port(), free_port(), secrets.token_hex(16)
    client, peers = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
    nodes = Nodes()
    url = f"https://127.0.0.1:{port}"
    cluster = Cluster(url, token, _kubeconfig(logs, url, token), nodes)
    key = _signing_key(logs)
    tokens = logs / "tokens.csv"
    tokens.touch(0o600)
    tokens.write_text(f"{token},admin,admin,system:masters\n")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, logs, ignore_errors=True)

        def start(component: str, *arguments: str) -> subprocess.Popen[bytes]:
            return stack.enter_context(_process(binary, logs, component, arguments))

        start(
            "etcd",
            f"--data-dir={logs}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
        )
        server = start(
            "kube-apiserver",
            f"--etcd-servers={client}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={logs}/certificates",
            f"--token-auth-file={tokens}",
            "--authorization-mode=Node,RBAC",
            # No kubelet would remove the taint of a new node.
            "--disable-admission-plugins=TaintNodesByCondition",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        )
        config = f"--kubeconfig={cluster.kubeconfig}"
        # The controllers wait for the API server. The lifecycle of nodes needs kubelets, which renew their leases.
        start(
            "kube-controller-manager",
            config,
            "--leader-elect=false",
            "--secure-port=0",
            "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
            f"--service-account-private-key-file={key}",
        )
        start("kube-scheduler", config, "--leader-elect=false", "--secure-port=0")
        _until_ready(cluster, server, logs)
        with nodes.running(cluster):
            yield cluster

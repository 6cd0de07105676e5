# SPDX-License-Identifier: Apache-2.0
"""The Helm chart and the values that its tests render."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lakegate.local.toolchain import GoTool

HELM = GoTool("helm", "v3.22.0", "helm.sh/helm/v3/cmd/helm")
CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm"
LEAST = {"oidc": {"issuer": "https://idp.example/realms/lake"}}
ALL: dict[str, Any] = LEAST | {
    "baseUri": "https://lake.example",
    "maintenanceMode": "read-only",
    "image": {"repository": "registry.example/lakegate", "tag": "1", "pullSecrets": [{"name": "pull"}]},
    "certificates": {"configMapName": "authorities"},
    "kubernetesAuthentication": {"enabled": True, "audience": "lake"},
    "secretSettings": ["PG_ENCRYPTION_KEY_OTHER", "KV2__SECRET_ID"],
    "autoscaling": {"enabled": True},
    "gatewayApi": {"enabled": True, "parentRefs": [{"name": "gateway"}], "hostnames": ["lake.example"]},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "service": {"annotations": {"example.com/internal": "true"}},
    "opa": {"files": {"gateway/guardrails/own.rego": "package gateway.guardrails.own\n"}},
    "podLabels": {"example.com/team": "lake"},
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
    "engineProbes": [
        {
            "name": "trino-lake",
            "schedule": "15 3 * * *",
            "image": "registry.example/lakegate-probe:1",
            "serviceAccountName": "lakegate-probe",
            "engine": "oidc~trino",
            "warehouse": "lake",
            "user": "oidc~probe",
            "arguments": ["--trino-url=https://trino.example"],
            "env": [{"name": "LAKEGATE_PROBE_TRINO_TOKEN", "value": "x"}],
        }
    ],
}
OWN_PARTS: dict[str, Any] = LEAST | {
    "openfga": {"enabled": False, "endpoint": "https://openfga.example"},
    "opa": {"enabled": False, "url": "https://opa.example"},
}
VALUES = {"minimal": LEAST, "all": ALL, "own parts": OWN_PARTS} | {
    each.stem: yaml.safe_load(each.read_text()) for each in sorted((CHART / "examples").iterdir())
}

# SPDX-License-Identifier: Apache-2.0
"""Settings of verifiers."""

from __future__ import annotations

SECRET = "whsec_a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="
MINIMAL: dict[str, dict[str, str]] = {
    "schema": {},
    "properties": {"REQUIRED_PROPERTIES": "owner,team=[a-z]+"},
    "partitions": {"PARTITION_EVOLUTION": "add_only", "PARTITION_TRANSFORMS": "day,bucket"},
    "columns": {"PROTECTED_COLUMNS": "id,#4"},
    "contract": {},
    "webhook": {"URL": "https://verifier.example/judge", "SECRET": SECRET},
    "opa": {"RULE": "verdict"},
}


def variables(kind: str, name: str = "v", **more: str) -> dict[str, str]:
    values = {"KIND": kind, **MINIMAL.get(kind, {}), **more}
    return {f"LAKEGATE__VERIFIERS__{name.upper()}__{each}": value for each, value in values.items()}

# SPDX-License-Identifier: Apache-2.0
"""Makes `policies/schemas/input.json` from the structs, so that no rule compiles that reads a field nobody sends.

Run `python -m gateway.opa.schema` after changing `gateway/access/policy.py`; a test keeps the file current.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from gateway.access.policy import PolicyRequest

SCHEMA_FILE = Path(__file__).resolve().parents[2] / "policies" / "schemas" / "input.json"


def input_schema() -> str:
    """The JSON Schema of `PolicyRequest` as text.

    OPA reads references but no titles or defaults, and takes an object without `additionalProperties: false` to have
    every field; so each struct is closed here, which is what makes a misspelt field an error of `opa check`.
    """
    schema = _for_opa(msgspec.json.schema(PolicyRequest))
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **schema}, indent=2, sort_keys=True) + "\n"


def _for_opa(node: Any) -> Any:
    if isinstance(node, list):
        return [_for_opa(value) for value in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _for_opa(value) for key, value in node.items() if key not in ("title", "default", "properties")}
    if "properties" in node:
        # The keys here are names of fields, also if one should be called "title".
        kept["properties"] = {name: _for_opa(value) for name, value in node["properties"].items()}
    if "properties" in kept:
        kept["additionalProperties"] = False
    return kept


def main() -> None:
    """Write the file."""
    SCHEMA_FILE.parent.mkdir(parents=True, exist_ok=True)
    SCHEMA_FILE.write_text(input_schema(), encoding="utf-8")


if __name__ == "__main__":
    main()

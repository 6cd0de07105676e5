# SPDX-License-Identifier: Apache-2.0
"""Compare with a published document: `python -m tests.spec_diff FILE`.

The exit code is 1 for a difference that `deliberate.toml` does not explain, and for an explanation without a
difference.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import yaml

import gateway.features.all_routes  # noqa: F401 - the import serves every operation
from gateway.api.openapi import is_catalog, openapi_document
from tests.spec_diff.compare import Difference, differences

_DELIBERATE = Path(__file__).parent / "deliberate.toml"


def main(file: str) -> int:
    """Compare and print."""
    published = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    found = differences(openapi_document(is_catalog), published)
    rules = tomllib.loads(_DELIBERATE.read_text(encoding="utf-8"))["difference"]
    used: set[int] = set()
    unexplained: list[Difference] = []
    for each in found:
        matching = [index for index, rule in enumerate(rules) if _explains(rule, each)]
        used.update(matching)
        if not matching:
            unexplained.append(each)
    for each in unexplained:
        print(f"unexplained: {each}")
    for index, rule in enumerate(rules):
        if index not in used:
            print(f"explained in vain: {rule}")
    print(f"{len(found)} differences, {len(found) - len(unexplained)} deliberate, {len(unexplained)} unexplained")
    return 1 if unexplained or len(used) < len(rules) else 0


def _explains(rule: dict[str, object], each: Difference) -> bool:
    endpoints = rule.get("endpoints")
    return (
        rule["kind"] == each.kind
        and rule["side"] == each.side
        and rule.get("what", each.what) == each.what
        and (endpoints is None or each.endpoint in endpoints)  # type: ignore[operator]  # a list, as the file is written
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make spec-diff FILE=<the protocol's published OpenAPI file>")
    sys.exit(main(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0
"""The bridge to Trino as an OPA bundle: one file with all policies for Trino's own OPA.

:mod:`gateway.opa.bundle` builds the file. The same policies give the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from gateway.opa.bundle import BundleName, policy_bundle
from gateway.opa.errors import InvalidPolicies
from gateway.opa.policy_files import read_policies
from lakegate.local.errors import StackError


def bridge_bundle(policies: Path) -> tuple[bytes, str]:
    """Return (bundle, revision) of the bridge in this complete folder of policies, without its tests.

    The revision is a digest of the rules. OPA writes it to each line of its decision log.

    Raises:
        StackError: the folder contains no bridge.
    """
    if not (policies / "trino").is_dir():
        raise StackError(f"{policies} contains no policies for Trino; install Lakegate again")
    try:
        built = policy_bundle(read_policies(policies), BundleName.TRINO)
    except InvalidPolicies as invalid:
        raise StackError(str(invalid)) from invalid
    return built.content, built.revision

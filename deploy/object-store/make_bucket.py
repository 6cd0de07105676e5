# SPDX-License-Identifier: Apache-2.0
"""Create the bucket of compose.yaml if it does not exist. The environment contains endpoint, bucket and keys."""

import os

import boto3
from botocore.exceptions import ClientError


def main() -> None:
    """Create the bucket. An error of the store ends the service, so that `serve` does not start."""
    store = boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT"])
    bucket = os.environ["S3_BUCKET"]
    try:
        store.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchBucket"):
            raise
        store.create_bucket(Bucket=bucket)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Run the medallion pipeline: PySpark jobs that refine tables in three layers (bronze, silver, gold) through the
gateway.

The pipeline is an ordinary client. It has its own identity (a bearer token or client credentials), and calls only the
HTTP API of the catalog. It has no key of the object store of its own, and imports nothing of the gateway: both use
`lakegate.restrictions`. The gateway decides about its requests as about those of every other client.
"""

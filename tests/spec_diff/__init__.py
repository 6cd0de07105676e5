# SPDX-License-Identifier: Apache-2.0
"""Compare our OpenAPI document with the published one of the Iceberg REST catalog: `make spec-diff FILE=…`."""

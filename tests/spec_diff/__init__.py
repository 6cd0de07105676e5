# SPDX-License-Identifier: Apache-2.0
"""Comparing our own OpenAPI document with the Iceberg REST catalog's published one: `make spec-diff FILE=…`."""

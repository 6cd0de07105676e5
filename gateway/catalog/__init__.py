# SPDX-License-Identifier: Apache-2.0
"""Use cases of the Iceberg catalog API. The first parameter of each public method is the `Permit` that allows it."""

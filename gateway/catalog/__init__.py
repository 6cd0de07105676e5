# SPDX-License-Identifier: Apache-2.0
"""The use cases of the Iceberg catalog API. Each public method takes a `Permit` first and cannot be called
without one.
"""

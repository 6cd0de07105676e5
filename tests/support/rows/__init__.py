# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL, OpenFGA and the rows of tests, without the API."""

# SPDX-License-Identifier: Apache-2.0
"""The tables of the gateway's database, with one module for each group of `gateway/db/`."""

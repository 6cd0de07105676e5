# SPDX-License-Identifier: Apache-2.0
"""The server: bootstrap, configuration of clients, the relationship model, statistics and policy bundles."""

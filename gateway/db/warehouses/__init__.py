# SPDX-License-Identifier: Apache-2.0
"""Statements on the server, projects, warehouses and relationship models, on drift, event deliveries and tickets.

Drift is a difference between OpenFGA and the rows. A ticket is the record of a change that waits for approval.
"""

# SPDX-License-Identifier: Apache-2.0
"""Combine the results of OpenFGA, OPA and other authorizers into decisions, for requests and for hypothetical checks.

A hypothetical check is a question such as "may Bob drop this table?". It permits nothing.
"""

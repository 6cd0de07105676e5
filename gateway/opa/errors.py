# SPDX-License-Identifier: Apache-2.0
"""The error of policies that cannot be used."""


class InvalidPolicies(Exception):
    """The policies of a directory cannot be used; the message names the file and what to do."""

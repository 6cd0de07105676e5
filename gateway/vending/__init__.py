# SPDX-License-Identifier: Apache-2.0
"""Credentials that leave the house.

Sessions of AssumeRole cut down to one prefix, and the properties clients read them from.
"""

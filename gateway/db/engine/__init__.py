# SPDX-License-Identifier: Apache-2.0
"""The database: reads in autocommit mode, and changes whose last statement also writes their audit record and
events.
"""

# SPDX-License-Identifier: Apache-2.0
"""Create the components that `gateway.app` connects: adapters to external systems, use cases and background tasks.

Only this package and `gateway.app` choose concrete classes. Other packages receive plain values and interfaces.
"""

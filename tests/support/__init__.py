# SPDX-License-Identifier: Apache-2.0
"""What tests share: builders of values and components."""

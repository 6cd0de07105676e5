# SPDX-License-Identifier: Apache-2.0
"""Sessions of Alibaba Cloud OSS. The builder of their policy and its proof share no code."""

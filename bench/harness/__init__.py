# SPDX-License-Identifier: Apache-2.0
"""What bench/run.py is made of."""

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# help.sh PROGRAM: fails unless --help says how it is used, on standard output, and ends with 0.
set -euo pipefail
"$1" --help 2>/dev/null | grep -q '^usage: .*\[--'

# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of examples that curl talks to, after smoke.sh. Without it the script ends
# here, with success unless WEIR_REQUIRE=all.
if ! command -v curl >/dev/null; then
    echo "smoke: there is no curl here" >&2
    [ "${WEIR_REQUIRE:-}" != all ]
    exit
fi

# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of WebSocket examples, after smoke.sh: their clients use the package `ws` of
# npm (tools/npm_packages.py). Without it the script ends here, with success unless
# WEIR_REQUIRE=all.
if ! node --eval 'require("ws")' 2>/dev/null; then
    echo "smoke: there is no node, or no package ws, here" >&2
    [ "${WEIR_REQUIRE:-}" != all ]
    exit
fi

# SPDX-License-Identifier: Apache-2.0
#
# For the scripts `valgrind` of examples that serve: watched PROGRAM ARGUMENTS... starts it under
# valgrind, which reports any error or lost memory when it ends. Without valgrind the script ends
# with success, unless WEIR_REQUIRE=all.
if ! command -v valgrind >/dev/null; then
    echo "valgrind: there is no valgrind here" >&2
    [ "${WEIR_REQUIRE:-}" != all ]
    exit
fi
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"
unset WEIR_IO

watched() {
    start valgrind --quiet --leak-check=full --errors-for-leak-kinds=definite,possible \
        --error-exitcode=9 --log-file="$dir/err" "$@"
}

# SPDX-License-Identifier: Apache-2.0
#
# For the scripts beside it: `install_from BUILD-DIR CMAKE` installs the libraries into $prefix, in
# a scratch directory that is removed at the end, and sets $lib to their folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

install_from() {
    "$2" --install "$1" --prefix "$prefix" >/dev/null
    lib=$(dirname "$(find "$prefix" -name libweir.so)")
}

fail() { # WORDS...
    echo "install: $*" >&2
    exit 1
}

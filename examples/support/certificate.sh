# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of examples that speak TLS, after smoke.sh.

# NAME [OPTIONS]: a certificate for that name, its own authority: $dir/NAME.pem, $dir/NAME.key
make_certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
        -addext "subjectAltName=DNS:$1" -keyout "$dir/$1.key" -out "$dir/$1.pem" "${@:2}" \
        2>/dev/null
}

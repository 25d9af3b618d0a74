# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of examples in front of servers of openssl's, after smoke.sh: certificates,
# s_server and s_client. Without openssl the script ends here, with success unless WEIR_REQUIRE=all.
if ! command -v openssl >/dev/null; then
    echo "smoke: there is no openssl here" >&2
    [ "${WEIR_REQUIRE:-}" != all ]
    exit
fi

. "$(dirname "${BASH_SOURCE[0]}")/certificate.sh"

# NAME [OPTIONS]: a server with that certificate, on $s_port; it sends lines back, reversed
start_s_server() {
    : >"$dir/s_server-$1"
    openssl s_server -accept 127.0.0.1:0 -cert "$dir/$1.pem" -key "$dir/$1.key" -rev "${@:2}" \
        >"$dir/s_server-$1" 2>&1 </dev/null &
    others+=($!)
    until_true grep -q '^ACCEPT .*:[1-9]' "$dir/s_server-$1"
    s_port=$(sed -n 's/^ACCEPT .*:\([0-9]*\)$/\1/p' "$dir/s_server-$1")
}

# PORT NAME TEXT [OPTIONS]: what a server with NAME's certificate answers to a line
ask_s_server() {
    printf '%s\nCLOSE\n' "$3" | openssl s_client -quiet -connect "127.0.0.1:$1" -servername "$2" \
        -verify_return_error -CAfile "$dir/$2.pem" -verify_hostname "$2" "${@:4}" 2>/dev/null ||
        true
}

# NAME: the same in the place of make_certificate's, but it was good for a day in 2020
make_expired() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
        -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>/dev/null
    mkdir -p "$dir/ca"
    : >"$dir/ca/index"
    printf '%s\n' '[ca]' 'default_ca = own' '[own]' "database = $dir/ca/index" 'policy = any' \
        "new_certs_dir = $dir/ca" 'default_md = sha256' 'rand_serial = yes' '[any]' \
        'commonName = supplied' >"$dir/ca/config"
    openssl ca -batch -config "$dir/ca/config" -selfsign -in "$dir/$1.csr" -keyfile "$dir/$1.key" \
        -startdate 20200101000000Z -enddate 20200102000000Z -notext -out "$dir/$1.pem" \
        -extfile <(echo "subjectAltName=DNS:$1") 2>/dev/null
}

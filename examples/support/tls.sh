# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of examples with --tls, after serving.sh: `if knows_tls FOLDER`, where the
# programs are. It is false without libweir-tls or openssl, unless WEIR_REQUIRE=all. $serves are the
# options of a server, $trusts those of a client that trusts it.
. "$(dirname "${BASH_SOURCE[0]}")/certificate.sh"

knows_tls() {
    local said
    said=$("$1/echo" --tls --port 0 --cert "$dir/none" 2>&1 || true)
    if [[ $said == *"built without TLS"* ]] || ! command -v openssl >/dev/null; then
        echo "smoke: there is no TLS here" >&2
        [ "${WEIR_REQUIRE:-}" != all ] || exit 1
        return 1
    fi
    make_certificate localhost
    serves="--tls --cert $dir/localhost.pem --key $dir/localhost.key"
    trusts="--tls --host localhost --ca $dir/localhost.pem"
}

# ARGUMENTS: talks to the server on $port that has this certificate, until its input ends.
s_client() {
    openssl s_client -quiet -no_ign_eof -verify_return_error -CAfile "$dir/localhost.pem" \
        -verify_hostname localhost -connect "127.0.0.1:$port" "$@" 2>"$dir/s_client"
}

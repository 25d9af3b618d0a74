# SPDX-License-Identifier: Apache-2.0
#
# For the smoke script, after smoke.sh: start_nginx and start_haproxy start servers on $dir/nginx
# and $dir/haproxy that want a PROXY header first, and answer each request with the client's address
# and port. They fail if there is no such program, unless WEIR_REQUIRE=all.

is_there() { # PROGRAM
    if PATH=$PATH:/usr/sbin command -v "$1" >/dev/null; then
        return 0
    fi
    echo "smoke: there is no $1 here" >&2
    [ "${WEIR_REQUIRE:-}" != all ] || exit 1
    return 1
}

start_nginx() {
    is_there nginx || return 1
    cat >"$dir/nginx.conf" <<END
daemon off;
master_process off;
pid $dir/nginx.pid;
error_log $dir/nginx.log;
events {}
http {
    access_log off;
    client_body_temp_path $dir/nginx.body;
    proxy_temp_path $dir/nginx.proxy;
    fastcgi_temp_path $dir/nginx.fastcgi;
    uwsgi_temp_path $dir/nginx.uwsgi;
    scgi_temp_path $dir/nginx.scgi;
    server {
        listen unix:$dir/nginx proxy_protocol;
        location / { return 200 "\$proxy_protocol_addr \$proxy_protocol_port\n"; }
    }
}
END
    PATH=$PATH:/usr/sbin nginx -c "$dir/nginx.conf" -p "$dir" -e "$dir/nginx.log" 2>/dev/null &
    others+=($!)
    until_true test -S "$dir/nginx"
}

start_haproxy() { # [FORMAT]: of the answer, default the address and port
    is_there haproxy || return 1
    cat >"$dir/haproxy.conf" <<END
defaults
    mode http
    timeout client 60s
    timeout connect 60s
    timeout server 60s
frontend who
    bind unix@$dir/haproxy accept-proxy
    http-request return status 200 content-type text/plain lf-string "${1:-%ci %cp}\n"
END
    PATH=$PATH:/usr/sbin haproxy -db -f "$dir/haproxy.conf" 2>"$dir/haproxy.log" &
    others+=($!)
    until_true test -S "$dir/haproxy"
}

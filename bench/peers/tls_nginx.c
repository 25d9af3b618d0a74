/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nginx as a TLS server: one process, no log. Small answers are in its configuration, so that no
 * file is opened; what is larger is a file, which it reads (from the page cache) and encrypts.
 */
#include "echo/competitor.h"

#include "peers/launched.h"
#include "support/folder.h"
#include "tls/crowd.h"
#include "tls/identity.h"

static const char configuration[] = "daemon off;\n"
                                    "master_process off;\n"
                                    "error_log stderr crit;\n"
                                    "pid nginx.pid;\n"
                                    "events { worker_connections 19900; use epoll; }\n"
                                    "http {\n"
                                    "    access_log off;\n"
                                    "    sendfile on;\n"
                                    "    keepalive_requests 1000000000;\n"
                                    "    keepalive_timeout 1h;\n"
                                    "    open_file_cache max=16;\n"
                                    "    client_body_temp_path .;\n"
                                    "    proxy_temp_path .;\n"
                                    "    fastcgi_temp_path .;\n"
                                    "    uwsgi_temp_path .;\n"
                                    "    scgi_temp_path .;\n"
                                    "    ssl_certificate certificate.pem;\n"
                                    "    ssl_certificate_key key.pem;\n"
                                    "    ssl_protocols TLSv1.2 TLSv1.3;\n"
                                    "    ssl_session_tickets %s;\n"
                                    "    ssl_conf_command NumTickets %d;\n"
                                    "    server {\n"
                                    "        listen 127.0.0.1:%u reuseport backlog=4096 %s;\n"
                                    "        location = /0 { return 200 \"%0*d\"; }\n"
                                    "        location / { root .; }\n"
                                    "    }\n"
                                    "}\n";

static bool configured_tickets, configured_plain;

static void server_configure(bench_round *round)
{
    int64_t size = bench_setting(round, "answer", 0);

    configured_plain = bench_setting(round, "version", 13) == 0;
    configured_tickets = bench_setting(round, "tickets", 0) + bench_setting(round, "resumed", 0);
    bench_setting(round, "file", 0); /* always from one */
    bench_folder_write("certificate.pem", tls_identity_certificate());
    bench_folder_write("key.pem", tls_identity_key());
    if (size > 0)
        bench_folder_write_sized(size);
}

static void write_configuration(uint16_t port)
{
    FILE *file = bench_folder_create("nginx.conf");

    fprintf(file, configuration, configured_tickets ? "on" : "off", configured_tickets ? 2 : 0,
            port, configured_plain ? "" : "ssl", TLS_REQUEST_SIZE, 0);
    fclose(file);
}

static void server_run(int cpu)
{
    uint16_t port = launched_reserve_port();

    write_configuration(port);
    launched_announce_later(port);
    bench_pin(cpu);
    execl(NGINX_PROGRAM, "nginx", "-p", bench_folder(), "-c", "nginx.conf", "-e", "stderr",
          (char *)NULL);
}

#include "tls/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {TLS_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}

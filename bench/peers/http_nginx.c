/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nginx with the usual settings for speed: one process, no log, sendfile, connections
 * to the upstream server kept. cache=0: without its cache of open files.
 */
#include "echo/competitor.h"

#include "http/service.h"
#include "peers/launched.h"

static const char configuration[] = "daemon off;\n"
                                    "master_process off;\n"
                                    "error_log stderr crit;\n"
                                    "pid nginx.pid;\n"
                                    "events { worker_connections 19900; use epoll; }\n"
                                    "http {\n"
                                    "    access_log off;\n"
                                    "    sendfile on;\n"
                                    "    tcp_nopush on;\n"
                                    "    keepalive_requests 1000000000;\n"
                                    "    keepalive_timeout 1h;\n"
                                    "    open_file_cache %s;\n"
                                    "    client_body_temp_path .;\n"
                                    "    proxy_temp_path .;\n"
                                    "    fastcgi_temp_path .;\n"
                                    "    uwsgi_temp_path .;\n"
                                    "    scgi_temp_path .;\n"
                                    "    default_type text/plain;\n"
                                    "    upstream canned {\n"
                                    "        server 127.0.0.1:%u;\n"
                                    "        keepalive 1024;\n"
                                    "        keepalive_requests 1000000000;\n"
                                    "        keepalive_timeout 1h;\n"
                                    "    }\n"
                                    "    server {\n"
                                    "        listen 127.0.0.1:%u reuseport backlog=4096;\n"
                                    "        location = / { %s }\n"
                                    "        location / { root .; }\n"
                                    "    }\n"
                                    "}\n";

static bool caches;

static void server_configure(bench_round *round)
{
    service_configure(round);
    caches = bench_setting(round, "cache", 1) != 0;
}

static void write_configuration(uint16_t port)
{
    static const char proxy[] = "proxy_pass http://canned; proxy_http_version 1.1;"
                                " proxy_set_header Connection \"\";";
    static const char hello[] = "return 200 \"" HTTP_HELLO "\";";
    FILE *file = bench_folder_create("nginx.conf");

    fprintf(file, configuration, caches ? "max=1000 inactive=60s" : "off",
            service.upstream > 0 ? service.upstream : 1, port,
            service.serve == SERVE_PROXY ? proxy : hello);
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

#include "http/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {HTTP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}

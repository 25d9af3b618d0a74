/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nginx as a TLS server: one process, no log. Small answers are in its configuration, so that no
 * file is opened; what is larger is a file, which it reads (from the page cache) and encrypts.
 */
#include "echo/competitor.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

static char folder[] = "/tmp/weir-bench-nginx-XXXXXX";
static bool configured_tickets, configured_plain;
static int64_t file_size; /* 0: none */

static FILE *create_file(const char *name)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    bench_require(file != NULL, path);
    return file;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = create_file(name);

    fputs(text, file);
    fclose(file);
}

/* The file that has its size as its name. */
static void write_file(int64_t size)
{
    char name[32];
    FILE *file;

    snprintf(name, sizeof(name), "%lld", (long long)size);
    file = create_file(name);
    for (int64_t i = 0; i < size; i++)
        putc((int)(i % 251), file);
    fclose(file);
}

static void remove_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    bench_require(system(command) == 0, command);
}

static void make_folder_once(void)
{
    static bool made;

    if (made)
        return;
    made = true;
    bench_require(mkdtemp(folder) != NULL, "mkdtemp");
    atexit(remove_folder);
    write_text("certificate.pem", tls_identity_certificate());
    write_text("key.pem", tls_identity_key());
}

static void server_configure(bench_round *round)
{
    int64_t size = bench_setting(round, "answer", 0);

    configured_plain = bench_setting(round, "version", 13) == 0;
    configured_tickets = bench_setting(round, "tickets", 0) + bench_setting(round, "resumed", 0);
    bench_setting(round, "file", 0); /* always from one */
    make_folder_once();
    if (size > 0 && size != file_size)
        write_file(file_size = size);
}

/* A free port, which this socket keeps so until nginx, who shares it, listens there. */
static int reserve_port(struct sockaddr_in *ret_address)
{
    int descriptor = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    socklen_t length = echo_server_address(0, (struct sockaddr_storage *)ret_address);

    bench_require(descriptor >= 0, "socket");
    bench_require(setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0,
                  "SO_REUSEPORT");
    bench_require(bind(descriptor, (struct sockaddr *)ret_address, length) == 0, "bind");
    bench_require(getsockname(descriptor, (struct sockaddr *)ret_address, &length) == 0,
                  "getsockname");
    return descriptor;
}

/* A process of its own, because nginx cannot say when it listens. */
static void announce_later(const struct sockaddr_in *address)
{
    int descriptor, err;

    if (fork() != 0)
        return;
    do {
        usleep(1000);
        descriptor = socket(AF_INET, SOCK_STREAM, 0);
        err = connect(descriptor, (const struct sockaddr *)address, sizeof(*address));
        close(descriptor);
    } while (err != 0 && getppid() != 1);
    echo_server_announce_port(ntohs(address->sin_port));
    _exit(0);
}

static void write_configuration(uint16_t port)
{
    FILE *file = create_file("nginx.conf");

    fprintf(file, configuration, configured_tickets ? "on" : "off", configured_tickets ? 2 : 0,
            port, configured_plain ? "" : "ssl", TLS_REQUEST_SIZE, 0);
    fclose(file);
}

static void server_run(int cpu)
{
    struct sockaddr_storage address;
    struct sockaddr_in *in = (struct sockaddr_in *)&address;

    reserve_port(in);
    write_configuration(ntohs(in->sin_port));
    announce_later(in);
    bench_pin(cpu);
    execl(NGINX_PROGRAM, "nginx", "-p", folder, "-c", "nginx.conf", "-e", "stderr", (char *)NULL);
}

#include "tls/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {TLS_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}

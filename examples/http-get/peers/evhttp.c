/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evhttp FOLDER: the server of libevent. Prints its port. Files of the folder.
 */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void on_request(struct evhttp_request *request, void *folder)
{
    struct evbuffer *content = evbuffer_new();
    char path[4096];
    struct stat file;
    int fd;

    snprintf(path, sizeof(path), "%s%s", (const char *)folder, evhttp_request_get_uri(request));
    fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &file) < 0 || evbuffer_add_file(content, fd, 0, file.st_size) < 0)
        evhttp_send_error(request, 404, "Not Found");
    else
        evhttp_send_reply(request, 200, "OK", content);
    evbuffer_free(content);
}

int main(int argc, char **argv)
{
    struct event_base *base = event_base_new();
    struct evhttp *server = evhttp_new(base);
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(server, "127.0.0.1", 0);
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    if (argc != 2 || bound == NULL)
        return 2;
    getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &length);
    evhttp_set_gencb(server, on_request, argv[1]);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return event_base_dispatch(base);
}

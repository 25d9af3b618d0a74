/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/file_site.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/file_range.h>

#include "support/memory.h"
#include "support/protocol/http/exchange_fixture.h"

void file_site_open(struct file_site *site, const weir_http_files_options *options)
{
    weir_http_files_options all = *options;

    site->tree = disk_tree_create();
    disk_tree_folder(site->tree, "root");
    all.root = disk_tree_path(site->tree, "root");
    all.blocking = all.group == NULL;
    assert_int_equal(weir_http_files_root_create(&all, &site->root), 0);
    site->embedded = exchange_open((const weir_http_route[]){
        {"*", "/files/{path*}", weir_http_files, .user_data = site->root}, {0}});
}

void file_site_close(struct file_site *site)
{
    weir_embedded_release(site->embedded);
    weir_http_files_root_release(site->root);
    disk_tree_destroy(site->tree);
}

static void add_fields(weir_http_request *request, const char *fields)
{
    size_t length, name;

    for (; *fields != '\0'; fields += length + (fields[length] == '\n')) {
        length = strcspn(fields, "\n");
        name = strcspn(fields, ":");
        assert_true(name < length);
        assert_int_equal(weir_http_headers_add_named(
                             weir_http_request_headers(request), weir_span_of(fields, name),
                             weir_span_of(fields + name + 1, length - name - 1)),
                         0);
    }
}

void file_site_put(struct file_site *site, const char *method, const char *target,
                   const char *fields)
{
    weir_http_request *request = NULL;

    if (weir_http_request_create(method, target, &request) < 0) {
        assert_true(test_memory_failed());
        return;
    }
    add_fields(request, fields);
    (void)weir_embedded_write_inbound(site->embedded, weir_http_request_msg(request));
    (void)weir_embedded_write_inbound(site->embedded, weir_http_end_static());
}

static void read_head(const weir_http_response *response, struct file_reply *reply)
{
    const weir_http_headers *headers = weir_http_response_headers(response);
    size_t used = 0;

    reply->status = weir_http_response_status(response);
    reply->length = weir_http_response_content_length(response);
    for (size_t i = 0; i < weir_http_headers_count(headers); i++) {
        weir_http_field field = weir_http_headers_at(headers, i);

        used += (size_t)snprintf(reply->fields + used, sizeof(reply->fields) - used, "%.*s: %.*s\n",
                                 (int)field.name.length, (const char *)field.name.data,
                                 (int)field.value.length, (const char *)field.value.data);
        assert_true(used < sizeof(reply->fields));
    }
}

static void read_content(weir_msg *msg, struct file_reply *reply)
{
    weir_file_range *range = weir_file_range_of(msg);
    weir_buf *buf = weir_buf_of(msg);
    size_t size = range != NULL ? (size_t)weir_file_range_remaining(range) : weir_buf_readable(buf);

    assert_true(reply->size + size < sizeof(reply->body));
    if (range == NULL) {
        memcpy(reply->body + reply->size, weir_buf_bytes(buf), size);
    } else {
        reply->has_range = true;
        assert_int_equal(pread(weir_file_range_descriptor(range), reply->body + reply->size, size,
                               weir_file_range_position(range)),
                         (ssize_t)size);
    }
    reply->size += size;
    reply->body[reply->size] = '\0';
}

void file_site_read(struct file_site *site, struct file_reply *reply)
{
    weir_msg *msg;

    memset(reply, 0, sizeof(*reply));
    while ((msg = weir_embedded_read_outbound(site->embedded)) != NULL) {
        if (weir_http_response_of(msg) != NULL)
            read_head(weir_http_response_of(msg), reply);
        else if (weir_http_end_of(msg) != NULL)
            reply->has_ended = true;
        else
            read_content(msg, reply);
        weir_msg_release(msg);
    }
}

void file_site_get(struct file_site *site, const char *method, const char *target,
                   const char *fields, struct file_reply *reply)
{
    file_site_put(site, method, target, fields);
    file_site_read(site, reply);
}

const char *file_reply_field(const struct file_reply *reply, const char *name)
{
    static char value[256];
    const char *line = reply->fields;
    size_t length = strlen(name);

    value[0] = '\0';
    for (; line != NULL && *line != '\0'; line = strchr(line, '\n') + 1) {
        if (strncasecmp(line, name, length) == 0 && line[length] == ':')
            (void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(line + length + 2, "\n"),
                           line + length + 2);
    }
    return value;
}

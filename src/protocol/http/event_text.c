/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/event_text.h"

#include <errno.h>

static bool is_line(const char *text)
{
    return text == NULL ||
           (strpbrk(text, "\r\n") == NULL && weir_span_is_utf8(weir_span_of_text(text)));
}

int weir__http_event_check(const weir_http_event *event)
{
    if ((event->data == NULL && event->id == NULL) || !is_line(event->type) || !is_line(event->id))
        return -EINVAL;
    return event->data == NULL || weir_span_is_utf8(weir_span_of_text(event->data)) ? 0 : -EINVAL;
}

static int write_line(weir_buf *to, const char *name, const char *value, size_t length)
{
    int err = weir_buf_write_string(to, name);

    if (!err)
        err = weir_buf_write_bytes(to, value, length);
    return err ? err : weir_buf_write_bytes(to, "\n", 1);
}

/* One line for each line of the data; a line end is CR, LF, or both. */
static int write_data(weir_buf *to, const char *data)
{
    size_t length;
    int err;

    for (;;) {
        length = strcspn(data, "\r\n");
        err = write_line(to, "data: ", data, length);
        if (err || data[length] == '\0')
            return err;
        data += length;
        data += data[0] == '\r' && data[1] == '\n' ? 2 : 1;
    }
}

int weir__http_event_write(const weir_http_event *event, weir_buf *to)
{
    int err = 0;

    if (event->type != NULL)
        err = write_line(to, "event: ", event->type, strlen(event->type));
    if (!err && event->id != NULL)
        err = write_line(to, "id: ", event->id, strlen(event->id));
    if (!err && event->data != NULL)
        err = write_data(to, event->data);
    return err ? err : weir_buf_write_bytes(to, "\n", 1);
}

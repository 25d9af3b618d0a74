/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/coded_content.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/test.h"

static weir_buf *make(size_t capacity)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(capacity, 0, &buf), 0);
    return buf;
}

weir_buf *content_text(size_t length)
{
    weir_buf *text = make(length);

    for (unsigned i = 0; weir_buf_readable(text) < length; i++)
        assert_int_equal(weir_buf_printf(text, "line %u of a text that repeats; ", i * 7919), 0);
    assert_int_equal(weir_buf_set_write_index(text, length), 0);
    return text;
}

weir_buf *content_noise(size_t length)
{
    weir_buf *noise = make(length);
    uint64_t state = 88172645463325252u;

    for (size_t i = 0; i < length; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        assert_int_equal(weir_buf_write_u8(noise, (uint8_t)state), 0);
    }
    return noise;
}

weir_buf *content_bomb(size_t length, const weir__http_coding *const *codings)
{
    weir_buf *content = make(length), *coded;

    assert_int_equal(weir_buf_write_fill(content, 0, length), 0);
    for (; *codings != NULL; codings++) {
        coded = content_encode(*codings, content, SIZE_MAX, false);
        weir_buf_release(content);
        content = coded;
    }
    return content;
}

weir_buf *content_encode(const weir__http_coding *coding, const weir_buf *content, size_t piece,
                         bool flushes)
{
    weir__http_content_encoder encoder = {0};
    weir_span rest = weir_buf_span(content);
    weir_buf *out = make(0);

    assert_int_equal(weir__http_content_encoder_begin(&encoder, coding, 5, (int64_t)rest.length),
                     0);
    while (rest.length > 0) {
        weir_span next = {rest.data, rest.length < piece ? rest.length : piece};

        assert_int_equal(
            weir__http_content_encoder_run(
                &encoder, next, flushes ? WEIR__HTTP_CODING_FLUSH : WEIR__HTTP_CODING_RUN, out),
            0);
        rest.data += next.length;
        rest.length -= next.length;
    }
    assert_int_equal(weir__http_content_encoder_run(&encoder, rest, WEIR__HTTP_CODING_FINISH, out),
                     0);
    weir__http_content_encoder_end(&encoder);
    return out;
}

weir_buf *content_pipe(const char *command, const weir_buf *in)
{
    char path[] = "/tmp/weir-content-XXXXXX", line[256], bytes[4096];
    weir_buf *out = make(0);
    int file = mkstemp(path);
    size_t count;
    FILE *pipe;

    assert_true(file >= 0);
    assert_int_equal(write(file, weir_buf_bytes(in), weir_buf_readable(in)),
                     (ssize_t)weir_buf_readable(in));
    close(file);
    (void)snprintf(line, sizeof(line), "%s < %s 2>/dev/null", command, path);
    pipe = popen(line, "r");
    assert_non_null(pipe);
    while ((count = fread(bytes, 1, sizeof(bytes), pipe)) > 0)
        assert_int_equal(weir_buf_write_bytes(out, bytes, count), 0);
    unlink(path);
    if (pclose(pipe) == 0)
        return out;
    weir_buf_release(out);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/text_codecs.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/codec.h>
#include <weir/error.h>

#include "base/memory.h"
#include "base/options.h"
#include "codec/contiguous.h"

struct weir_string {
    weir_msg msg;
    size_t length;
    char text[];
};

/* ---- strings ---- */

static void destroy(weir_msg *msg)
{
    weir__free(msg);
}

static size_t size_of(const weir_msg *msg)
{
    return ((const weir_string *)(const void *)msg)->length;
}

const weir_msg_type weir_string_type = {.name = "string", .destroy = destroy, .size = size_of};

static weir_string *allocate(size_t length)
{
    weir_string *string = weir__alloc(sizeof(*string) + length + 1);

    if (string == NULL)
        return NULL;
    weir_msg_init(&string->msg, &weir_string_type);
    string->length = length;
    string->text[length] = '\0';
    return string;
}

int weir_string_create_from(const void *bytes, size_t length, weir_string **ret_string)
{
    weir_string *string;

    if (length > 0 && memchr(bytes, '\0', length) != NULL)
        return -EINVAL;
    string = allocate(length);
    if (string == NULL)
        return -ENOMEM;
    if (length > 0)
        memcpy(string->text, bytes, length);
    *ret_string = string;
    return 0;
}

int weir_string_create(const char *text, weir_string **ret_string)
{
    return weir_string_create_from(text, strlen(text), ret_string);
}

/* `%c` may print a NUL. */
static WEIR_PRINTF(2, 0) int print(size_t length, const char *format, va_list arguments,
                                   weir_string **ret_string)
{
    weir_string *string = allocate(length);

    if (string == NULL)
        return -ENOMEM;
    (void)vsnprintf(string->text, length + 1, format, arguments);
    if (memchr(string->text, '\0', length) != NULL) {
        weir_string_release(string);
        return -EINVAL;
    }
    *ret_string = string;
    return 0;
}

int weir_string_format(weir_string **ret_string, const char *format, ...)
{
    va_list arguments;
    int length, err = -EINVAL;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length >= 0) {
        va_start(arguments, format);
        err = print((size_t)length, format, arguments, ret_string);
        va_end(arguments);
    }
    return err;
}

const char *weir_string_text(const weir_string *string)
{
    return string->text;
}

size_t weir_string_length(const weir_string *string)
{
    return string->length;
}

/* ---- the codec ---- */

struct strings {
    weir_msg_decoder_state decoder;
    bool utf8;
};

static int make_string(weir_ctx *ctx, const weir_buf *in, weir_string **ret_string)
{
    const struct strings *strings = weir_ctx_state(ctx);
    int err;

    if (strings->utf8 && !weir_buf_is_utf8(in))
        return weir_msg_decoder_fail(ctx, WEIR_EMALFORMED, "text is not valid UTF-8");
    err = weir_string_create_from(weir_buf_bytes(in), weir_buf_readable(in), ret_string);
    return err == -EINVAL ? weir_msg_decoder_fail(ctx, WEIR_EMALFORMED, "text with an embedded NUL")
                          : err;
}

static int decode(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    weir_string *string;
    weir_buf *in;
    int err = weir__contiguous_bytes(msg, &in);

    if (err < 0)
        return err;
    err = make_string(ctx, in, &string);
    weir_buf_release(in);
    return err < 0 ? err : weir_msg_list_add(out, weir_string_msg(string));
}

static int encode(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    const weir_string *string = weir_string_of(msg);
    weir_buf *buf;
    int err = weir_buf_create_from(string->text, string->length, &buf);

    (void)ctx;
    return err < 0 ? err : weir_msg_list_add(out, weir_buf_msg(buf));
}

static int init(void *state, const void *given)
{
    struct strings *strings = state;
    weir_strings_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        strings->utf8 = options.utf8;
    return err;
}

static const weir_msg_codec codec = {
    .decoder = {.handler = {.name = "strings", .init = init, WEIR_MSG_CODEC_SLOTS(struct strings)},
                .accepts = weir__is_bytes,
                .decode = decode},
    .type = &weir_string_type,
    .encode = encode,
};

int weir_strings_add(weir_pipeline *pipeline, const weir_strings_options *options)
{
    return weir_pipeline_add_last(pipeline, &codec.decoder.handler, options);
}

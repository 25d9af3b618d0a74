/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Urlencoded forms: one block with the pairs and their decoded text.
 */
#include <weir/http_body.h>

#include <errno.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "protocol/http/chars.h"
#include "protocol/http/parameters.h"
#include "protocol/http/upload.h"

#define MAX_PAIRS 1000

struct pair {
    weir_span name;
    weir_span value;
};

struct weir_http_form {
    size_t count;
    struct pair pairs[]; /* the text is behind them */
};

static int count_pairs(weir_span text, size_t max_pairs, size_t *ret_count)
{
    weir_span name, value;
    size_t count = 0;

    while (weir_http_query_next(&text, &name, &value))
        if (++count > max_pairs)
            return WEIR_ETOOLONG;
    *ret_count = count;
    return 0;
}

/* Decodes a part to `*to`, and moves that behind it. */
static int decode(weir_span *text, uint8_t **to)
{
    ssize_t length = weir_http_query_decode(*text, *to);

    if (length < 0)
        return (int)length;
    *text = weir_span_of(*to, (size_t)length);
    *to += length;
    return 0;
}

int weir_http_form_create(weir_span text, size_t max_pairs, weir_http_form **ret_form)
{
    weir_http_form *form;
    struct pair *pair;
    uint8_t *to;
    size_t count;
    int err = count_pairs(text, max_pairs > 0 ? max_pairs : MAX_PAIRS, &count);

    if (err)
        return err;
    form = weir_memory_alloc(sizeof(*form) + count * sizeof(*pair) + text.length);
    if (form == NULL)
        return -ENOMEM;
    form->count = count;
    to = (uint8_t *)(form->pairs + count);
    for (pair = form->pairs; !err && pair < form->pairs + count; pair++) {
        (void)weir_http_query_next(&text, &pair->name, &pair->value);
        err = decode(&pair->name, &to);
        if (!err)
            err = decode(&pair->value, &to);
    }
    if (err) {
        weir_memory_free(form);
        return err;
    }
    *ret_form = form;
    return 0;
}

void weir_http_form_release(weir_http_form *form)
{
    weir_memory_free(form);
}

size_t weir_http_form_count(const weir_http_form *form)
{
    return form->count;
}

weir_span weir_http_form_name(const weir_http_form *form, size_t index)
{
    return index < form->count ? form->pairs[index].name : weir_span_of(NULL, 0);
}

weir_span weir_http_form_value(const weir_http_form *form, size_t index)
{
    return index < form->count ? form->pairs[index].value : weir_span_of(NULL, 0);
}

weir_span weir_http_form_get(const weir_http_form *form, const char *name)
{
    weir_span wanted = weir_span_of_text(name);

    for (size_t i = 0; i < form->count; i++)
        if (weir_span_equal(form->pairs[i].name, wanted))
            return form->pairs[i].value;
    return weir_span_of(NULL, 0);
}

int weir_http_form_read(weir_http_exchange *exchange, weir_http_form **ret_form)
{
    const weir_http_request *request = weir_http_exchange_request(exchange);
    weir_span type =
        weir_http_headers_get(weir_http_request_headers(request), WEIR_HTTP_CONTENT_TYPE);
    weir_buf *content = weir_http_exchange_content(exchange);
    int err = -ENOTSUP;

    if (content == NULL)
        err = -EINVAL;
    else if (weir__http_is_text(weir__http_parameters_begin(&type),
                                "application/x-www-form-urlencoded"))
        err = weir_http_form_create(weir_buf_span(content), 0, ret_form);
    if (err)
        (void)weir_http_respond_error(exchange, weir__http_body_status(err), NULL);
    return err;
}

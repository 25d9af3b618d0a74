/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/parameters.h"

#include "protocol/http/chars.h"

/* The index of the first `byte` that is not within quotes; the length if there is none. */
static size_t find_unquoted(weir_span text, uint8_t byte)
{
    bool is_quoted = false;
    size_t at = 0;

    for (; at < text.length && (is_quoted || text.data[at] != byte); at++) {
        if (text.data[at] == '"')
            is_quoted = !is_quoted;
        else if (is_quoted && text.data[at] == '\\' && at + 1 < text.length)
            at++;
    }
    return at < text.length ? at : text.length;
}

bool weir__http_list_next(weir_span *rest, weir_span *ret_element)
{
    size_t length;

    while (rest->length > 0) {
        length = find_unquoted(*rest, ',');
        *ret_element = weir__http_trimmed(weir_span_of(rest->data, length));
        *rest = weir__http_span_from(*rest, length + (length < rest->length));
        if (ret_element->length > 0)
            return true;
    }
    return false;
}

weir_span weir__http_parameters_begin(weir_span *rest)
{
    size_t length = find_unquoted(*rest, ';');
    weir_span value = weir_span_of(rest->data, length);

    *rest = weir__http_span_from(*rest, length);
    return weir__http_trimmed(value);
}

static bool is_quotable(uint8_t byte)
{
    return byte == '\t' || (byte >= ' ' && byte != 0x7f);
}

/* Cuts a quoted string off the text, behind its first quote. */
static int cut_quoted(weir_span *text, weir_span *ret_value)
{
    size_t at = 0;

    while (at < text->length && text->data[at] != '"') {
        at += text->data[at] == '\\';
        if (at == text->length || !is_quotable(text->data[at]))
            return WEIR_EMALFORMED;
        at++;
    }
    if (at == text->length)
        return WEIR_EMALFORMED;
    *ret_value = weir_span_of(text->data, at);
    *text = weir__http_span_from(*text, at + 1);
    return 0;
}

static weir_span cut_token(weir_span *text)
{
    size_t length = 0;

    while (length < text->length && weir__http_char_is(text->data[length], WEIR__HTTP_TOKEN))
        length++;
    *text = weir__http_span_from(*text, length);
    return weir_span_of(text->data - length, length);
}

int weir__http_parameters_next(weir_span *rest, weir__http_parameter *ret_parameter)
{
    weir__http_parameter found = {.is_quoted = false};
    weir_span text = *rest;

    while (text.length > 0 && text.data[0] == ';')
        text = weir__http_trimmed(weir__http_span_from(text, 1));
    *rest = text;
    if (text.length == 0)
        return 0;
    found.name = cut_token(&text);
    if (found.name.length == 0 || text.length < 2 || text.data[0] != '=')
        return WEIR_EMALFORMED;
    text = weir__http_span_from(text, 1);
    found.is_quoted = text.data[0] == '"';
    if (found.is_quoted) {
        text = weir__http_span_from(text, 1);
        if (cut_quoted(&text, &found.value) != 0)
            return WEIR_EMALFORMED;
    } else {
        found.value = cut_token(&text);
        if (found.value.length == 0)
            return WEIR_EMALFORMED;
    }
    text = weir__http_trimmed(text);
    if (text.length > 0 && text.data[0] != ';')
        return WEIR_EMALFORMED;
    *rest = text;
    *ret_parameter = found;
    return 1;
}

int weir__http_parameters_find(weir_span parameters, const char *name,
                               weir__http_parameter *ret_parameter)
{
    weir__http_parameter found;
    int more;

    while ((more = weir__http_parameters_next(&parameters, &found)) > 0) {
        if (weir__http_is_text(found.name, name)) {
            *ret_parameter = found;
            return 1;
        }
    }
    return more;
}

size_t weir__http_unquote(const weir__http_parameter *parameter, void *to)
{
    uint8_t *bytes = to;
    size_t length = 0;

    for (size_t at = 0; at < parameter->value.length; at++) {
        if (parameter->is_quoted && parameter->value.data[at] == '\\')
            at++;
        bytes[length++] = parameter->value.data[at];
    }
    return length;
}

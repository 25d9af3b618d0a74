/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/part.h"

#include "protocol/http/chars.h"
#include "protocol/http/parameters.h"

#define DEFAULT_TYPE "text/plain"

/* ---- fields ---- */

static bool has_control(weir_span text)
{
    for (size_t i = 0; i < text.length; i++)
        if ((text.data[i] < ' ' && text.data[i] != '\t') || text.data[i] == 0x7f)
            return true;
    return false;
}

/* Cuts the next line off. Returns 1, 0 at the end, or WEIR_EMALFORMED. */
static int next_field(weir_span *rest, weir_span *ret_name, weir_span *ret_value)
{
    weir_span line, name;

    if (rest->length == 0)
        return 0;
    line = weir__http_cut(rest, '\n');
    if (line.length == 0 || line.data[line.length - 1] != '\r')
        return WEIR_EMALFORMED;
    line.length--;
    name = weir__http_cut(&line, ':');
    if (line.data == NULL || !weir__http_is_token(name) || has_control(line))
        return WEIR_EMALFORMED;
    *ret_name = name;
    *ret_value = weir__http_trimmed(line);
    return 1;
}

weir_span weir_http_part_field(const weir_http_part *part, const char *name)
{
    weir_span rest = part->fields, found, value;

    while (next_field(&rest, &found, &value) > 0)
        if (weir__http_is_text(found, name))
            return value;
    return weir_span_of(NULL, 0);
}

/* ---- Content-Disposition ---- */

/* Text that is decoded, behind each other. */
struct decoded {
    uint8_t *start;
    size_t length;
};

/* Browsers do not escape backslashes of file names: only \" and \\ are escapes. */
static weir_span unquote(const weir__http_parameter *parameter, struct decoded *decoded)
{
    weir_span value = parameter->value;
    uint8_t *to = decoded->start + decoded->length;
    size_t length = 0;

    if (!parameter->is_quoted || weir_span_find(value, '\\') < 0)
        return value;
    for (size_t at = 0; at < value.length; at++) {
        if (value.data[at] == '\\' && at + 1 < value.length &&
            (value.data[at + 1] == '"' || value.data[at + 1] == '\\'))
            at++;
        to[length++] = value.data[at];
    }
    decoded->length += length;
    return weir_span_of(to, length);
}

/* UTF-8'language'percent-encoded (RFC 8187). False if it is something else. */
static bool decode_extended(const weir__http_parameter *parameter, struct decoded *decoded,
                            weir_span *ret_text)
{
    weir_span text = parameter->value, charset = weir__http_cut(&text, '\'');
    uint8_t *to = decoded->start + decoded->length;
    ssize_t length;

    (void)weir__http_cut(&text, '\'');
    if (text.data == NULL || parameter->is_quoted || !weir__http_is_text(charset, "utf-8"))
        return false;
    length = weir_http_percent_decode(text, to);
    if (length < 0 || !weir_span_is_utf8(weir_span_of(to, (size_t)length)))
        return false;
    decoded->length += (size_t)length;
    *ret_text = weir_span_of(to, (size_t)length);
    return true;
}

/* A parameter that occurs twice is ambiguous. */
static int read_disposition(weir_span value, struct decoded *decoded, weir_http_part *part)
{
    weir_span type = weir__http_parameters_begin(&value), extended = {NULL, 0};
    weir__http_parameter parameter;
    int more;

    if (!weir__http_is_text(type, "form-data") || part->name.data != NULL)
        return WEIR_EMALFORMED;
    while ((more = weir__http_parameters_next(&value, &parameter)) > 0) {
        if (weir__http_is_text(parameter.name, "name")) {
            if (part->name.data != NULL)
                return WEIR_EMALFORMED;
            part->name = unquote(&parameter, decoded);
        } else if (weir__http_is_text(parameter.name, "filename")) {
            if (part->filename.data != NULL)
                return WEIR_EMALFORMED;
            part->filename = unquote(&parameter, decoded);
        } else if (weir__http_is_text(parameter.name, "filename*")) {
            if (extended.data != NULL || !decode_extended(&parameter, decoded, &extended))
                return WEIR_EMALFORMED;
        }
    }
    if (extended.data != NULL)
        part->filename = extended;
    return more < 0 || part->name.data == NULL ? WEIR_EMALFORMED : 0;
}

ssize_t weir__http_part_parse(weir_span fields, uint8_t *to, weir_http_part *ret_part)
{
    weir_http_part part = {.fields = fields};
    struct decoded decoded = {to, 0};
    weir_span rest = fields, name, value;
    int more;

    while ((more = next_field(&rest, &name, &value)) > 0) {
        if (weir__http_is_text(name, "Content-Disposition")) {
            if (read_disposition(value, &decoded, &part) != 0)
                return WEIR_EMALFORMED;
        } else if (weir__http_is_text(name, "Content-Type")) {
            part.content_type = value;
        }
    }
    if (more < 0 || part.name.data == NULL)
        return WEIR_EMALFORMED;
    if (part.content_type.length == 0)
        part.content_type = weir_span_of_text(DEFAULT_TYPE);
    *ret_part = part;
    return (ssize_t)decoded.length;
}

/* Constant text stays where it is. */
static weir_span moved(weir_span text, weir_span block, const uint8_t *copy)
{
    bool is_within =
        text.data != NULL && text.data >= block.data && text.data <= block.data + block.length;

    return is_within ? weir_span_of(copy + (text.data - block.data), text.length) : text;
}

void weir__http_part_move(weir_http_part *part, weir_span block, const uint8_t *copy)
{
    part->name = moved(part->name, block, copy);
    part->filename = moved(part->filename, block, copy);
    part->content_type = moved(part->content_type, block, copy);
    part->fields = moved(part->fields, block, copy);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/resp/resp_inline.h"

#include <errno.h>

/* A position in the line. */
struct cursor {
    weir_buf *in;
    const uint8_t *at;
    const uint8_t *end;
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || byte == '\0';
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Decodes an escape between double quotes. */
static uint8_t take_escape(struct cursor *cursor)
{
    static const char letters[] = "nrtba", meanings[] = "\n\r\t\b\a";
    size_t left = (size_t)(cursor->end - cursor->at);
    const char *letter;

    if (left >= 3 && cursor->at[0] == 'x' && hex_digit(cursor->at[1]) >= 0 &&
        hex_digit(cursor->at[2]) >= 0) {
        cursor->at += 3;
        return (uint8_t)(hex_digit(cursor->at[-2]) << 4 | hex_digit(cursor->at[-1]));
    }
    letter = memchr(letters, *cursor->at, sizeof(letters) - 1);
    cursor->at++;
    return letter != NULL ? (uint8_t)meanings[letter - letters] : cursor->at[-1];
}

/* Between single quotes, only \' is an escape. */
static uint8_t take_quoted(struct cursor *cursor, uint8_t quote)
{
    uint8_t byte = *cursor->at++;

    if (byte != '\\' || cursor->at == cursor->end)
        return byte;
    if (quote == '"')
        return take_escape(cursor);
    return *cursor->at == '\'' ? *cursor->at++ : byte;
}

static int unquote(struct cursor *cursor, weir_buf *word)
{
    uint8_t quote = *cursor->at++, byte;
    int err = 0;

    while (err == 0 && cursor->at < cursor->end && *cursor->at != quote) {
        byte = take_quoted(cursor, quote);
        err = weir_buf_write_bytes(word, &byte, 1);
    }
    if (err < 0)
        return err;
    if (cursor->at == cursor->end)
        return -EINVAL;
    cursor->at++;
    return cursor->at == cursor->end || is_space(*cursor->at) ? 0 : -EINVAL;
}

static bool is_quote(uint8_t byte)
{
    return byte == '"' || byte == '\'';
}

/* Copies a word that contains quotes into a new buffer. */
static int copy_word(struct cursor *cursor, weir_buf **ret_word)
{
    weir_buf *word;
    int err = weir_buf_create(0, 0, &word);

    if (err < 0)
        return err;
    while (err == 0 && cursor->at < cursor->end && !is_space(*cursor->at)) {
        if (is_quote(*cursor->at))
            err = unquote(cursor, word);
        else
            err = weir_buf_write_bytes(word, cursor->at++, 1);
    }
    if (err < 0)
        weir_buf_release(word);
    else
        *ret_word = word;
    return err;
}

static int take_word(struct cursor *cursor, weir_buf **ret_word)
{
    const uint8_t *from = cursor->at, *to = from;
    size_t offset = weir_buf_read_index(cursor->in) + (size_t)(from - weir_buf_bytes(cursor->in));

    while (to < cursor->end && !is_space(*to) && !is_quote(*to))
        to++;
    if (to < cursor->end && is_quote(*to))
        return copy_word(cursor, ret_word);
    cursor->at = to;
    return weir_buf_slice(cursor->in, offset, (size_t)(to - from), ret_word);
}

static int add_word(struct cursor *cursor, weir_resp *command)
{
    weir_resp *value;
    weir_buf *word;
    int err = take_word(cursor, &word);

    if (err == 0)
        err = weir_resp_create_from(WEIR_RESP_BULK, word, &value);
    return err < 0 ? err : weir_resp_add(command, value);
}

static void skip_spaces(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_space(*cursor->at))
        cursor->at++;
}

int weir__resp_read_inline(weir_buf *in, size_t length, size_t max, weir_resp **ret_command)
{
    struct cursor cursor = {in, weir_buf_bytes(in), weir_buf_bytes(in) + length};
    weir_resp *command;
    int err;

    skip_spaces(&cursor);
    if (cursor.at == cursor.end) {
        *ret_command = NULL;
        return 0;
    }
    err = weir_resp_create_aggregate(WEIR_RESP_ARRAY, &command);
    if (err < 0)
        return err;
    while (err == 0 && cursor.at < cursor.end) {
        err = weir_resp_count(command) < max ? add_word(&cursor, command) : -E2BIG;
        skip_spaces(&cursor);
    }
    if (err < 0)
        weir_resp_release(command);
    else
        *ret_command = command;
    return err;
}

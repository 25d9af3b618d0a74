/* SPDX-License-Identifier: Apache-2.0 */
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BAD_FORMAT "CLIENT_ERROR bad command line format\r\n"
#define TOKENS_MAX 8

static void free_command(weir_msg *msg)
{
    struct command *command = WEIR_CONTAINER_OF(msg, struct command, msg);

    weir_buf_release(command->line);
    weir_buf_release(command->data);
    free(command);
}

static const weir_msg_type command_type = {.name = "command", .destroy = free_command};

struct command *command_of(weir_msg *msg)
{
    return weir_msg_is(msg, &command_type) ? WEIR_CONTAINER_OF(msg, struct command, msg) : NULL;
}

/* ---- words ---- */

bool command_next_key(weir_span *keys, weir_span *ret_key)
{
    size_t length = 0;

    while (keys->length > 0 && *keys->data == ' ') {
        keys->data++;
        keys->length--;
    }
    while (length < keys->length && keys->data[length] != ' ')
        length++;
    *ret_key = weir_span_of(keys->data, length);
    keys->data += length;
    keys->length -= length;
    return length > 0;
}

static bool is_word(weir_span token, const char *word)
{
    return weir_span_equal(token, weir_span_of_text(word));
}

static bool read_unsigned(weir_span token, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (size_t i = 0; i < token.length; i++) {
        unsigned digit = (unsigned)token.data[i] - '0';

        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return token.length > 0;
}

static bool read_signed(weir_span token, int64_t *ret_number)
{
    bool is_negative = token.length > 0 && *token.data == '-';
    uint64_t number;

    if (is_negative)
        token = weir_span_of(token.data + 1, token.length - 1);
    if (!read_unsigned(token, &number) || number > INT64_MAX)
        return false;
    *ret_number = is_negative ? -(int64_t)number : (int64_t)number;
    return true;
}

static bool is_key(weir_span token)
{
    return token.length > 0 && token.length <= KEY_MAX;
}

/* ---- each verb's words ---- */

struct words {
    weir_span list[TOKENS_MAX]; /* without the verb, and without "noreply" */
    size_t count;               /* may be more than there are in the list */
};

/* The last word may be "noreply". */
static void split(struct command *command, weir_span rest, struct words *ret_words)
{
    weir_span word;

    *ret_words = (struct words){.count = 0};
    while (command_next_key(&rest, &word)) {
        if (ret_words->count < TOKENS_MAX)
            ret_words->list[ret_words->count] = word;
        ret_words->count++;
        command->noreply = is_word(word, "noreply");
    }
    if (command->noreply)
        ret_words->count--;
}

static const char *parse_keys(struct command *command, weir_span rest)
{
    weir_span key;
    bool has_one = false;

    if (command->verb == GAT || command->verb == GATS) {
        if (!command_next_key(&rest, &key))
            return "ERROR\r\n";
        if (!read_signed(key, &command->expires))
            return "CLIENT_ERROR invalid exptime argument\r\n";
    }
    command->keys = rest;
    for (; command_next_key(&rest, &key); has_one = true)
        if (!is_key(key))
            return BAD_FORMAT;
    return has_one ? NULL : "ERROR\r\n";
}

static const char *parse_storage(struct command *command, const struct words *words)
{
    uint64_t flags, length;

    if (words->count != (command->verb == CAS ? 5 : 4))
        return "ERROR\r\n";
    if (!is_key(words->list[0]) || !read_unsigned(words->list[1], &flags) || flags > UINT32_MAX ||
        !read_signed(words->list[2], &command->expires))
        return BAD_FORMAT;
    if (!read_unsigned(words->list[3], &length) || length > INT32_MAX)
        return "CLIENT_ERROR bad data chunk\r\n";
    if (command->verb == CAS && !read_unsigned(words->list[4], &command->number))
        return BAD_FORMAT;
    command->keys = words->list[0];
    command->flags = (uint32_t)flags;
    command->length = length;
    return NULL;
}

static const char *parse_delete(struct command *command, const struct words *words)
{
    if (words->count == 0)
        return "ERROR\r\n";
    /* "delete KEY 0" is what clients of old send */
    if (!is_key(words->list[0]) || words->count > 2 ||
        (words->count == 2 && !is_word(words->list[1], "0")))
        return "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n";
    command->keys = words->list[0];
    return NULL;
}

static const char *parse_change(struct command *command, const struct words *words)
{
    if (words->count != 2)
        return "ERROR\r\n";
    if (!is_key(words->list[0]))
        return BAD_FORMAT;
    command->keys = words->list[0];
    if (command->verb == TOUCH)
        return read_signed(words->list[1], &command->expires)
                   ? NULL
                   : "CLIENT_ERROR invalid exptime argument\r\n";
    return read_unsigned(words->list[1], &command->number)
               ? NULL
               : "CLIENT_ERROR invalid numeric delta argument\r\n";
}

static const char *parse_rest(struct command *command, weir_span rest)
{
    struct words words;

    if (command->verb >= GET && command->verb <= GATS)
        return parse_keys(command, rest);
    if (command->verb == NO_VERB || (command->verb == STATS && rest.length > 0))
        return "ERROR\r\n"; /* there are no kinds of statistics */
    split(command, rest, &words);
    switch (command->verb) {
    case STATS:
        return NULL;
    case DELETE:
        return parse_delete(command, &words);
    case INCR:
    case DECR:
    case TOUCH:
        return parse_change(command, &words);
    case FLUSH_ALL:
        if (words.count > 1 || (words.count == 1 && !read_signed(words.list[0], &command->expires)))
            return BAD_FORMAT;
        return NULL;
    case VERBOSITY:
        return words.count + command->noreply == 0 || words.count > 1 ? "ERROR\r\n" : NULL;
    case VERSION:
    case QUIT:
        command->noreply = false;
        return NULL;
    default:
        return parse_storage(command, &words);
    }
}

static enum verb find_verb(weir_span word)
{
    static const char *const names[] = {
        [GET] = "get",         [GETS] = "gets",       [GAT] = "gat",
        [GATS] = "gats",       [SET] = "set",         [ADD] = "add",
        [REPLACE] = "replace", [APPEND] = "append",   [PREPEND] = "prepend",
        [CAS] = "cas",         [DELETE] = "delete",   [INCR] = "incr",
        [DECR] = "decr",       [TOUCH] = "touch",     [FLUSH_ALL] = "flush_all",
        [STATS] = "stats",     [VERSION] = "version", [VERBOSITY] = "verbosity",
        [QUIT] = "quit",
    };

    for (int verb = GET; verb <= QUIT; verb++)
        if (is_word(word, names[verb]))
            return (enum verb)verb;
    return NO_VERB;
}

int command_parse(weir_buf *line, struct command **ret_command)
{
    struct command *command = calloc(1, sizeof(*command));
    weir_span rest = weir_buf_span(line), word;

    if (command == NULL)
        return -ENOMEM;
    weir_msg_init(&command->msg, &command_type);
    command->line = weir_buf_retain(line);
    (void)command_next_key(&rest, &word);
    command->verb = find_verb(word);
    command->error = parse_rest(command, rest);
    *ret_command = command;
    return 0;
}

/* ---- the decoder ---- */

struct commands {
    weir_decoder_state decoder;
    size_t item_max;
    size_t searched;         /* bytes of the line that were looked at and have no end of line */
    size_t skip;             /* bytes that nobody wants */
    struct command *waiting; /* for its data; NULL = none */
};

static int init(void *state, const void *options)
{
    ((struct commands *)state)->item_max = *(const size_t *)options;
    return 0;
}

static void deinit(void *state)
{
    struct commands *self = state;

    if (self->waiting != NULL)
        weir_msg_release(&self->waiting->msg);
}

static bool has_data(const struct command *command)
{
    return command->error == NULL && command->verb >= SET && command->verb <= CAS;
}

/* doc:begin data */
static int decode_data(weir_ctx *ctx, struct commands *self, weir_buf *in, weir_msg **ret_msg)
{
    struct command *command = self->waiting;
    char end[2];
    int err;

    if (weir_buf_readable(in) < command->length + sizeof(end))
        return weir_decoder_need(ctx, command->length + sizeof(end));
    err = weir_buf_read_slice(in, command->length, &command->data);
    if (err)
        return err;
    (void)weir_buf_read_bytes(in, end, sizeof(end)); /* cannot fail: they are there */
    if (memcmp(end, "\r\n", sizeof(end)) != 0)
        command->error = "CLIENT_ERROR bad data chunk\r\n";
    self->waiting = NULL;
    *ret_msg = &command->msg;
    return 1;
}
/* doc:end */

static int give(struct commands *self, struct command *command, weir_msg **ret_msg)
{
    if (has_data(command) && command->length > self->item_max) {
        command->error = "SERVER_ERROR object too large for cache\r\n";
        self->skip = command->length + 2;
    }
    if (has_data(command))
        self->waiting = command;
    else
        *ret_msg = &command->msg;
    return 1;
}

static int take_line(struct commands *self, weir_buf *in, size_t length, weir_msg **ret_msg)
{
    struct command *command;
    weir_buf *line;
    int err = weir_buf_read_slice(in, length, &line);

    if (err)
        return err;
    if (length > 0 && weir_buf_bytes(line)[length - 1] == '\r')
        (void)weir_buf_set_write_index(line, weir_buf_write_index(line) - 1);
    (void)weir_buf_skip(in, 1);
    self->searched = 0;
    err = command_parse(line, &command);
    weir_buf_release(line);
    return err ? err : give(self, command, ret_msg);
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct commands *self = weir_ctx_state(ctx);
    size_t begin = weir_buf_read_index(in), readable = weir_buf_readable(in);
    ssize_t end;

    if (self->skip > 0) {
        size_t skipped = self->skip < readable ? self->skip : readable;

        (void)weir_buf_skip(in, skipped);
        self->skip -= skipped;
        return skipped > 0;
    }
    if (self->waiting != NULL)
        return decode_data(ctx, self, in, ret_msg);
    end = weir_buf_find(in, begin + self->searched, '\n');
    if (end >= 0)
        return take_line(self, in, (size_t)end - begin, ret_msg);
    self->searched = readable;
    return readable <= LINE_MAX_LENGTH ? 0 : weir_decoder_fail(ctx, WEIR_ETOOLONG, "line too long");
}

static const weir_decoder commands = {
    .handler = {.name = "commands",
                WEIR_DECODER_SLOTS(struct commands),
                .init = init,
                .deinit = deinit},
    .decode = decode,
};

int commands_add(weir_pipeline *pipeline, size_t item_max)
{
    return weir_pipeline_add_last(pipeline, &commands.handler, &item_max);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text protocol of memcached: a command is a message.
 *
 *      "set greeting 0 60 5\r\nhello\r\n"    ->  {SET, key greeting, expires in 60 s, data hello}
 *
 * An invalid line is a command, too: its `error` is the answer.
 */
#ifndef EXAMPLES_COMMAND_H
#define EXAMPLES_COMMAND_H

#include <weir/weir.h>

#define KEY_MAX 250
#define LINE_MAX_LENGTH 65536

enum verb {
    NO_VERB,
    GET,
    GETS,
    GAT,
    GATS,
    SET,
    ADD,
    REPLACE,
    APPEND,
    PREPEND,
    CAS,
    DELETE,
    INCR,
    DECR,
    TOUCH,
    FLUSH_ALL,
    STATS,
    VERSION,
    VERBOSITY,
    QUIT,
};

/* Not changed any more once it has been read: any thread may look at it. */
struct command {
    weir_msg msg;
    enum verb verb;
    const char *error; /* NULL = none */
    bool noreply;
    weir_span keys; /* one or more, between spaces: command_next_key */
    uint32_t flags;
    int64_t expires; /* as the client says it */
    uint64_t number; /* INCR, DECR: by how much; CAS: the unique number */
    size_t length;   /* of the data */
    weir_buf *line;  /* what `keys` points into */
    weir_buf *data;  /* NULL = none */
};

/* Adds the decoder. A value longer than `item_max` is an error, and is skipped. */
int commands_add(weir_pipeline *pipeline, size_t item_max);

/* The command that a message is, or NULL. */
struct command *command_of(weir_msg *msg);

/* Takes the next key off the front of `*keys`; false if there is none. */
bool command_next_key(weir_span *keys, weir_span *ret_key);

/* Reads a line without its end, except for its data; the command keeps a reference to the buffer.
 */
int command_parse(weir_buf *line, struct command **ret_command);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lines of the log, in memory that is allocated once.
 *
 * A listener of the log adds them, on any thread and perhaps while the caller of the log has locks:
 * this one has a lock of its own, under which nothing is called.
 */
#ifndef WEIR_DASHBOARD_LOG_HISTORY_H
#define WEIR_DASHBOARD_LOG_HISTORY_H

#include <weir/log.h>

#include "protocol/http/json_writer.h"

#define WEIR__LOG_HISTORY_MAX 10000

typedef struct weir__log_history weir__log_history;

/* Fails: -ENOMEM. */
int weir__log_history_create(int lines, weir__log_history **ret_history);
void weir__log_history_free(weir__log_history *history);

/* A listener; its user_data is the history. */
weir_log_fn weir__log_history_add;

/*
 * Writes the lines after number `after`, oldest first, as an array: [[NUMBER, MILLISECONDS, "WARN",
 * "watchdog", "http-1", "text"], ...]. Returns the number of the last line.
 */
uint64_t weir__log_history_write(weir__log_history *history, uint64_t after, weir__json *json);

#endif

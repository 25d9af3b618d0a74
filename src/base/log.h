/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logging inside the library: weir__warn("executor", executor->name, "%d tasks cancelled", count).
 *
 * `object` is the object that the message is about; NULL is written as "-".
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <weir/log.h>

#define weir__trace(subsystem, ...) weir_log_write(WEIR_LOG_TRACE, subsystem, __VA_ARGS__)
#define weir__debug(subsystem, ...) weir_log_write(WEIR_LOG_DEBUG, subsystem, __VA_ARGS__)
#define weir__info(subsystem, ...) weir_log_write(WEIR_LOG_INFO, subsystem, __VA_ARGS__)
#define weir__warn(subsystem, ...) weir_log_write(WEIR_LOG_WARN, subsystem, __VA_ARGS__)
#define weir__error(subsystem, ...) weir_log_write(WEIR_LOG_ERROR, subsystem, __VA_ARGS__)

/* Messages that a peer can cause: tools/check_logs.py lists those that are not limited. */
#define weir__limited(level, ...)                                  \
    do {                                                           \
        static weir_log_limit weir__limit_;                        \
                                                                   \
        weir_log_write_limited(&weir__limit_, level, __VA_ARGS__); \
    } while (0)
#define weir__warn_limited(...) weir__limited(WEIR_LOG_WARN, __VA_ARGS__)
#define weir__error_limited(...) weir__limited(WEIR_LOG_ERROR, __VA_ARGS__)

#endif

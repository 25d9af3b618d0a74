/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the library logs: weir__warn("executor", executor->name, "%d tasks cancelled", count).
 *
 * `object` names the thing the message is about; NULL is written as "-". A message below the level
 * costs one load and is not formatted. errno is preserved.
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <weir/log.h>

/* Formats at most 511 bytes and hands them to the hook; longer messages end in "...". */
void weir__log(enum weir_log_level level, const char *subsystem, const char *object,
               const char *format, ...) WEIR_PRINTF(4, 5);

#define weir__trace(subsystem, ...) weir__log(WEIR_LOG_TRACE, subsystem, __VA_ARGS__)
#define weir__debug(subsystem, ...) weir__log(WEIR_LOG_DEBUG, subsystem, __VA_ARGS__)
#define weir__info(subsystem, ...) weir__log(WEIR_LOG_INFO, subsystem, __VA_ARGS__)
#define weir__warn(subsystem, ...) weir__log(WEIR_LOG_WARN, subsystem, __VA_ARGS__)
#define weir__error(subsystem, ...) weir__log(WEIR_LOG_ERROR, subsystem, __VA_ARGS__)

#endif

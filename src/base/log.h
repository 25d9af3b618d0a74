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

#endif

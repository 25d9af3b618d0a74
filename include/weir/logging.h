/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/logging.h - a handler that writes what passes it into the log, and passes it on.
 *
 *      weir_logging_add(pipeline, WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_INFO));
 *
 *      weir INFO  logging [7 127.0.0.1:8007 - 127.0.0.1:51234]: READ: 5 B
 *      weir INFO  logging [7 127.0.0.1:8007 - 127.0.0.1:51234]: 00000000  68 65 6c 6c 6f ...
 * |hello|
 *
 * It shows every event and every operation but requests to read, with addresses, errors, and the
 * bytes of buffers and composites; of other messages their type and size. What the log would drop
 * (weir_log_set_level) costs a look at the level.
 */
#ifndef WEIR_LOGGING_H
#define WEIR_LOGGING_H

#include <weir/handler.h>
#include <weir/log.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_LOGGING_NAME_SIZE 32 /* of a name, and its 0 */

/* Zero means default. Build with WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_INFO, ...). */
typedef struct weir_logging_options {
    size_t size;
    enum weir_log_level level; /* of all that it writes; default WEIR_LOG_TRACE */
    bool no_dump;              /* of bytes only how many there are */
    size_t dump_max;           /* dumps so many bytes of each message, default 4096 */
    const char *name;          /* who speaks: the subsystem of the lines; default "logging" */
} weir_logging_options;

#define WEIR_LOGGING_OPTIONS(...) \
    (&(const weir_logging_options){.size = sizeof(weir_logging_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_logging_options_init(weir_logging_options *options);

/*
 * Adds the handler at the end of a pipeline.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the level), -ENAMETOOLONG, and as
 * weir_pipeline_add.
 */
WEIR_API int weir_logging_add(weir_pipeline *pipeline, const weir_logging_options *options);

#ifdef __cplusplus
}
#endif

#endif

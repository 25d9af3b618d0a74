/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading options. An options struct begins with `size_t size`, set by its macro in the caller. An
 * older caller's struct is shorter than ours, a newer caller's longer; the rule for both is that of
 * Linux's openat2 and clone3. Header-only, so that libweir-tls can use it.
 */
#ifndef WEIR_BASE_OPTIONS_H
#define WEIR_BASE_OPTIONS_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/log.h>

/*
 * Logs that options are invalid, with a format that says why. Evaluates to -EINVAL, a constant, so
 * that compilers know that it is an error.
 */
#define weir__options_reject(subsystem, object, ...) \
    (weir_log_write(WEIR_LOG_ERROR, subsystem, object, "invalid options: " __VA_ARGS__), -EINVAL)

static inline bool weir__options_all_zero(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/*
 * Copies the caller's options into ours, of `known` bytes; missing members are 0. NULL means all
 * defaults. Fails with -EINVAL if the size is invalid, or if a newer caller has set an option that
 * we do not know.
 */
static inline int weir__options_read(void *ret_options, size_t known, const void *caller_options)
{
    size_t size = sizeof(size);

    assert(known >= sizeof(size));
    if (caller_options != NULL)
        memcpy(&size, caller_options, sizeof(size));
    if (size < sizeof(size))
        return weir__options_reject("options", NULL,
                                    "size is %zu; initialize the struct with its macro", size);
    if (size > known &&
        !weir__options_all_zero((const unsigned char *)caller_options + known, size - known))
        return weir__options_reject("options", NULL,
                                    "an option is unknown to this version of the library, which "
                                    "knows %zu of %zu bytes",
                                    known, size);

    memset(ret_options, 0, known);
    if (caller_options != NULL)
        memcpy(ret_options, caller_options, size < known ? size : known);
    memcpy(ret_options, &known, sizeof(known));
    return 0;
}

/* A numeric option and its range. */
typedef struct weir__option {
    const char *name;
    int64_t value;
    int64_t min;
    int64_t max;
} weir__option;

#define WEIR__OPTION(options, member, min, max) \
    ((weir__option){#member, (int64_t)(options)->member, (min), (max)})

/* A duration or a count: at least `min`, which is 0 or WEIR_OFF. */
#define WEIR__OPTION_FROM(options, member, min) WEIR__OPTION(options, member, min, INT64_MAX)

/*
 * Checks the ranges of options. Logs the first that is out of range and returns -EINVAL:
 *
 *      weir__options_check("idle", NULL, WEIR__OPTION(options, ...), WEIR__OPTION(options, ...))
 */
#define weir__options_check(subsystem, object, ...) \
    weir__options_check_all(subsystem, object, (const weir__option[]){__VA_ARGS__, {.name = NULL}})

static inline int weir__options_check_all(const char *subsystem, const char *object,
                                          const weir__option *option)
{
    for (; option->name != NULL; option++) {
        if (option->value < option->min)
            return weir__options_reject(subsystem, object, "%s is %lld, the minimum is %lld",
                                        option->name, (long long)option->value,
                                        (long long)option->min);
        if (option->value > option->max)
            return weir__options_reject(subsystem, object, "%s is %lld, the maximum is %lld",
                                        option->name, (long long)option->value,
                                        (long long)option->max);
    }
    return 0;
}

#endif

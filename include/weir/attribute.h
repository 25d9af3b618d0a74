/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/attribute.h - values that users hang on a channel, by key.
 *
 *      static const weir_attribute session = {.name = "session", .free = session_free};
 *      weir_attribute_set(channel, &session, s);
 *      struct session *s = weir_attribute_get(channel, &session);
 *
 * The key is its address: no two of them meet by name. A value belongs to the channel from the
 * moment it is set, and is freed when it is replaced or when the channel's memory goes.
 */
#ifndef WEIR_ATTRIBUTE_H
#define WEIR_ATTRIBUTE_H

#include <weir/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_attribute {
    const char *name;
    void (*free)(void *value); /* any thread; NULL = nothing to free */
    void *reserved[2];
} weir_attribute;

/* A value to begin with, in a bootstrap's options. */
typedef struct weir_attribute_value {
    const weir_attribute *attribute;
    void *value;
} weir_attribute_value;

/*
 * Sets a value; the one before is freed. NULL removes it. On an error the value stays the caller's.
 * Thread: any.  Takes: value, on success.  Fails: -ENOMEM.
 */
WEIR_API int weir_attribute_set(weir_channel *channel, const weir_attribute *attribute,
                                void *value);

/*
 * Sets a value if there is none. Returns the one that is there then; NULL if there is no memory.
 * Thread: any.  Takes: value, if it is what is returned.
 */
WEIR_API void *weir_attribute_set_if_absent(weir_channel *channel, const weir_attribute *attribute,
                                            void *value);

/*
 * The value, borrowed; NULL if there is none. Another thread may replace it: where that happens,
 * use it on the loop only.
 * Thread: any.
 */
WEIR_API void *weir_attribute_get(weir_channel *channel, const weir_attribute *attribute);

/*
 * Takes the value out, without freeing it.
 * Thread: any.  Gives: value.
 */
WEIR_API void *weir_attribute_take(weir_channel *channel, const weir_attribute *attribute);

#ifdef __cplusplus
}
#endif

#endif

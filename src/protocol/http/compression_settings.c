/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/compression.h"

#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "base/options.h"

#define LEVEL_DEFAULT 5
#define LEVEL_MAX 9
#define MIN_LENGTH_DEFAULT 1024
#define MAX_DECODED_DEFAULT (UINT64_C(16) * 1024 * 1024)
#define MAX_RATIO_DEFAULT 100

static const char *const default_types[] = {
    "text/", "application/json", "+json", "application/javascript", "application/xml",
    "+xml",  "application/wasm", NULL,
};

static int check_options(const weir_http_compression_options *options)
{
    if (options->level < 0 || options->level > LEVEL_MAX)
        return weir__options_reject("http", "compression", ".level is %d: expected 1 to %d",
                                    options->level, LEVEL_MAX);
    if (options->min_length < 0)
        return weir__options_reject("http", "compression", ".min_length is negative");
    if (options->max_ratio < 0)
        return weir__options_reject("http", "compression", ".max_ratio is negative");
    return 0;
}

static void choose_codings(weir__http_compression *compression,
                           const weir_http_compression_options *options)
{
    for (size_t i = 0; i < weir__http_coding_count; i++) {
        const weir__http_coding *coding = weir__http_codings[i];

        if ((options->no_brotli && strcmp(coding->name, "br") == 0) ||
            (options->no_zstd && strcmp(coding->name, "zstd") == 0))
            continue;
        compression->codings[compression->coding_count] = coding;
        compression->coding_names[compression->coding_count++] = coding->name;
    }
}

/* The texts stand behind the array of pointers. */
static weir__http_compression *alloc_with_types(const char *const *types)
{
    weir__http_compression *compression;
    size_t count = 0, length = 0;
    char *to;

    for (; types[count] != NULL; count++)
        length += strlen(types[count]) + 1;
    compression =
        weir_memory_alloc(sizeof(*compression) + count * sizeof(compression->types[0]) + length);
    if (compression == NULL)
        return NULL;
    memset(compression, 0, sizeof(*compression));
    to = (char *)&compression->types[count];
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(types[i]) + 1;

        memcpy(to, types[i], size);
        compression->types[i] = to;
        to += size;
    }
    compression->type_count = count;
    return compression;
}

int weir__http_compression_create(const weir_http_compression_options *options,
                                  weir__http_compression **ret_compression)
{
    weir_http_compression_options own;
    weir__http_compression *compression;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0)
        err = check_options(&own);
    if (err < 0)
        return err;
    compression = alloc_with_types(own.types != NULL ? own.types : default_types);
    if (compression == NULL)
        return -ENOMEM;
    weir__refs_init(&compression->refs);
    compression->level = own.level > 0 ? own.level : LEVEL_DEFAULT;
    compression->min_length = own.min_length > 0 ? own.min_length : MIN_LENGTH_DEFAULT;
    compression->decodes_requests = !own.no_requests;
    compression->limits = (weir__http_decoder_limits){
        .max_decoded = own.max_decoded > 0 ? own.max_decoded : MAX_DECODED_DEFAULT,
        .max_ratio = own.max_ratio > 0 ? (uint64_t)own.max_ratio : MAX_RATIO_DEFAULT,
    };
    choose_codings(compression, &own);
    *ret_compression = compression;
    return 0;
}

void weir__http_compression_release(weir__http_compression *compression)
{
    if (compression != NULL && weir__refs_release(&compression->refs))
        weir_memory_free(compression);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "codec/delimiters.h"

struct delimited {
    struct weir__delimiters delimiters;
    weir_span *copies; /* followed by their bytes */
};

/* ---- options ---- */

static int check(const weir_delimited_options *options)
{
    if (options->count == 0 || options->delimiters == NULL)
        return weir__frames_reject("delimited", ".delimiters is empty");
    if (options->count > WEIR__DELIMITERS_MAX)
        return weir__frames_reject("delimited", "more than 256 delimiters");
    for (size_t i = 0; i < options->count; i++)
        if (options->delimiters[i].length == 0 ||
            options->delimiters[i].length > WEIR_DELIMITER_MAX)
            return weir__frames_reject("delimited", "a delimiter must have 1 to 256 bytes");
    return 0;
}

static weir_span *copy_all(const weir_span *delimiters, size_t count)
{
    size_t length = 0;
    weir_span *copies;
    uint8_t *bytes;

    for (size_t i = 0; i < count; i++)
        length += delimiters[i].length;
    copies = weir__alloc(count * sizeof(*copies) + length);
    if (copies == NULL)
        return NULL;
    bytes = (uint8_t *)(copies + count);
    for (size_t i = 0; i < count; i++) {
        memcpy(bytes, delimiters[i].data, delimiters[i].length);
        copies[i] = (weir_span){bytes, delimiters[i].length};
        bytes += delimiters[i].length;
    }
    return copies;
}

static int init(void *state, const void *given)
{
    struct delimited *delimited = state;
    struct weir__delimiters *delimiters = &delimited->delimiters;
    weir_delimited_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = check(&options);
    if (err == 0)
        err = weir__frames_init(&delimiters->frames, "frame", options.max_length,
                                WEIR__FRAMES_MAX_TEXT_LENGTH);
    if (err < 0)
        return err;
    delimited->copies = copy_all(options.delimiters, options.count);
    if (delimited->copies == NULL)
        return -ENOMEM;
    weir__delimiters_init(delimiters, delimited->copies, options.count);
    delimiters->frames.reports_after_skip = options.report_after_skip;
    delimiters->keep_delimiter = options.keep_delimiter;
    return 0;
}

static void deinit(void *state)
{
    struct delimited *delimited = state;

    weir__free(delimited->copies);
}

static const weir_decoder decoder = {
    .handler = {.name = "delimited",
                .init = init,
                .deinit = deinit,
                WEIR_DECODER_SLOTS(struct delimited)},
    .decode = weir__delimiters_decode,
    .decode_last = weir__delimiters_decode_last,
};

int weir_delimited_add(weir_pipeline *pipeline, const weir_delimited_options *options)
{
    return weir_pipeline_add_last(pipeline, &decoder.handler, options);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes content that may be coded several times. Each stage pulls its input from the one before:
 *
 *      in -> [stage 0: the last coding of the list] -> piece -> [stage 1: the one before it] -> out
 *
 * A bomb is stopped by what any stage makes, compared with the bytes that came in: so a stage that
 * makes much of little for a next one that makes nothing of it is stopped, too.
 */
#include "protocol/http/content_coding.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "protocol/http/chars.h"
#include "protocol/http/parameters.h"

#define PIECE_SIZE 4096 /* between two stages */

struct stage {
    const weir__http_coding *coding;
    void *state;
    uint64_t made;    /* bytes */
    bool may_end;     /* the content may end here */
    bool has_pending; /* the output was filled: there may be more without input */
    weir_span piece;  /* input that is left, from the stage before */
    uint8_t *memory;  /* of the piece; NULL in stage 0 */
};

struct weir__http_content_decoder {
    weir__http_decoder_limits limits;
    weir__http_coding_memory memory;
    uint64_t received;
    size_t count;
    struct stage stages[WEIR__HTTP_CODINGS_STACKED];
};

/* ---- lists of codings ---- */

/* Fills `codings` in the order of the list. Returns their number, or -ENOTSUP. */
static int read_lists(const weir_span *lists, size_t count, const weir__http_coding **codings)
{
    int found = 0;

    for (size_t i = 0; i < count; i++) {
        weir_span list = lists[i], name;

        while (weir__http_list_next(&list, &name)) {
            if (weir__http_is_text(name, "identity"))
                continue;
            if (found == WEIR__HTTP_CODINGS_STACKED)
                return -ENOTSUP;
            codings[found] = weir__http_coding_find(name);
            if (codings[found] == NULL)
                return -ENOTSUP;
            found++;
        }
    }
    return found;
}

/* ---- lifecycle ---- */

static int begin_stage(weir__http_content_decoder *decoder, const weir__http_coding *coding)
{
    struct stage *stage = &decoder->stages[decoder->count];
    int err;

    if (decoder->count > 0) {
        stage->memory = weir_memory_alloc(PIECE_SIZE);
        if (stage->memory == NULL)
            return -ENOMEM;
    }
    err = coding->create_decoder(&decoder->memory, &stage->state);
    if (err < 0) {
        weir_memory_free(stage->memory);
        return err;
    }
    stage->coding = coding;
    decoder->count++;
    return 0;
}

int weir__http_content_decoder_create(const weir_span *lists, size_t count,
                                      const weir__http_decoder_limits *limits,
                                      weir__http_content_decoder **ret_decoder)
{
    const weir__http_coding *codings[WEIR__HTTP_CODINGS_STACKED];
    int found = read_lists(lists, count, codings), err = 0;
    weir__http_content_decoder *decoder;

    if (found < 0)
        return found;
    *ret_decoder = NULL;
    if (found == 0)
        return 0;
    decoder = weir_memory_alloc(sizeof(*decoder));
    if (decoder == NULL)
        return -ENOMEM;
    *decoder = (weir__http_content_decoder){.limits = *limits,
                                            .memory = {.left = WEIR__HTTP_DECODER_MEMORY}};
    while (err == 0 && found > 0)
        err = begin_stage(decoder, codings[--found]);
    if (err < 0) {
        weir__http_content_decoder_free(decoder);
        return err;
    }
    *ret_decoder = decoder;
    return 0;
}

void weir__http_content_decoder_free(weir__http_content_decoder *decoder)
{
    if (decoder == NULL)
        return;
    for (size_t i = 0; i < decoder->count; i++) {
        decoder->stages[i].coding->free_decoder(decoder->stages[i].state);
        weir_memory_free(decoder->stages[i].memory);
    }
    weir_memory_free(decoder);
}

/* ---- decoding ---- */

static bool is_within_limits(const weir__http_content_decoder *decoder, uint64_t made)
{
    if (made > decoder->limits.max_decoded)
        return false;
    return made <= WEIR__HTTP_RATIO_FREE || made / decoder->limits.max_ratio <= decoder->received;
}

/* Runs a stage once, over input that is there. Returns the number of bytes that it made. */
static int run_stage(weir__http_content_decoder *decoder, struct stage *stage, weir_span *in,
                     uint8_t *out, size_t room, size_t *ret_made)
{
    weir__http_coding_step step = {
        .in = in->data, .in_left = in->length, .out = out, .out_left = room};
    int result = stage->coding->decode(stage->state, &step);

    if (result < 0)
        return result;
    in->data = step.in;
    in->length = step.in_left;
    stage->may_end = result > 0;
    stage->has_pending = step.out_left == 0;
    stage->made += room - step.out_left;
    *ret_made = room - step.out_left;
    return is_within_limits(decoder, stage->made) ? 0 : WEIR_ETOOLONG;
}

/*
 * Makes at least one byte, unless more input is needed. The depth of the recursion is the number of
 * stages.
 */
static int pull(weir__http_content_decoder *decoder, size_t index, weir_span *in, uint8_t *out,
                size_t room, size_t *ret_made)
{
    struct stage *stage = &decoder->stages[index];
    weir_span *from = index == 0 ? in : &stage->piece;
    size_t made = 0, refilled = 0;
    int err = 0;

    for (;;) {
        if (from->length > 0 || stage->has_pending)
            err = run_stage(decoder, stage, from, out, room, &made);
        if (err < 0 || made > 0 || index == 0)
            break;
        if (from->length > 0)
            return WEIR_EMALFORMED; /* a decoder that stands still */
        err = pull(decoder, index - 1, in, stage->memory, PIECE_SIZE, &refilled);
        if (err < 0 || refilled == 0)
            break;
        stage->piece = (weir_span){stage->memory, refilled};
    }
    *ret_made = made;
    return err;
}

int weir__http_content_decoder_run(weir__http_content_decoder *decoder, weir_span *in,
                                   weir_buf *out)
{
    size_t made = 1;
    int err = 0;

    decoder->received += in->length;
    while (made > 0 && weir_buf_writable(out) > 0) {
        err = pull(decoder, decoder->count - 1, in, weir_buf_space(out), weir_buf_writable(out),
                   &made);
        if (err < 0)
            return err;
        (void)weir_buf_advance(out, made);
    }
    if (made == 0 && in->length > 0)
        return WEIR_EMALFORMED;      /* a decoder that stands still */
    decoder->received -= in->length; /* counted again when it is passed again */
    return weir_buf_writable(out) == 0;
}

bool weir__http_content_decoder_is_complete(const weir__http_content_decoder *decoder)
{
    if (decoder->received == 0)
        return true;
    for (size_t i = 0; i < decoder->count; i++)
        if (!decoder->stages[i].may_end || decoder->stages[i].piece.length > 0)
            return false;
    return true;
}

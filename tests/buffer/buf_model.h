/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simple model of a buffer for test_buf_model.c: byte by byte, without shared code or tricks of
 * src/buffer. The test passes what the model cannot compute: the capacity of a block, and the
 * contents of memory that was never written.
 */
#ifndef WEIR_TEST_BUFFER_BUF_MODEL_H
#define WEIR_TEST_BUFFER_BUF_MODEL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

/* Memory that buffers share. */
struct model_memory {
    unsigned users;
    uint8_t *bytes;
    bool *known; /* the byte is known */
};

/* References to the buffer that views keep alive: those of holders and of views. */
struct model_root {
    unsigned refs;
};

struct model {
    struct model_memory *memory;
    struct model_root *root;
    size_t offset; /* position of index 0 in the memory */
    size_t read, write, capacity, max;
    unsigned holders;
    bool is_view;
    bool is_read_only;
};

static void *model_allocate(size_t size)
{
    void *memory = calloc(1, size + 1);

    if (memory == NULL)
        abort();
    return memory;
}

/* ---- life ---- */

static struct model_memory *model_memory_create(size_t size)
{
    struct model_memory *memory = model_allocate(sizeof(*memory));

    memory->users = 1;
    memory->bytes = model_allocate(size);
    memory->known = model_allocate(size * sizeof(bool));
    return memory;
}

static void model_memory_release(struct model_memory *memory)
{
    if (--memory->users > 0)
        return;
    free(memory->bytes);
    free(memory->known);
    free(memory);
}

static void model_create(struct model *model, size_t capacity, size_t max)
{
    *model = (struct model){.capacity = capacity, .max = max, .holders = 1};
    model->memory = model_memory_create(capacity);
    model->root = model_allocate(sizeof(*model->root));
    model->root->refs = 1;
}

static void model_create_view(struct model *view, const struct model *of, size_t offset,
                              size_t length)
{
    *view = *of;
    view->memory->users++;
    view->root->refs++;
    view->offset += offset;
    view->read = 0;
    view->write = view->capacity = view->max = length;
    view->holders = 1;
    view->is_view = true;
}

static void model_retain(struct model *model)
{
    model->holders++;
    if (!model->is_view)
        model->root->refs++;
}

/* True if that was the last holder. */
static bool model_release(struct model *model)
{
    bool is_last = --model->holders == 0;

    if ((!model->is_view || is_last) && --model->root->refs == 0)
        free(model->root);
    if (is_last)
        model_memory_release(model->memory);
    return is_last;
}

static unsigned model_refs(const struct model *model)
{
    return model->is_view ? model->holders : model->root->refs;
}

static bool model_is_shared(const struct model *model)
{
    return model->holders > 1 || model->root->refs > 1;
}

/* ---- bytes ---- */

static uint8_t model_get(const struct model *model, size_t index)
{
    return model->memory->bytes[model->offset + index];
}

static void model_set(struct model *model, size_t index, uint8_t byte)
{
    model->memory->bytes[model->offset + index] = byte;
    model->memory->known[model->offset + index] = true;
}

static bool model_knows(const struct model *model, size_t index)
{
    return model->memory->known[model->offset + index];
}

/* Bytes up to `end` are visible: copies unknown ones from `data`. */
static void model_learn(struct model *model, const uint8_t *data, size_t end)
{
    for (size_t i = 0; i < end; i++)
        if (!model_knows(model, i))
            model_set(model, i, data[i]);
}

static void model_append(struct model *model, uint8_t byte)
{
    model_set(model, model->write, byte);
    model->write++;
}

/* ---- what is allowed ---- */

static bool model_has(const struct model *model, size_t index, size_t length)
{
    return index <= model->write && length <= model->write - index;
}

static size_t model_readable(const struct model *model)
{
    return model->write - model->read;
}

static int model_may_get(const struct model *model, size_t index, size_t length)
{
    return model_has(model, index, length) ? 0 : WEIR_EBOUNDS;
}

static int model_may_read(const struct model *model, size_t length)
{
    return model_may_get(model, model->read, length);
}

static int model_may_set(const struct model *model, size_t index, size_t length)
{
    return model->is_read_only ? -EROFS : model_may_get(model, index, length);
}

static int model_may_write(const struct model *model, size_t length)
{
    if (model->is_read_only)
        return -EROFS;
    return length <= model->max - model->write ? 0 : WEIR_EBOUNDS;
}

static int model_may_move_bytes(const struct model *model)
{
    if (model->is_read_only)
        return -EROFS;
    return model_is_shared(model) ? -EBUSY : 0;
}

/* ---- memory ---- */

/* The buffer has moved to other memory. */
static void model_move(struct model *model, size_t capacity)
{
    struct model_memory *memory = model_memory_create(capacity);

    for (size_t i = 0; i < model->write; i++) {
        memory->bytes[i] = model_get(model, i);
        memory->known[i] = true;
    }
    model_memory_release(model->memory);
    model->memory = memory;
    model->offset = 0;
    model->capacity = capacity;
}

static void model_discard(struct model *model)
{
    for (size_t i = 0; i < model_readable(model); i++)
        model_set(model, i, model_get(model, model->read + i));
    model->write -= model->read;
    model->read = 0;
}

/* ---- numbers ---- */

/* Byte `i` in memory of a number of `size` bytes. */
static uint8_t model_byte_of(uint64_t value, size_t size, bool is_little, size_t i)
{
    size_t place = is_little ? i : size - 1 - i;

    return (uint8_t)(value >> (8 * place));
}

static uint64_t model_number(const struct model *model, size_t index, size_t size, bool is_little)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value = value << 8 | model_get(model, index + (is_little ? size - 1 - i : i));
    return value;
}

/* By addition, where the implementation shifts and masks. */
static int model_varint(const struct model *model, size_t index, uint64_t *ret_value,
                        size_t *ret_length)
{
    uint64_t value = 0, worth = 1;
    size_t length = 0;
    uint8_t byte;

    do {
        if (index > model->write || length == model->write - index)
            return WEIR_EBOUNDS;
        byte = model_get(model, index + length);
        length++;
        if (length == 10 && byte > 1)
            return -EOVERFLOW;
        value += worth * (byte % 128);
        worth *= 128;
    } while (byte >= 128);
    if (byte == 0 && length > 1)
        return -EBADMSG;
    *ret_value = value;
    *ret_length = length;
    return 0;
}

#endif

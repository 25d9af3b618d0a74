/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events without content: static messages, to which the library holds a reference for ever.
 */
#include <weir/handler.h>

#include <assert.h>

static void never(weir_msg *msg)
{
    (void)msg;
    assert(!"an event was released more often than it was fired");
}

static size_t no_size(const weir_msg *msg)
{
    (void)msg;
    return 0;
}

static const weir_msg_type input_closed_type = {
    .name = "input-closed", .destroy = never, .size = no_size};
static const weir_msg_type input_drained_type = {
    .name = "input-drained", .destroy = never, .size = no_size};
static const weir_msg_type output_closed_type = {
    .name = "output-closed", .destroy = never, .size = no_size};

static weir_msg input_closed = {.type = &input_closed_type, .refs = 1};
static weir_msg input_drained = {.type = &input_drained_type, .refs = 1};
static weir_msg output_closed = {.type = &output_closed_type, .refs = 1};

weir_msg *weir_event_input_closed(void)
{
    return &input_closed;
}

weir_msg *weir_event_input_drained(void)
{
    return &input_drained;
}

weir_msg *weir_event_output_closed(void)
{
    return &output_closed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events without content: static messages, which are not counted. Loops of several threads fire
 * them at the same time, and would contend for a count.
 */
#include <weir/handler.h>

#include <assert.h>

static void never(weir_msg *msg)
{
    (void)msg;
    assert(!"a static event was freed");
}

static size_t no_size(const weir_msg *msg)
{
    (void)msg;
    return 0;
}

static const weir_msg_type input_closed_type = {
    .name = "input-closed", .destroy = never, .size = no_size};
static const weir_msg_type hangup_type = {.name = "hangup", .destroy = never, .size = no_size};
static const weir_msg_type output_closed_type = {
    .name = "output-closed", .destroy = never, .size = no_size};

static weir_msg input_closed = {.type = &input_closed_type, .refs = WEIR_MSG_STATIC};
static weir_msg hangup = {.type = &hangup_type, .refs = WEIR_MSG_STATIC};
static weir_msg output_closed = {.type = &output_closed_type, .refs = WEIR_MSG_STATIC};

weir_msg *weir_event_input_closed(void)
{
    return &input_closed;
}

weir_msg *weir_event_hangup(void)
{
    return &hangup;
}

weir_msg *weir_event_output_closed(void)
{
    return &output_closed;
}

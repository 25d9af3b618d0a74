/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler that logs every event and passes it on.
 *
 *     weir_pipeline_add_last(pipeline, &event_recorder, EVENT_RECORDER(&events, "a"));
 */
#ifndef WEIR_TEST_EVENT_RECORDER_H
#define WEIR_TEST_EVENT_RECORDER_H

#include <weir/pipeline.h>

#include "support/channel/event_log.h"

struct event_recorder {
    struct event_log *events;
    char name[16];
};

#define EVENT_RECORDER(event_log_, name_) \
    (&(const struct event_recorder){.events = (event_log_), .name = name_})

extern const weir_handler event_recorder;

/* Logs only added, removed and deinit. */
extern const weir_handler lifecycle_recorder;

/* A promise listener that logs "name=ok" or "name=ERROR". Its user_data is a struct event_recorder.
 */
void event_recorder_listen(weir_promise *promise, void *user_data);

#endif

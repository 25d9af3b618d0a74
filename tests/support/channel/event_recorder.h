/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler that writes every event into a diary, and passes it on.
 *
 *     weir_pipeline_add_last(pipeline, &spy, SPY(&diary, "a"));
 */
#ifndef WEIR_TEST_EVENT_RECORDER_H
#define WEIR_TEST_EVENT_RECORDER_H

#include <weir/pipeline.h>

#include "support/channel/event_log.h"

struct spy {
    struct diary *diary;
    char name[16];
};

#define SPY(diary_, name_) (&(const struct spy){.diary = (diary_), .name = name_})

extern const weir_handler spy;

/* The same without slots for events: only added, removed, deinit. */
extern const weir_handler bystander;

/* A listener; its user_data is a struct spy: writes "name=ok", or the error's name. */
void spy_listen(weir_promise *promise, void *user_data);

#endif

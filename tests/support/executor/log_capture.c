/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log hook that counts messages and stores the last one.
 */
#include "support/executor/log_capture.h"

#include <stdio.h>
#include <string.h>

#include "os/thread.h"
#include "support/test.h"

static weir__mutex lock = WEIR__MUTEX_INIT; /* guards the following */
static unsigned counts[WEIR_LOG_OFF];
static char last[512];

static void on_message(void *user_data, enum weir_log_level level, const char *subsystem,
                       const char *object, const char *message)
{
    (void)user_data;
    weir__mutex_lock(&lock);
    counts[level]++;
    snprintf(last, sizeof(last), "%s %s: %s", subsystem, object, message);
    weir__mutex_unlock(&lock);
}

void log_capture_start(void)
{
    weir__mutex_lock(&lock);
    memset(counts, 0, sizeof(counts));
    last[0] = '\0';
    weir__mutex_unlock(&lock);
    weir_log_set(on_message, NULL);
}

unsigned log_capture_count(enum weir_log_level level)
{
    unsigned count;

    weir__mutex_lock(&lock);
    count = counts[level];
    weir__mutex_unlock(&lock);
    return count;
}

bool log_capture_last_contains(const char *text)
{
    bool answer;

    weir__mutex_lock(&lock);
    answer = strstr(last, text) != NULL;
    weir__mutex_unlock(&lock);
    return answer;
}

static void free_captured(void)
{
    weir_log_set_level(WEIR_LOG_WARN);
    weir_log_set(NULL, NULL);
}

__attribute__((constructor)) static void free_after_each_test(void)
{
    test_before_leak_check(free_captured);
}

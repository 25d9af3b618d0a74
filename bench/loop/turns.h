/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop/turns.h - counts the instructions of turns of a manual loop, on the user's side: in each so
 * many requests have come, and all are answered. What those do who ask is not counted.
 */
#ifndef BENCH_LOOP_TURNS_H
#define BENCH_LOOP_TURNS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/loop.h>

#include "support/bench.h"
#include "support/instructions.h"

/* A ring returns about 20 completions at a time: this many requests are answered in one turn. */
enum {
    TURNS_REQUESTS_MAX = 16,
    TURNS_COUNTED = 32,
    TURNS_REQUEST_SIZE = 64,
    TURNS_ANSWER_MAX = 16384,
};

struct turns {
    weir_executor *loop;
    int count;
    int peers[TURNS_REQUESTS_MAX]; /* the socket from which each request is sent */
    const char *request;           /* zeros unless changed after turns_init, as the next ones */
    size_t request_size;
    size_t answer_size; /* as much as the request */
    int operations;     /* that a request is counted as: 1 */
};

/* False if this machine refuses a ring. */
static inline bool turns_init(struct turns *self, const weir_loop_options *options, int count)
{
    static const char zeros[TURNS_REQUEST_SIZE];
    int err = weir_loop_create(options, &self->loop);

    if (err < 0 && options->io == WEIR_IO_URING)
        return false;
    bench_require(err == 0, "weir_loop_create");
    self->count = count;
    self->request = zeros;
    self->request_size = self->answer_size = sizeof(zeros);
    self->operations = 1;
    return true;
}

static inline void turns_deinit(struct turns *self)
{
    weir_executor_shutdown(self->loop, 0, 0);
    while (weir_loop_run_once(self->loop, 0) >= 0)
        ;
    weir_executor_release(self->loop);
}

static inline void turns_take(const struct turns *self)
{
    bench_require(weir_loop_run_once(self->loop, 0) >= 0, "weir_loop_run_once");
}

static inline void turns_ask(const struct turns *self)
{
    for (int i = 0; i < self->count; i++)
        bench_require(write(self->peers[i], self->request, self->request_size) ==
                          (ssize_t)self->request_size,
                      "write");
}

/* The number of answers that have come. */
static inline int turns_hear(const struct turns *self)
{
    char answer[TURNS_ANSWER_MAX];
    size_t bytes = 0;

    for (int i = 0; i < self->count; i++) {
        ssize_t length = recv(self->peers[i], answer, sizeof(answer), MSG_DONTWAIT);

        bytes += length > 0 ? (size_t)length : 0;
    }
    return (int)(bytes / self->answer_size);
}

/*
 * All are answered in the turn in which they have come, or (by a ring, which sends when it waits
 * next) at the beginning of the next one: then the last answers are not counted, but those before
 * the first.
 */
static inline void turns_count(const struct turns *self, const char *name, int warm_up)
{
    int unanswered = 0, late;

    for (int i = 0; i < warm_up; i++) {
        turns_ask(self);
        turns_take(self);
        unanswered += self->count - turns_hear(self);
    }
    late = unanswered;
    bench_count_begin(name, TURNS_COUNTED * self->count * self->operations);
    bench_count_pause();
    for (int i = 0; i < TURNS_COUNTED; i++) {
        turns_ask(self);
        bench_count_resume();
        turns_take(self);
        bench_count_pause();
        unanswered += self->count - turns_hear(self);
    }
    bench_count_resume();
    bench_count_end();
    bench_require((late == 0 || late == self->count) && unanswered == late, "all answers");
    turns_take(self);
    bench_require(turns_hear(self) == late, "the last answers");
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_sim_reduce: fewer faults that still make a run fail.
 *
 * This is Zeller's ddmin: the list is divided into pieces; a piece that fails alone replaces the
 * list, and so does a list that fails without a piece; else the pieces become smaller. Any failure
 * counts, not only the first one: each is worth a look. Most lists consist of preemptions, of which
 * none matters, so the first attempts leave out whole kinds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "sim/isolated.h"

#define MAX_ATTEMPTS 500

struct reduction {
    weir_sim_options options;
    weir_sim_program_fn *program;
    void *arg;
    unsigned attempt, max_attempts;
    void (*on_attempt)(unsigned attempt, size_t faults_left, void *user_data);
    weir_sim_fault_event *list; /* the smallest that fails */
    size_t count;
    weir_sim_fault_event *candidate; /* room for as many */
    weir_sim_result best;
};

/*
 * Runs with the first `count` of the candidates. They replace the list if that fails. Returns 1 in
 * that case, 0 if the run passes, or an error.
 */
static int try_candidate(struct reduction *self, size_t count)
{
    weir_sim_result result = {0};
    weir_sim_fault_event *list = self->candidate;
    int err;

    self->options.only_faults = self->candidate;
    self->options.only_fault_count = count;
    err = weir__sim_run_isolated(&self->options, self->program, self->arg, &result);
    self->attempt++;
    if (err == WEIR_ESIM) {
        self->candidate = self->list;
        self->list = list;
        self->count = count;
        weir_sim_result_free(&self->best);
        self->best = result;
        err = 1;
    } else {
        weir_sim_result_free(&result);
    }
    if (self->on_attempt != NULL && err >= 0)
        self->on_attempt(self->attempt, self->count, self->options.user_data);
    return err;
}

/* Copies the list without [from, to), or only that, to the candidates. */
static size_t copy_piece(struct reduction *self, size_t from, size_t to, bool only)
{
    size_t size = sizeof(*self->list);

    if (only) {
        memcpy(self->candidate, self->list + from, (to - from) * size);
        return to - from;
    }
    memcpy(self->candidate, self->list, from * size);
    memcpy(self->candidate + from, self->list + to, (self->count - to) * size);
    return self->count - (to - from);
}

static int leave_out_kind(struct reduction *self, enum weir_sim_fault kind)
{
    size_t count = 0;

    for (size_t i = 0; i < self->count; i++)
        if (self->list[i].kind != kind)
            self->candidate[count++] = self->list[i];
    return count < self->count ? try_candidate(self, count) : 0;
}

/* One round over all pieces of a division. Returns 1 if the list has become smaller. */
static int try_pieces(struct reduction *self, size_t pieces, bool only)
{
    size_t count = self->count;
    int err = 0;

    for (size_t i = 0; i < pieces && err == 0 && self->attempt < self->max_attempts; i++) {
        size_t length = copy_piece(self, count * i / pieces, count * (i + 1) / pieces, only);

        err = try_candidate(self, length);
    }
    return err;
}

static int bisect(struct reduction *self)
{
    size_t pieces = 2;
    int err = 0;

    while (self->count > 1 && self->attempt < self->max_attempts) {
        err = pieces == 2 ? 0 : try_pieces(self, pieces, false); /* halves: the other one alone */
        if (err == 1) {
            pieces = pieces > 2 ? pieces - 1 : 2;
            continue;
        }
        if (err == 0)
            err = try_pieces(self, pieces, true);
        if (err < 0)
            return err;
        if (err == 1)
            pieces = 2;
        else if (pieces >= self->count)
            return 0;
        else
            pieces = pieces * 2 < self->count ? pieces * 2 : self->count;
    }
    return 0;
}

static int reduce(struct reduction *self)
{
    int err = try_candidate(self, self->count);

    if (err == 0)
        return -EINVAL; /* does not fail again */
    if (err == 1)
        err = try_candidate(self, 0);
    if (err != 0)
        return err < 0 ? err : 0; /* fails without any fault */
    for (unsigned kind = WEIR_SIM_FAULT_COUNT; kind-- > 0 && err >= 0;)
        err = leave_out_kind(self, (enum weir_sim_fault)kind);
    return err < 0 ? err : bisect(self);
}

int weir_sim_reduce(const weir_sim_options *options, weir_sim_program_fn *program, void *arg,
                    const weir_sim_result *failed, unsigned max_attempts,
                    void (*on_attempt)(unsigned attempt, size_t faults_left, void *user_data),
                    weir_sim_result *ret_result)
{
    struct reduction self = {.program = program, .arg = arg, .on_attempt = on_attempt};
    size_t count = failed != NULL ? failed->fault_count : 0;
    int err;

    if (program == NULL || failed == NULL || ret_result == NULL)
        return -EINVAL;
    if (weir_sim_current() != NULL)
        return -EBUSY;
    if (options != NULL)
        memcpy(&self.options, options,
               options->size < sizeof(*options) ? options->size : sizeof(*options));
    self.options.size = sizeof(self.options);
    self.max_attempts = max_attempts > 0 ? max_attempts : MAX_ATTEMPTS;
    self.list = malloc((count + 1) * sizeof(*self.list));
    self.candidate = malloc((count + 1) * sizeof(*self.candidate));
    err = self.list != NULL && self.candidate != NULL ? 0 : -ENOMEM;
    if (err == 0) {
        if (count > 0)
            memcpy(self.candidate, failed->faults, count * sizeof(*self.candidate));
        self.count = count;
        err = reduce(&self);
    }
    if (err < 0)
        weir_sim_result_free(&self.best);
    else
        *ret_result = self.best;
    free(self.list);
    free(self.candidate);
    return err;
}

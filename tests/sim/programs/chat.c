/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chat example (examples/chat/main.c) in a world: the same source, its main function called
 * with arguments. Guests come, speak when all are there, and leave when they have heard everyone.
 * The lines of each speaker arrive in order, once, and in a world without faults all of them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/programs/example.h"
#include "sim/programs/parts.h"
#include "sim/programs/program.h"

#define GUESTS 5
#define LINES 6
#define LINE_SIZE 128

/* Faults after which a guest may miss lines. */
#define BREAKING (SIM_SCARCITY | SIM_KIND(RESET))

static bool is_rough;

/* ---- the server ---- */

static int server_main(void *arg)
{
    char words[][12] = {"chat", "--host", "10.0.0.1", "--port", "8023", "--threads", "2"};
    char *argv[8] = {NULL};

    (void)arg;
    for (int i = 0; i < 7; i++)
        argv[i] = words[i];
    for (int i = 0; i < 100; i++) {
        if (chat_main(7, argv) == EXIT_SUCCESS)
            return 0;
        if (sim_faults(SIM_SCARCITY) == 0)
            break;
        weir_sim_sleep(weir_ms(1)); /* no memory, no descriptor: starts again */
    }
    return -EIO;
}

/* ---- the guests ---- */

static struct guest {
    weir_channel *channel;
    unsigned spoken;
    unsigned heard[GUESTS]; /* the next number of each speaker */
    bool is_in, has_left;
    char line[LINE_SIZE];
    size_t length;
} guests[GUESTS];

static unsigned open_guests;

static void fail(unsigned guest, const char *what, const char *line)
{
    weir_sim_fail(weir_sim_current(), "guest %u: %s: %s", guest, what, line);
}

WEIR_PRINTF(2, 3) static void say(weir_channel *channel, const char *format, ...)
{
    va_list arguments;
    weir_buf *buf;
    int err = weir_buf_create(LINE_SIZE, 0, &buf);

    if (err < 0) {
        weir_channel_close(channel, NULL);
        return;
    }
    va_start(arguments, format);
    (void)weir_buf_vprintf(buf, format, arguments); /* there is room */
    va_end(arguments);
    weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
}

/* "g3: 5" */
static void hear(unsigned self, const char *line)
{
    struct guest *guest = &guests[self];
    unsigned speaker, number;

    if (sscanf(line, "g%u: %u", &speaker, &number) != 2 || speaker >= GUESTS || speaker == self) {
        fail(self, "not a line of another guest", line);
        return;
    }
    if (number < guest->heard[speaker] || number >= guests[speaker].spoken)
        fail(self, "a line twice, too late or never said", line);
    else if (number > guest->heard[speaker] && sim_faults(BREAKING) == 0)
        fail(self, "lines are missing before", line);
    guest->heard[speaker] = number + 1;
}

static void on_line(weir_ctx *ctx, unsigned self, const char *line)
{
    struct guest *guest = &guests[self];
    unsigned number;

    if (strcmp(line, "* who are you?") == 0)
        say(weir_ctx_channel(ctx), "g%u\n", self);
    else if (sscanf(line, "* welcome, g%u:", &number) == 1 && number == self)
        guest->is_in = true;
    else if (strcmp(line, "* bye") == 0 && !guest->has_left)
        fail(self, "a farewell unasked", line);
    else if (line[0] != '*')
        hear(self, line);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    unsigned self = *(unsigned *)weir_ctx_state(ctx);
    struct guest *guest = &guests[self];
    weir_buf *buf = weir_buf_of(msg);
    const char *bytes = (const char *)weir_buf_bytes(buf);

    for (size_t i = 0; i < weir_buf_readable(buf); i++) {
        if (bytes[i] != '\n' && guest->length + 1 < LINE_SIZE) {
            guest->line[guest->length++] = bytes[i];
            continue;
        }
        guest->line[guest->length] = '\0';
        guest->length = 0;
        on_line(ctx, self, guest->line);
    }
    weir_msg_release(msg);
}

static void on_active(weir_ctx *ctx)
{
    (void)ctx;
    open_guests++;
}

static void on_inactive(weir_ctx *ctx)
{
    struct guest *guest = &guests[*(unsigned *)weir_ctx_state(ctx)];

    if (!guest->has_left && sim_faults(BREAKING) == 0)
        fail((unsigned)(guest - guests), "thrown out", "");
    guest->has_left = true;
    open_guests--;
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

static const weir_handler guest_handler = {
    .name = "guest",
    .state_size = sizeof(unsigned),
    .active = on_active,
    .read = on_read,
    .inactive = on_inactive,
    .error = on_error,
};

static int init_guest(weir_channel *channel, void *guest)
{
    int err = sim_add(channel, &guest_handler);

    if (err == 0)
        *(unsigned *)weir_ctx_state(weir_pipeline_find(weir_channel_pipeline(channel), "guest")) =
            (unsigned)((struct guest *)guest - guests);
    return err;
}

/* True if the condition became true in time: TCP sends again for minutes, once in a minute. */
static bool await(bool (*condition)(void))
{
    for (int64_t waited_ns = 0; !condition(); waited_ns += weir_ms(5)) {
        if (waited_ns > weir_seconds(3) && sim_faults(BREAKING) > 0)
            return false;
        if (waited_ns > weir_seconds(5))
            weir_sim_calm(weir_sim_current(), true);
        if (waited_ns > weir_seconds(130))
            return false;
        weir_sim_sleep(weir_ms(5));
    }
    return true;
}

static bool all_are_in(void)
{
    for (unsigned i = 0; i < GUESTS; i++)
        if (!guests[i].is_in && !guests[i].has_left)
            return false;
    return true;
}

static bool all_have_heard(void)
{
    for (unsigned i = 0; i < GUESTS * GUESTS; i++) {
        const struct guest *guest = &guests[i / GUESTS], *speaker = &guests[i % GUESTS];

        if (guest != speaker && !guest->has_left && guest->heard[i % GUESTS] < speaker->spoken)
            return false;
    }
    return true;
}

static bool all_have_left(void)
{
    return open_guests == 0;
}

static void speak(void)
{
    for (unsigned n = 0; n < GUESTS * LINES * 2; n++) {
        struct guest *guest = &guests[sim_below(GUESTS)];

        if (guest->has_left || guest->channel == NULL || guest->spoken == LINES)
            continue;
        guest->spoken++;
        say(guest->channel, "%u\n", guest->spoken - 1);
        if (sim_once_in(6))
            weir_sim_sleep(sim_delay(weir_ms(is_rough ? 20 : 1)));
    }
    for (unsigned i = 0; i < GUESTS; i++)
        while (guests[i].spoken < LINES && guests[i].channel != NULL && !guests[i].has_left)
            say(guests[i].channel, "%u\n", guests[i].spoken++);
}

static int come(weir_group *group, struct guest *guest)
{
    int err =
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group, .address = "10.0.0.1:8023",
                                                     .init = init_guest, .user_data = guest),
                                 &guest->channel);

    if (err < 0)
        guest->has_left = true;
    return err;
}

static void leave(void)
{
    for (unsigned i = 0; i < GUESTS; i++) {
        if (guests[i].has_left || guests[i].channel == NULL)
            continue;
        guests[i].has_left = true;
        if (sim_once_in(2))
            say(guests[i].channel, "/quit\n");
        else
            weir_channel_close(guests[i].channel, NULL);
    }
}

static int guests_main(void *arg)
{
    weir_group *group = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "guests", .threads = 2), &group);
    bool ok = err == 0;

    (void)arg;
    for (unsigned i = 0; i < GUESTS && err == 0; i++)
        if (come(group, &guests[i]) < 0 &&
            sim_faults(BREAKING | SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP)) == 0)
            fail(i, "no connection", "");
    if (ok)
        ok = await(all_are_in);
    if (ok) {
        speak();
        ok = await(all_have_heard);
    }
    if (!ok && sim_faults(BREAKING) == 0 && err == 0)
        weir_sim_fail(weir_sim_current(), "not everyone has heard everything");
    leave();
    (void)await(all_have_left);
    for (unsigned i = 0; i < GUESTS; i++)
        weir_channel_release(guests[i].channel);
    sim_end_group(group);
    return sim_excuse(err);
}

/* ---- the world ---- */

static int run(weir_sim *sim, void *arg)
{
    weir_sim_host *server_host, *guest_host;
    weir_sim_process *server, *guest_process;
    int err = weir_sim_host_create(sim, "server", "10.0.0.1", &server_host);

    memset(guests, 0, sizeof(guests));
    open_guests = 0;
    if (err == 0)
        err = weir_sim_host_create(sim, "guests", "10.0.0.2", &guest_host);
    if (err == 0)
        err = weir_sim_start(server_host, "server", server_main, arg, &server);
    if (err < 0)
        return err;
    sim_await_listener(server_host, server);
    err = weir_sim_start(guest_host, "guests", guests_main, arg, &guest_process);
    if (err == 0)
        err = weir_sim_join(guest_process);
    return err < 0 ? err : sim_stop(server);
}

static void configure(uint64_t seed, weir_sim_options *options)
{
    uint32_t kinds = SIM_KIND(SHORT_READ) | SIM_KIND(SHORT_WRITE) | SIM_KIND(SLOW) |
                     SIM_KIND(PREEMPT) | SIM_KIND(INTERRUPTED);

    is_rough = seed % 4 != 0;
    if (is_rough) {
        options->network.socket_buffer = 256;
        options->max_outage_ns = weir_ms(500);
        kinds |= SIM_KIND(PARTITION) | SIM_KIND(HOST_STOP) | SIM_KIND(CLOCK_STEP);
    }
    if (seed % 4 > 1)
        kinds |= SIM_SCARCITY | SIM_KIND(RESET);
    sim_draw_rates(seed, kinds, options);
}

SIM_PROGRAM(chat, "the chat example, from the same source", configure, run)

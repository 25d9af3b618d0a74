/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog interrupts a thread that throws and catches exceptions: it must not unwind inside of
 * the unwinder. One task of a loop after the other blocks it until a report has come.
 */
#include <atomic>
#include <stdexcept>

#include <weir/weir.h>

#include "expect.h"

namespace
{

const unsigned REPORTS = 2000;

std::atomic<unsigned> reports(0), with_frames(0), caught(0);

__attribute__((noinline)) void throw_deeply(int depth)
{
    if (depth == 0)
        throw std::runtime_error("thrown");
    throw_deeply(depth - 1);
    caught++; /* not reached; prevents a tail call */
}

void throw_until_reported(void *, int)
{
    unsigned before = reports;

    while (reports == before)
        try {
            throw_deeply(16);
        } catch (const std::runtime_error &) {
            caught++;
        }
}

void on_block(const weir_block *block, void *)
{
    if (block->has_ended)
        return;
    with_frames += block->frame_count > 1;
    reports++;
}

void ignore_message(void *, enum weir_log_level, const char *, const char *, const char *)
{
}

} // namespace

int main()
{
    weir_watchdog_options options = *WEIR_WATCHDOG_OPTIONS();
    weir_executor *loop = nullptr;

    options.threshold_ns = weir_ms(1);
    weir_log_set(ignore_message, nullptr);
    EXPECT(weir_loop_create(nullptr, &loop) == 0);
    EXPECT(weir_watchdog_add_listener(on_block, nullptr) == 0);
    EXPECT(weir_watchdog_start(&options) == 0);
    while (reports < REPORTS && failures == 0) {
        EXPECT(weir_execute(loop, throw_until_reported, nullptr) == 0);
        (void)weir_loop_run_once(loop, 0);
    }
    weir_watchdog_stop();
    EXPECT(weir_watchdog_remove_listener(on_block, nullptr) == 0);
    EXPECT(with_frames > REPORTS / 2);
    EXPECT(caught > 0);
    weir_executor_release(loop);
    return failures == 0 ? 0 : 1;
}

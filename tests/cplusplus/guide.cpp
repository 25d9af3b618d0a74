/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snippets of docs/guide/26-cplusplus.md, compiled as C++20 and run.
 */
#include <cerrno>
#include <cstdio>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <weir/weir.h>

/* doc:begin raii */
template <auto release> struct releaser {
    template <typename type> void operator()(type *object) const noexcept
    {
        release(object);
    }
};

template <typename type, auto release> using handle = std::unique_ptr<type, releaser<release>>;

using group_ptr = handle<weir_group, weir_group_release>;
using channel_ptr = handle<weir_channel, weir_channel_release>;
using promise_ptr = handle<weir_promise, weir_promise_release>;
using msg_ptr = handle<weir_msg, weir_msg_release>;
using embedded_ptr = handle<weir_embedded, weir_embedded_release>;
/* doc:end */

/* doc:begin create */
static void check(int err)
{
    if (err < 0)
        throw std::runtime_error(weir_error_text(err));
}

static group_ptr create_group(int threads)
{
    weir_group *group = nullptr;

    check(weir_group_create(WEIR_GROUP_OPTIONS(.threads = threads, .name = "worker"), &group));
    return group_ptr(group);
}
/* doc:end */

/* doc:begin before-20 */
static group_ptr create_group_before_20(int threads)
{
    weir_group_options options = *WEIR_GROUP_OPTIONS();
    weir_group *group = nullptr;

    options.threads = threads;
    options.name = "worker";
    check(weir_group_create(&options, &group));
    return group_ptr(group);
}
/* doc:end */

/* doc:begin handler */
/* Prefixes each message with a greeting. One object per channel. */
class greeter
{
  public:
    explicit greeter(std::string_view greeting) : prefix(std::string(greeting) + ", ")
    {
    }

    static const weir_handler *type();

  private:
    std::string prefix;

    weir_msg *greet(weir_msg *msg) const;
    static int init(void *state, const void *options) noexcept;
    static void deinit(void *state) noexcept;
    static void on_read(weir_ctx *ctx, weir_msg *msg) noexcept;
};

const weir_handler *greeter::type()
{
    static const weir_handler handler = [] {
        weir_handler table{};

        table.name = "greeter";
        table.state_size = sizeof(greeter);
        table.init = init;
        table.deinit = deinit;
        table.read = on_read;
        table.read_complete = [](weir_ctx *ctx) { weir_flush(ctx); };
        return table;
    }();

    return &handler;
}

int greeter::init(void *state, const void *options) noexcept
try {
    new (state) greeter(static_cast<const char *>(options));
    return 0;
} catch (const std::bad_alloc &) {
    return -ENOMEM;
}

void greeter::deinit(void *state) noexcept
{
    static_cast<greeter *>(state)->~greeter();
}
/* doc:end */

/* doc:begin exceptions */
/* The readable bytes. Valid as long as the buffer and its contents. */
static std::string_view text_of(const weir_buf *buf)
{
    return {reinterpret_cast<const char *>(weir_buf_bytes(buf)), weir_buf_readable(buf)};
}

weir_msg *greeter::greet(weir_msg *msg) const
{
    msg_ptr owned(msg); /* released however this function returns */
    std::string_view name = text_of(weir_buf_of(msg));
    std::string text = prefix;
    weir_buf *buf = nullptr;

    if (name.empty())
        throw std::invalid_argument("empty name");
    text.append(name);
    check(weir_buf_create_from(text.data(), text.size(), &buf));
    return weir_buf_msg(buf);
}

void greeter::on_read(weir_ctx *ctx, weir_msg *msg) noexcept
try {
    weir_write(ctx, static_cast<greeter *>(weir_ctx_state(ctx))->greet(msg), nullptr);
} catch (const std::bad_alloc &) {
    weir_fire_error(ctx, -ENOMEM, nullptr);
} catch (const std::exception &problem) {
    weir_fire_error(ctx, -EINVAL, problem.what());
}
/* doc:end */

/* doc:begin execute */
/* Runs fn() on the executor. If the task is cancelled, fn is destroyed without being called. */
template <typename function> void post(weir_executor *executor, function fn)
{
    auto task = std::make_unique<function>(std::move(fn));
    weir_task_fn *run = [](void *arg, int status) noexcept {
        std::unique_ptr<function> owned(static_cast<function *>(arg));

        if (status == 0)
            (*owned)();
    };

    check(weir_execute(executor, run, task.get()));
    task.release(); /* owned by the executor now */
}
/* doc:end */

namespace
{

int failures = 0;

void expect(bool holds, const char *what)
{
    if (holds)
        return;
    failures++;
    std::fprintf(stderr, "guide.cpp: %s\n", what);
}

int write_name(weir_embedded *embedded, std::string_view name)
{
    weir_buf *buf = nullptr;

    check(weir_buf_create_from(name.data(), name.size(), &buf));
    return weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
}

void run_handler()
{
    weir_embedded *created = nullptr;

    check(weir_embedded_create(nullptr, &created));
    embedded_ptr embedded(created);
    check(weir_pipeline_add_last(weir_embedded_pipeline(created), greeter::type(), "Hello"));
    expect(write_name(created, "world") == 0, "a name is accepted");
    msg_ptr answer(weir_embedded_read_outbound(created));
    expect(text_of(weir_buf_of(answer.get())) == "Hello, world", "the greeter greets");
    expect(write_name(created, "") == -EINVAL, "the exception becomes an error event");
}

void run_tasks(const group_ptr &group)
{
    auto promise = std::make_shared<std::promise<int>>();
    std::future<int> answer = promise->get_future();

    post(weir_group_next(group.get()), [promise] { promise->set_value(42); });
    expect(answer.get() == 42, "the task runs");
}

} // namespace

int main()
{
    run_handler();
    run_tasks(create_group(1));
    run_tasks(create_group_before_20(1));
    return failures;
}

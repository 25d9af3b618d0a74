/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a file: from the cache, or by a lookup on the group. The thread that looks up
 * answers the requests that wait, too.
 */
#include "protocol/http/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/loop.h>
#include <weir/memory.h>

#include "base/options.h"
#include "protocol/http/disk.h"
#include "protocol/http/exchange.h"

#define DEFAULT_LIFETIME_NS ((int64_t)1000000000)
#define DEFAULT_CACHE_BYTES ((size_t)16 << 20)
#define DEFAULT_SMALL ((size_t)16 << 10)
#define MAX_SMALL ((int64_t)1 << 20)
#define DEFAULT_DESCRIPTORS 256
#define DEFAULT_LISTING 10000
#define MAX_LISTING 1000000
#define LOOKUP_THREADS 2

/* ---- options ---- */

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = weir_memory_alloc(size);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

static int copy_index_files(weir_http_files_root *root, const char *const *names)
{
    static const char *const by_default[] = {"index.html", NULL};
    size_t count = 0;

    if (names == NULL)
        names = by_default;
    while (names[count] != NULL)
        count++;
    root->index_files = weir_memory_alloc((count + 1) * sizeof(*root->index_files));
    if (root->index_files == NULL)
        return -ENOMEM;
    memset(root->index_files, 0, (count + 1) * sizeof(*root->index_files));
    for (size_t i = 0; i < count; i++) {
        root->index_files[i] = copy_text(names[i]);
        if (root->index_files[i] == NULL)
            return -ENOMEM;
    }
    return 0;
}

static int check(const weir_http_files_options *options)
{
    const char *const *name = options->index_files;

    if (options->root == NULL)
        return weir__options_reject("http_files", NULL, "root is missing");
    for (; name != NULL && *name != NULL; name++) {
        if (strchr(*name, '/') != NULL ||
            !weir__http_file_path_is_valid(weir_span_of_text(*name), true) || **name == '\0')
            return weir__options_reject("http_files", options->root,
                                        "index_files: \"%s\" is not the name of a file", *name);
    }
    if (options->charset != NULL && strlen(options->charset) > 32)
        return weir__options_reject("http_files", options->root, "charset is longer than 32");
    return weir__options_check("http_files", options->root,
                               WEIR__OPTION(options, max_listing, 0, MAX_LISTING),
                               WEIR__OPTION(options, max_age_seconds, WEIR_OFF, INT_MAX),
                               WEIR__OPTION(options, cache_lifetime_ns, WEIR_OFF, INT64_MAX / 4),
                               WEIR__OPTION(options, cache_bytes, 0, INT64_MAX / 4),
                               WEIR__OPTION(options, cache_file_size, 0, MAX_SMALL),
                               WEIR__OPTION(options, cache_descriptors, 0, INT_MAX / 2));
}

static int create_cache(weir_http_files_root *root, const weir_http_files_options *options)
{
    const weir__http_file_cache_limits limits = {
        .lifetime_ns = options->cache_lifetime_ns == WEIR_OFF ? 0
                       : options->cache_lifetime_ns > 0       ? options->cache_lifetime_ns
                                                              : DEFAULT_LIFETIME_NS,
        .bytes = options->cache_bytes > 0 ? options->cache_bytes : DEFAULT_CACHE_BYTES,
        .descriptors = options->cache_descriptors > 0 ? (unsigned)options->cache_descriptors
                                                      : DEFAULT_DESCRIPTORS,
    };
    weir_executor *executor =
        root->group != NULL ? weir_group_next(root->group) : weir_executor_global();

    if (executor == NULL)
        return weir__options_reject("http_files", options->root,
                                    "group has a thread per channel; it needs plain executors");
    return weir__http_file_cache_create(&limits, executor, &root->cache);
}

static int create_group(weir_http_files_root *root, const weir_http_files_options *options)
{
    if (options->group != NULL) {
        root->group = weir_group_retain(options->group);
        return 0;
    }
    return options->blocking
               ? 0
               : weir_group_create(WEIR_GROUP_OPTIONS(.threads = LOOKUP_THREADS, .io = WEIR_IO_NONE,
                                                      .name = "weir-files"),
                                   &root->group);
}

static int set_texts(weir_http_files_root *root, const weir_http_files_options *options)
{
    root->parameter = copy_text(options->parameter != NULL ? options->parameter : "path");
    root->charset = copy_text(options->charset != NULL ? options->charset : "utf-8");
    if (options->max_age_seconds == WEIR_OFF)
        (void)snprintf(root->cache_control, sizeof(root->cache_control), "no-cache");
    else if (options->max_age_seconds > 0)
        (void)snprintf(root->cache_control, sizeof(root->cache_control), "max-age=%d",
                       options->max_age_seconds);
    return root->parameter != NULL && root->charset != NULL
               ? copy_index_files(root, options->index_files)
               : -ENOMEM;
}

static int init(weir_http_files_root *root, const weir_http_files_options *options)
{
    int err = set_texts(root, options);

    if (err == 0)
        err = weir__http_disk_open_root(options->root, &root->rules.root);
    if (err == 0)
        err = create_group(root, options);
    if (err == 0)
        err = create_cache(root, options);
    root->rules.disk_flags = options->links ? WEIR__HTTP_DISK_LINKS : 0;
    root->rules.index_files = root->index_files;
    root->rules.charset = root->charset;
    root->rules.small = options->cache_file_size > 0 ? options->cache_file_size : DEFAULT_SMALL;
    root->rules.precompressed = !options->no_precompressed;
    root->rules.listing = options->listing;
    root->rules.dotfiles = options->dotfiles;
    root->rules.max_listing =
        options->max_listing > 0 ? (size_t)options->max_listing : DEFAULT_LISTING;
    return err;
}

/* ---- roots ---- */

static void destroy(weir_http_files_root *root)
{
    weir__http_file_cache_close(root->cache);
    weir_group_release(root->group);
    weir__http_disk_close(root->rules.root);
    for (char **name = root->index_files; name != NULL && *name != NULL; name++)
        weir_memory_free(*name);
    weir_memory_free(root->index_files);
    weir_memory_free(root->charset);
    weir_memory_free(root->parameter);
    weir_memory_free(root);
}

int weir_http_files_root_create(const weir_http_files_options *given,
                                weir_http_files_root **ret_root)
{
    weir_http_files_options options;
    weir_http_files_root *root;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = check(&options);
    if (err < 0)
        return err;
    root = weir_memory_alloc(sizeof(*root));
    if (root == NULL)
        return -ENOMEM;
    memset(root, 0, sizeof(*root));
    weir__refs_init(&root->refs);
    root->rules.root = -1;
    err = init(root, &options);
    if (err < 0)
        destroy(root);
    else
        *ret_root = root;
    return err;
}

weir_http_files_root *weir_http_files_root_retain(weir_http_files_root *root)
{
    weir__refs_retain(&root->refs);
    return root;
}

void weir_http_files_root_release(weir_http_files_root *root)
{
    if (root != NULL && weir__refs_release(&root->refs))
        destroy(root);
}

/* ---- lookups ---- */

/* Tries once more if descriptors are missing, with those of the cache, and if the file has become
 * shorter while it was read. */
static int open_file(weir_http_files_root *root, const char *path, weir__http_file **ret_file)
{
    int err = weir__http_file_open(&root->rules, path, ret_file);

    if (err == -EMFILE || err == -ENFILE)
        weir__http_file_cache_clear(root->cache);
    else if (err != WEIR_ETRUNCATED)
        return err;
    return weir__http_file_open(&root->rules, path, ret_file);
}

/* Looks up a path, and answers all requests that wait for it. Takes the lookup and a reference to
 * the root. */
static void look_up(weir_http_files_root *root, weir__http_lookup *lookup, int err)
{
    weir__http_file *file = NULL;
    weir__http_waiter *waiter, *next;
    char path[128];

    if (err == 0)
        err = open_file(root, lookup->path, &file);
    (void)snprintf(path, sizeof(path), "%s", lookup->path);
    waiter = weir__http_file_cache_end_lookup(root->cache, lookup, file);
    for (; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (file != NULL)
            (void)weir__http_files_respond(root, waiter->request, file);
        else
            (void)weir__http_files_respond_error(root, waiter->request, path, err);
        weir_http_exchange_release(waiter->request);
        weir_memory_free(waiter);
    }
    weir__http_file_release(file);
    weir_http_files_root_release(root);
}

static void on_lookup(void *user_data, int status)
{
    weir__http_lookup *lookup = user_data;

    look_up(lookup->owner, lookup, status);
}

static void start_lookup(weir_http_files_root *root, weir__http_lookup *lookup)
{
    int err;

    lookup->owner = weir_http_files_root_retain(root);
    if (root->group == NULL) {
        look_up(root, lookup, 0);
        return;
    }
    weir_task_init(&lookup->task, on_lookup, lookup);
    err = weir_execute_task(weir_group_next(root->group), &lookup->task);
    if (err < 0)
        look_up(root, lookup, err);
}

/* ---- requests ---- */

static int refuse_method(weir_http_exchange *exchange)
{
    int err = weir_http_headers_set_text(weir_http_exchange_headers(exchange), WEIR_HTTP_ALLOW,
                                         "GET, HEAD");

    return err < 0 ? err : weir_http_respond_error(exchange, 405, NULL);
}

static int wait_for_file(weir_http_exchange *exchange, weir_http_files_root *root,
                         const weir_executor *loop, weir_span path)
{
    weir__http_lookup *lookup;
    int err = weir__http_file_cache_wait(root->cache, loop, path, weir_loop_now(loop),
                                         weir_http_exchange_retain(exchange), &lookup);

    if (err < 0)
        weir_http_exchange_release(exchange);
    else if (lookup != NULL)
        start_lookup(root, lookup);
    return err;
}

int weir_http_respond_file(weir_http_exchange *exchange, weir_http_files_root *root, weir_span path)
{
    enum weir_http_method method = weir_http_request_method(weir_http_exchange_request(exchange));
    const weir_executor *loop = weir_channel_executor(weir_http_exchange_channel(exchange));
    weir__http_file *file;
    int err;

    if (method != WEIR_HTTP_METHOD_GET && method != WEIR_HTTP_METHOD_HEAD)
        return refuse_method(exchange);
    if (!weir__http_file_path_is_valid(path, root->rules.dotfiles))
        return weir_http_respond_error(exchange, 404, NULL);
    file = weir__http_file_cache_get(root->cache, loop, path, weir_loop_now(loop));
    if (file == NULL)
        return wait_for_file(exchange, root, loop, path);
    err = weir__http_files_respond(root, exchange, file);
    weir__http_file_release(file);
    return err;
}

void weir_http_files(weir_http_exchange *exchange, void *user_data)
{
    weir_http_files_root *root = user_data;
    weir_span path = weir_http_exchange_parameter(exchange, root->parameter);

    if (path.data == NULL)
        path = weir_span_of("", 0);
    if (exchange->has_encoded_slash) /* no file has that name */
        (void)weir_http_respond_error(exchange, 404, NULL);
    else
        (void)weir_http_respond_file(exchange, root, path);
}

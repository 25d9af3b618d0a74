/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What http_api.cpp stands on: texts, a temporary folder, and an embedded channel that speaks text.
 */
#ifndef CPLUSPLUS_EMBEDDED_CONNECTION_H
#define CPLUSPLUS_EMBEDDED_CONNECTION_H

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

#include <weir/weir.h>

#include "expect.h"

static inline weir_span text(const char *characters)
{
    return weir_span_of_text(characters);
}

static inline std::string string_of(weir_span span)
{
    return std::string(reinterpret_cast<const char *>(span.data), span.length);
}

static inline bool is(weir_span span, const char *expected)
{
    return string_of(span) == expected;
}

static inline bool has(const std::string &all, const char *part)
{
    return all.find(part) != std::string::npos;
}

static inline weir_buf *buf_of(const char *characters)
{
    weir_buf *buf = nullptr;

    EXPECT(weir_buf_create_from(characters, std::strlen(characters), &buf) == 0);
    return buf;
}

static inline weir_msg *msg_of(const char *characters)
{
    return weir_buf_msg(buf_of(characters));
}

/* A temporary folder with one file. */
struct folder {
    char path[32];
    std::string file, other; /* the other does not exist at first */

    folder()
    {
        std::snprintf(path, sizeof(path), "/tmp/weir-http-api-XXXXXX");
        EXPECT(mkdtemp(path) != nullptr);
        file = std::string(path) + "/a.txt";
        other = std::string(path) + "/b.txt";
        std::FILE *stream = std::fopen(file.c_str(), "w");
        EXPECT(stream != nullptr && std::fputs("a file", stream) >= 0);
        EXPECT(std::fclose(stream) == 0);
    }

    ~folder()
    {
        EXPECT(unlink(file.c_str()) == 0);
        (void)unlink(other.c_str());
        EXPECT(rmdir(path) == 0);
    }

    folder(const folder &) = delete;
    folder &operator=(const folder &) = delete;
};

/* A channel without a socket. */
struct connection {
    weir_embedded *embedded = nullptr;

    connection()
    {
        weir_embedded_options options = *WEIR_EMBEDDED_OPTIONS();

        options.remote = "192.0.2.1:1000";
        EXPECT(weir_embedded_create(&options, &embedded) == 0);
    }

    ~connection()
    {
        weir_embedded_release(embedded);
    }

    connection(const connection &) = delete;
    connection &operator=(const connection &) = delete;

    weir_pipeline *pipeline() const
    {
        return weir_embedded_pipeline(embedded);
    }

    void receive(const char *bytes) const
    {
        EXPECT(weir_embedded_write_inbound(embedded, msg_of(bytes)) == 0);
    }

    /* The bytes that have been sent. */
    std::string sent() const
    {
        std::string all;

        for (weir_msg *msg; (msg = weir_embedded_read_outbound(embedded)) != nullptr;) {
            weir_composite *composite = weir_composite_of(msg);

            if (weir_buf_of(msg) != nullptr) {
                all += string_of(weir_buf_span(weir_buf_of(msg)));
            } else if (composite != nullptr) {
                std::string bytes(weir_composite_readable(composite), '\0');

                EXPECT(weir_composite_read_bytes(composite, &bytes[0], bytes.size()) == 0);
                all += bytes;
            }
            weir_msg_release(msg);
        }
        return all;
    }
};

#endif

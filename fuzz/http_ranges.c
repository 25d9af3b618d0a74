/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of requests for files: ranges lie within the content and apart from each other; a date
 * that is parsed and formatted is the same date; conditions and q-values end. Input: the size of
 * the content, a field.
 */
#include <errno.h>
#include <stdlib.h>

#include <weir/http_body.h>

#include "protocol/http/accept.h"
#include "protocol/http/conditions.h"
#include "protocol/http/date.h"
#include "protocol/http/ranges.h"

#define NOW INT64_C(1794829772)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void check_ranges(weir_span field, uint64_t size)
{
    weir__http_range ranges[WEIR__HTTP_MAX_RANGES];
    char text[WEIR__HTTP_CONTENT_RANGE_SIZE];
    int count = weir__http_ranges_parse(field, size, ranges);

    expect(count == WEIR_EBOUNDS || (count >= 0 && count <= WEIR__HTTP_MAX_RANGES));
    for (int i = 0; i < count; i++) {
        expect(ranges[i].length > 0 && ranges[i].length <= size);
        expect(ranges[i].offset <= size - ranges[i].length);
        for (int j = 0; j < i; j++)
            expect(ranges[i].offset >= ranges[j].offset + ranges[j].length + 80 ||
                   ranges[j].offset >= ranges[i].offset + ranges[i].length + 80);
        (void)weir__http_content_range(&ranges[i], size, text);
    }
}

static void check_date(weir_span field)
{
    char text[WEIR__HTTP_DATE_SIZE];
    int64_t seconds, again;

    if (weir__http_date_parse(field, NOW, &seconds) == 0 && seconds >= 0) {
        expect(weir__http_date_parse(weir_span_of_text(weir__http_date_format(seconds, text)), NOW,
                                     &again) == 0);
        expect(again == seconds);
    }
    if (weir__http_date_parse_cookie(field, &seconds) == 0 && seconds >= 0)
        expect(weir__http_date_parse_cookie(
                   weir_span_of_text(weir__http_date_format(seconds, text)), &again) == 0 &&
               again == seconds);
}

static void check_conditions(weir_span field)
{
    weir__http_validators validators = {weir_span_of_text("\"a\""), NOW - 100, true};
    weir__http_conditions conditions = {.if_match = field};

    expect(weir__http_conditions_status(&conditions, &validators, true, NOW) ==
           (weir__http_etags_have(field, validators.etag, false) ? 0 : 412));
    conditions = (weir__http_conditions){.if_none_match = field, .if_range = field};
    expect(weir__http_conditions_status(&conditions, &validators, true, NOW) ==
           (weir__http_etags_have(field, validators.etag, true) ? 304 : 0));
    if (weir__http_etag_is_valid(field))
        expect(weir__http_conditions_allow_range(&conditions, &validators, NOW) ==
               weir_span_equal(field, validators.etag));
}

static void check_types(weir_span field)
{
    static const char *const types[] = {"text/html;charset=utf-8", "application/json", NULL};
    weir_http_request *request = NULL;
    int found;

    expect(weir_http_request_create("GET", "/", &request) == 0);
    if (weir_http_headers_add(weir_http_request_headers(request), WEIR_HTTP_ACCEPT, field) == 0) {
        found = weir_http_accept_type(weir_http_request_headers(request), types);
        expect(found == -ENOENT || found == 0 || found == 1);
    }
    weir_msg_release(weir_http_request_msg(request));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const codings[] = {"zstd", "br", "gzip"};
    weir_span field;
    int found;

    if (size < 1 || size > 4096)
        return 0;
    field = weir_span_of(data + 1, size - 1);
    check_ranges(field, data[0] == 255 ? INT64_MAX : (uint64_t)data[0] * data[0]);
    check_date(field);
    check_conditions(field);
    found = weir__http_accept_coding(&field, 1, codings, 3);
    expect(found >= WEIR__HTTP_IDENTITY && found < 3);
    check_types(field);
    return 0;
}

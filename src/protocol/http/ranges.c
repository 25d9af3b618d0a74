/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/ranges.h"

#include <inttypes.h>
#include <stdio.h>

#include "protocol/http/chars.h"

#define NEAR 80 /* a smaller gap costs less than the head of another part */
#define MAX_OVERLAPS 2

struct ranges {
    weir__http_range *list;
    int count;
    int overlaps;
};

/* A number at the start of the text, clamped to INT64_MAX; cut off. False if there is none. */
static bool cut_number(weir_span *text, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t at = 0;

    for (; at < text->length && weir__http_char_is(text->data[at], WEIR__HTTP_DIGIT); at++)
        number = number > INT64_MAX / 10 - 1 ? INT64_MAX : 10 * number + text->data[at] - '0';
    *text = weir__http_span_from(*text, at);
    *ret_number = number;
    return at > 0;
}

/* Parses "5-9", "5-" or "-5". Returns 1 if it is within the content, 0 if not. */
static int parse_one(weir_span text, uint64_t size, weir__http_range *ret_range)
{
    uint64_t first = 0, last = INT64_MAX;
    bool has_first = cut_number(&text, &first), has_last;

    if (text.length == 0 || text.data[0] != '-')
        return WEIR_EMALFORMED;
    text = weir__http_span_from(text, 1);
    has_last = cut_number(&text, &last);
    if (text.length > 0 || (!has_first && !has_last))
        return WEIR_EMALFORMED;
    if (!has_first) { /* the last bytes */
        if (last == 0)
            return 0;
        if (size == 0)
            return WEIR_EMALFORMED; /* of nothing: satisfiable, but Content-Range cannot say so */
        *ret_range =
            last < size ? (weir__http_range){size - last, last} : (weir__http_range){0, size};
        return 1;
    }
    if (!has_last)
        last = INT64_MAX;
    if (first > last)
        return WEIR_EMALFORMED;
    if (first >= size)
        return 0;
    *ret_range = (weir__http_range){first, (last < size ? last + 1 : size) - first};
    return 1;
}

static uint64_t end_of(const weir__http_range *range)
{
    return range->offset + range->length;
}

static bool are_near(const weir__http_range *a, const weir__http_range *b, uint64_t gap)
{
    return a->offset < end_of(b) + gap && b->offset < end_of(a) + gap;
}

/* Unites the range with all that are near it. The union stands where the first of them was. */
static int add(struct ranges *ranges, weir__http_range range)
{
    int place = ranges->count;
    uint64_t end;

    for (int i = 0; i < ranges->count; i++) {
        weir__http_range *other = &ranges->list[i];

        if (other->length == 0 || !are_near(other, &range, NEAR))
            continue;
        ranges->overlaps += are_near(other, &range, 0);
        end = end_of(other) > end_of(&range) ? end_of(other) : end_of(&range);
        range.offset = other->offset < range.offset ? other->offset : range.offset;
        range.length = end - range.offset;
        place = i < place ? i : place;
        ranges->count--;
        memmove(other, other + 1, (size_t)(ranges->count - i) * sizeof(*other));
        i--; /* those before are not near what it has become: it covers no gap that is wider */
    }
    if (ranges->count == WEIR__HTTP_MAX_RANGES || ranges->overlaps > MAX_OVERLAPS)
        return WEIR_ETOOLONG;
    place = place < ranges->count ? place : ranges->count;
    memmove(ranges->list + place + 1, ranges->list + place,
            (size_t)(ranges->count - place) * sizeof(range));
    ranges->list[place] = range;
    ranges->count++;
    return 0;
}

int weir__http_ranges_parse(weir_span value, uint64_t size,
                            weir__http_range ranges[WEIR__HTTP_MAX_RANGES])
{
    struct ranges found = {.list = ranges};
    weir_span unit = weir__http_cut(&value, '='), text;
    weir__http_range range = {0};
    bool is_beyond = false;
    int within;

    if (!weir__http_is_text(unit, "bytes"))
        return 0;
    while (value.data != NULL) {
        text = weir__http_trimmed(weir__http_cut(&value, ','));
        if (text.length == 0)
            continue; /* lists may have empty elements */
        within = parse_one(text, size, &range);
        if (within < 0)
            return 0;
        is_beyond |= within == 0;
        if (within > 0 && add(&found, range) != 0)
            return 0;
    }
    return found.count > 0 ? found.count : is_beyond ? WEIR_EBOUNDS : 0;
}

const char *weir__http_content_range(const weir__http_range *range, uint64_t size,
                                     char text[WEIR__HTTP_CONTENT_RANGE_SIZE])
{
    if (range == NULL)
        (void)snprintf(text, WEIR__HTTP_CONTENT_RANGE_SIZE, "bytes */%" PRIu64, size);
    else
        (void)snprintf(text, WEIR__HTTP_CONTENT_RANGE_SIZE,
                       "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range->offset, end_of(range) - 1,
                       size);
    return text;
}

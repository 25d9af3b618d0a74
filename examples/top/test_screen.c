/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the terminal shows.
 */
#include "top/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "top/text.h"

/* ---- a program with a number of loops ---- */

static int write_loop(char *to, size_t size, int number, double time)
{
    return snprintf(
        to, size,
        "{\"name\":\"executor.utilisation_permille\",\"labels\":{\"loop\":\"w-%d\"},\"value\":%d},"
        "{\"name\":\"executor.pending\",\"labels\":{\"loop\":\"w-%d\"},\"value\":%d},"
        "{\"name\":\"loop.turns\",\"labels\":{\"loop\":\"w-%d\"},\"value\":%d},"
        "{\"name\":\"loop.turn_ns\",\"labels\":{\"loop\":\"w-%d\"},\"count\":1,"
        "\"buckets\":[[1500,%d]]},"
        "{\"name\":\"loop.handles\",\"labels\":{\"loop\":\"w-%d\"},\"value\":%d},",
        number, (number * 370) % 1001, number, 100 - number, number, (int)(time * number), number,
        (int)time, number, number % 3);
}

static struct snapshot *make(int loops, double time)
{
    static char json[100000];
    int length = snprintf(json, sizeof(json), "{\"time\":%f,\"metrics\":[", time);
    struct snapshot *snapshot;

    for (int i = 1; i <= loops; i++)
        length += write_loop(json + length, sizeof(json) - (size_t)length, i, time);
    length += snprintf(
        json + length, sizeof(json) - (size_t)length,
        "{\"name\":\"executor.utilisation_permille\",\"labels\":{\"executor\":\"files-1\"},"
        "\"value\":0},"
        "{\"name\":\"channels.active\",\"labels\":{\"transport\":\"tcp\"},\"value\":12},"
        "{\"name\":\"channels.active\",\"labels\":{\"transport\":\"unix\"},\"value\":30},"
        "{\"name\":\"channels.bytes_sent\",\"labels\":{\"transport\":\"tcp\"},\"value\":%d},"
        "{\"name\":\"http.responses\",\"labels\":{\"status\":\"4xx\"},\"value\":%d},"
        "{\"name\":\"http.responses\",\"labels\":{\"status\":\"2xx\"},\"value\":%d},"
        "{\"name\":\"watchdog.is_running\",\"labels\":{},\"value\":1},"
        "{\"name\":\"handler.blocks\",\"labels\":{\"handler\":\"short\"},\"value\":9},"
        "{\"name\":\"handler.blocked_ns\",\"labels\":{\"handler\":\"short\"},\"value\":1000},"
        "{\"name\":\"handler.blocks\",\"labels\":{\"handler\":\"bad\\u001b[2Jname\"},\"value\":3},"
        "{\"name\":\"handler.blocked_ns\",\"labels\":{\"handler\":\"bad\\u001b[2Jname\"},"
        "\"value\":1234000000},"
        "{\"name\":\"handler.is_offloaded\",\"labels\":{\"handler\":\"bad\\u001b[2Jname\"},"
        "\"value\":1}]}",
        (int)(time * 2048), (int)(time * 7), (int)(time * 1000));
    snapshot = snapshot_parse(json, (size_t)length);
    assert_non_null(snapshot);
    return snapshot;
}

/* Draws two snapshots, two seconds apart. */
static char *draw(const struct view *view, int loops)
{
    struct snapshot *snapshots[] = {make(loops, 100), make(loops, 102)};
    char *lines = screen_draw(view, snapshots, 2);

    assert_non_null(lines);
    snapshot_free(snapshots[0]);
    snapshot_free(snapshots[1]);
    return lines;
}

static int count_lines(const char *lines)
{
    int count = 0;

    for (; (lines = strchr(lines, '\n')) != NULL; lines++)
        count++;
    return count;
}

/* The columns of the longest line, without styles. */
static int longest_line(const char *at)
{
    int longest = 0, column = 0;

    for (; *at != '\0'; at++) {
        if (*at == '\033')
            at += strcspn(at, "m");
        else if (*at == '\n')
            column = 0;
        else if ((*at & 0xc0) != 0x80)
            column++;
        longest = column > longest ? column : longest;
    }
    return longest;
}

/* Where a loop is, in lines from the first one. */
static int line_of(const char *lines, const char *words)
{
    const char *at = strstr(lines, words);
    int line = 0;

    assert_non_null(at);
    for (; lines < at; lines++)
        line += *lines == '\n';
    return line;
}

static void expect(const char *lines, const char *words)
{
    if (strstr(lines, words) == NULL)
        fail_msg("missing \"%s\" in:\n%s", words, lines);
}

/* ---- drawing ---- */

TEST(screen, fits_every_terminal)
{
    static const int widths[] = {20, 40, 80, 100, 132, 300}, heights[] = {3, 10, 24, 60};

    for (size_t i = 0; i < 6 * 4; i++) {
        struct view view = {.width = widths[i % 6],
                            .height = heights[i / 6],
                            .url = "http://a",
                            .is_utf8 = i % 2 == 0,
                            .has_styles = i % 4 < 2};
        char *lines = draw(&view, 64);

        assert_true(count_lines(lines) <= view.height);
        assert_true(longest_line(lines) <= view.width);
        free(lines);
    }
}

/* The line that begins with these words, as it is at this width. */
static const char *line_at(int width, const char *words)
{
    static char line[400];
    struct view view = {.width = width, .height = 60, .url = "http://a"};
    char *lines = draw(&view, 3), *at = strstr(lines, words);

    if (at == NULL)
        fail_msg("no line \"%s\" in:\n%s", words, lines);
    (void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
    free(lines);
    return line;
}

/* Where a wide terminal has a space or the end of the line. */
static bool ends_between_words(const char *narrow, const char *wide)
{
    size_t length = strlen(narrow);

    return strncmp(narrow, wide, length) == 0 &&
           (wide[length] == ' ' || wide[length] == '\0' || narrow[length - 1] == ' ');
}

TEST(screen, leaves_out_numbers_that_do_not_fit_whole)
{
    static const char *const titles[] = {"process ", "channels ", "HTTP ", "pools ", "watchdog "};

    for (int width = 30; width < 100; width++)
        for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
            char wide[400];

            (void)snprintf(wide, sizeof(wide), "%s", line_at(300, titles[i]));
            if (!ends_between_words(line_at(width, titles[i]), wide))
                fail_msg("%d columns: %s", width, line_at(width, titles[i]));
        }
}

TEST(screen, leaves_out_columns_that_do_not_fit_whole)
{
    assert_non_null(strstr(line_at(61, "LOOP "), "P99    MAX"));
    assert_null(strstr(line_at(60, "LOOP "), "MA"));
    assert_non_null(strstr(line_at(60, "w-1 "), "1.50us 1.50us"));
    assert_null(strstr(line_at(60, "w-1 "), "1.50us 1.50us 1"));
    assert_non_null(strstr(line_at(60, "bad?"), "1.23s       0ns"));
    assert_string_equal(line_at(60, "n name") + strlen(line_at(60, "n name")) - 14,
                        "h help  q quit");
}

TEST(screen, uses_the_lines_that_there_are)
{
    struct view view = {.width = 80, .height = 24, .url = "http://a"};
    char *lines = draw(&view, 64);

    assert_int_equal(count_lines(lines), 24);
    expect(lines, "\n1 to 10 of 65\n");
    expect(lines, " q quit\n");
    free(lines);
    for (view.first = 50; view.first < 100; view.first += 10) { /* not behind the last page */
        lines = draw(&view, 64);
        expect(lines, view.first == 50 ? "\n51 to 60 of 65\n" : "\n56 to 65 of 65\n");
        free(lines);
    }
}

TEST(screen, shows_totals_and_rates)
{
    struct view view = {.url = "http://a:1"};
    char *lines = draw(&view, 3);

    expect(lines, "weir top  http://a:1\n");
    expect(lines, "\nchannels  42 active   0B/s in   2.00K/s out   ");
    expect(lines, "   7/s 4xx   0/s 5xx");
    expect(lines, "\nw-2              ");
    expect(lines, "  74%    98       0       2        0 1.50us 1.50us 1.50us     2\n");
    assert_null(strchr(lines, '\033'));
    assert_null(strstr(lines, "quit"));
    free(lines);
}

TEST(screen, lists_handlers_that_blocked_longest_first)
{
    struct view view = {.url = ""};
    char *lines = draw(&view, 1);

    expect(lines, "bad?[2Jname                          3     1.23s       0ns  moved");
    assert_true(line_of(lines, "bad?") < line_of(lines, "short "));
    free(lines);
}

TEST(screen, is_ascii_unless_the_locale_is_utf8)
{
    struct view view = {.url = "", .width = 120, .height = 30};
    char *lines = draw(&view, 3);

    for (const char *at = lines; *at != '\0'; at++)
        assert_true(*at > 0);
    expect(lines, "##");
    expect(lines, "1.50us");
    free(lines);
    view.is_utf8 = true;
    lines = draw(&view, 3);
    expect(lines, "\u2588\u2588");
    expect(lines, "1.50\u00b5s");
    free(lines);
}

TEST(screen, without_snapshots_has_the_error)
{
    struct view view = {.url = "http://a", .width = 80, .height = 24, .error = "gone"};
    char *lines = screen_draw(&view, NULL, 0);

    expect(lines, "http://a  gone\n");
    free(lines);
}

TEST(screen, that_is_first_has_no_rates)
{
    struct snapshot *snapshot = make(2, 100);
    struct view view = {.url = ""};
    char *lines = screen_draw(&view, &snapshot, 1);

    expect(lines, "42 active   0B/s in   0B/s out");
    expect(lines, "1.50us"); /* distributions are those of the whole time */
    free(lines);
    snapshot_free(snapshot);
}

/* ---- keys ---- */

static void expect_order(struct view *view, const char *first, const char *second)
{
    char *lines = draw(view, 10);

    assert_true(line_of(lines, first) < line_of(lines, second));
    free(lines);
}

TEST(view, is_sorted_by_keys)
{
    struct view view = {.url = "", .width = 80, .height = 40};

    expect_order(&view, "\nw-2 ", "\nw-10 "); /* numbers by their value */
    assert_true(view_press(&view, 'r'));
    expect_order(&view, "\nw-10 ", "\nw-2 ");
    assert_true(view_press(&view, 'r'));
    assert_true(view_press(&view, 'b'));
    expect_order(&view, "\nw-5 ", "\nw-1 "); /* 849 and 370 permille */
    assert_true(view_press(&view, 'l'));
    expect_order(&view, "\nw-1 ", "\nw-9 ");
    assert_true(view_press(&view, 't'));
    expect_order(&view, "\nw-9 ", "\nw-3 ");
    assert_true(view_press(&view, 'f'));
    expect_order(&view, "\nw-5 ", "\nw-4 ");
    assert_true(view_press(&view, 'p'));
    expect_order(&view, "\nw-1 ", "\nfiles-1 ");
    assert_true(view_press(&view, 'n'));
    expect_order(&view, "\nfiles-1 ", "\nw-1 ");
    assert_false(view_press(&view, 'x'));
}

TEST(view, scrolls_pauses_and_explains_itself)
{
    struct view view = {.url = "", .width = 80, .height = 24};
    char *lines;

    view_press(&view, KEY_UP);
    assert_int_equal(view.first, 0);
    view_press(&view, KEY_DOWN);
    view_press(&view, 'j');
    assert_int_equal(view.first, 2);
    view_press(&view, KEY_PAGE_DOWN);
    assert_int_equal(view.first, 14);
    view_press(&view, KEY_PAGE_UP);
    view_press(&view, 'k');
    assert_int_equal(view.first, 1);
    view_press(&view, KEY_HOME);
    assert_int_equal(view.first, 0);
    view_press(&view, ' ');
    view_press(&view, '?');
    lines = draw(&view, 1);
    expect(lines, " paused ");
    expect(lines, "reverse the order");
    free(lines);
    view_press(&view, 'h');
    assert_false(view.shows_help);
}

/* ---- numbers ---- */

static void expect_ns(int64_t ns, const char *expected)
{
    char buffer[NUMBER_SIZE];

    assert_string_equal(format_ns(ns, false, buffer), expected);
}

TEST(number, has_three_digits_and_a_unit)
{
    char buffer[NUMBER_SIZE];

    assert_string_equal(format_count(0, buffer), "0");
    assert_string_equal(format_count(0.6, buffer), "1");
    assert_string_equal(format_count(999, buffer), "999");
    assert_string_equal(format_count(999.7, buffer), "1.00k");
    assert_string_equal(format_count(12345, buffer), "12.3k");
    assert_string_equal(format_count(9.2e18, buffer), "9.20E");
    assert_string_equal(format_count(-5, buffer), "0");
    assert_string_equal(format_bytes(1023, buffer), "1.00K");
    assert_string_equal(format_bytes(1536.0 * 1024, buffer), "1.50M");
    expect_ns(950, "950ns");
    expect_ns(12345, "12.3us");
    expect_ns(1000000, "1.00ms");
    expect_ns(INT64_C(99900000000), "99.9s");
    expect_ns(INT64_C(125000000000), "2m05");
    expect_ns(INT64_C(7384000000000), "2h03");
    expect_ns(INT64_C(900000000000000), "10d");
}

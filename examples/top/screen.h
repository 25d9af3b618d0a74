/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the terminal shows, as a function of snapshots.
 */
#ifndef EXAMPLES_TOP_SCREEN_H
#define EXAMPLES_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "top/snapshot.h"

/* The order of the loops. */
enum order {
    ORDER_NAME,
    ORDER_UTILISATION,
    ORDER_QUEUE,
    ORDER_TURNS,
    ORDER_TURN_TIME,
    ORDER_HANDLES,
};

struct view {
    int width, height; /* 0 = not limited: not a terminal */
    bool is_utf8;
    bool has_styles;
    enum order order;
    bool is_reversed;
    bool is_paused;
    bool shows_help;
    size_t first; /* the loop in the first row */
    const char *url;
    const char *error; /* NULL = the last update has arrived */
};

/*
 * Draws the last of `count` snapshots, which may be 0. Rates are those since the one before it, and
 * distributions those since the first one, or since the program was started if the height is not
 * limited. Lines end in "\n". Free the text. NULL without memory.
 */
char *screen_draw(const struct view *view, struct snapshot *const *snapshots, size_t count);

/* Handles a key: changes the view. False if it is not one of the keys of a view. */
bool view_press(struct view *view, int key);

/* Keys that are not characters. */
enum {
    KEY_UP = 0x100,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
};

#endif

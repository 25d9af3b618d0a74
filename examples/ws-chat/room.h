/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rooms of a chat: those in a room receive what is said there, in this process or, through
 * Redis, in any process that is connected to the same server.
 */
#ifndef EXAMPLES_WS_CHAT_ROOM_H
#define EXAMPLES_WS_CHAT_ROOM_H

#include <weir/weir.h>

#define WORD_MAX 64   /* bytes of a name, or of a room's */
#define TEXT_MAX 1000 /* bytes of a message */

/* An attribute of its channel, set once: any thread may read it. */
struct guest {
    char name[WORD_MAX + 1];
    char room[WORD_MAX + 1];
};

extern const weir_attribute guest_of;

/* Fails with -ENOMEM. */
int rooms_open(void);

/* Connects to Redis, and listens to all rooms. `group` has the loop of the connection. */
int rooms_connect(weir_group *group, const char *address);

/* After the server: closes the connection to Redis. Takes: group, which may be NULL. */
void rooms_close(weir_group *group);

/* The channel, whose attribute says where, receives from now on what is said there. */
int room_enter(weir_channel *channel);

/* Says "<prefix><name><text>" in the guest's room. False if too much is being said just now. */
bool room_say(const struct guest *guest, const char *prefix, weir_span text);

#endif

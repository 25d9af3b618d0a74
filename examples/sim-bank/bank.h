/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bank over remote calls: accounts, transfers between them, and a log of transfers on a disk.
 *
 * Each client numbers its transfers from 1 and sends the next one when the previous one is
 * answered. It retries a transfer with the same number until it has an answer. The bank executes
 * each number once: it keeps the last number of each client and its answer.
 *
 *      call    length (4)   client (4)   number (4)   from (4)   to (4)   amount (4)
 *      answer  length (4)   number (4)   answer (4)
 */
#ifndef SIM_BANK_BANK_H
#define SIM_BANK_BANK_H

#include <weir/weir.h>

#define BANK_ACCOUNTS 8
#define BANK_CLIENTS 16
#define BANK_OPENING 100 /* the balance of each account at first */

enum bank_answer {
    BANK_DONE,
    BANK_REFUSED, /* not enough money */
};

struct bank_transfer {
    uint32_t client; /* less than BANK_CLIENTS */
    uint32_t number;
    uint32_t from, to; /* accounts */
    uint32_t amount;
};

/* doc:begin storage */
/* A transfer as it is on the disk. */
struct bank_record {
    struct bank_transfer transfer;
    uint32_t answer;
};

/*
 * The disk. The simulation uses weir_sim_disk_append; a real bank would use a file and fsync. An
 * append is whole or fails.
 */
struct bank_storage {
    int (*append)(const struct bank_record *record, void *user_data);
    bool (*read)(size_t position, struct bank_record *ret_record, void *user_data); /* false: end */
    void *user_data;
};
/* doc:end */

/* Mistakes for the simulation to find. */
enum bank_bug {
    BANK_NO_BUG,
    BANK_EARLY_ANSWER,    /* answers first, and writes several records together, later */
    BANK_FORGETS_NUMBERS, /* reads balances from the disk after a restart, but not the numbers */
};

struct bank_last {
    uint32_t number;
    uint32_t answer;
};

struct bank {
    const struct bank_storage *storage;
    enum bank_bug bug;
    int64_t balances[BANK_ACCOUNTS];
    struct bank_last last[BANK_CLIENTS];
    weir_group *ledger; /* one thread, which may block on the disk; all above belongs to it */

    struct bank_record late[64]; /* BANK_EARLY_ANSWER: not yet written */
    size_t late_count;
};

/* Restores accounts from the disk. Thread: any, before bank_serve. */
void bank_open(struct bank *bank, const struct bank_storage *storage, enum bank_bug bug);

/* Serves until SIGINT or SIGTERM. Thread: any that may wait. */
int bank_serve(struct bank *bank, const char *address);

/* ---- clients ---- */

struct bank_client {
    weir_group *group;
    weir_channel *channel; /* NULL: not connected */
    const char *address;
};

int bank_client_open(struct bank_client *client, const char *address);
void bank_client_close(struct bank_client *client);

/*
 * Sends a transfer until it is answered, with a new connection after each failure. Thread: any that
 * may wait.
 */
enum bank_answer bank_client_transfer(struct bank_client *client,
                                      const struct bank_transfer *transfer);

/* ---- both ---- */

static inline int bank_frames_add(weir_pipeline *pipeline)
{
    int err =
        weir_length_field_add(pipeline, WEIR_LENGTH_FIELD_OPTIONS(.max_length = 64, .strip = 4));

    return err ? err : weir_length_prepender_add(pipeline, NULL);
}

#endif

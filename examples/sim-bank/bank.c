/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bank. Nothing in this file knows about the simulation.
 */
#include "bank.h"

#include <string.h>

#define WRITE_DELAY_NS weir_ms(2) /* of BANK_EARLY_ANSWER */

/* ---- accounts ---- */

static void apply(struct bank *bank, const struct bank_record *record)
{
    const struct bank_transfer *transfer = &record->transfer;

    if (record->answer == BANK_DONE) {
        bank->balances[transfer->from] -= transfer->amount;
        bank->balances[transfer->to] += transfer->amount;
    }
    bank->last[transfer->client] = (struct bank_last){transfer->number, record->answer};
}

void bank_open(struct bank *bank, const struct bank_storage *storage, enum bank_bug bug)
{
    struct bank_record record;

    *bank = (struct bank){.storage = storage, .bug = bug};
    for (size_t i = 0; i < BANK_ACCOUNTS; i++)
        bank->balances[i] = BANK_OPENING;
    for (size_t i = 0; storage->read(i, &record, storage->user_data); i++)
        apply(bank, &record);
    if (bug == BANK_FORGETS_NUMBERS)
        memset(bank->last, 0, sizeof(bank->last));
}

/* ---- the mistake: a delayed write ---- */

static void write_late(void *arg, int status)
{
    struct bank *bank = arg;

    (void)status; /* also if it was cancelled, by the end of the ledger's thread */
    for (size_t i = 0; i < bank->late_count; i++)
        (void)bank->storage->append(&bank->late[i], bank->storage->user_data);
    bank->late_count = 0;
}

static int delay_write(struct bank *bank, const struct bank_record *record)
{
    weir_promise *written = NULL;

    bank->late[bank->late_count++] = *record;
    if (bank->late_count == 1 &&
        weir_group_schedule(bank->ledger, WRITE_DELAY_NS, write_late, bank, &written) == 0)
        weir_promise_release(written);
    else if (bank->late_count == sizeof(bank->late) / sizeof(bank->late[0]))
        write_late(bank, 0);
    return 0;
}

/* ---- transfers ---- */

/* doc:begin execute */
/* Executes a transfer unless it was executed before. Returns its answer. */
static int execute(struct bank *bank, const struct bank_transfer *transfer)
{
    struct bank_record record = {.transfer = *transfer};
    int err;

    if (transfer->number == bank->last[transfer->client].number)
        return (int)bank->last[transfer->client].answer; /* a retry */
    if (transfer->number < bank->last[transfer->client].number)
        return -ESTALE; /* from a connection that the client has given up */
    if (bank->balances[transfer->from] < transfer->amount)
        record.answer = BANK_REFUSED;
    err = bank->bug == BANK_EARLY_ANSWER ? delay_write(bank, &record)
                                         : bank->storage->append(&record, bank->storage->user_data);
    if (err < 0)
        return err;
    apply(bank, &record);
    return (int)record.answer;
}
/* doc:end */

static bool read_transfer(weir_buf *buf, struct bank_transfer *ret_transfer)
{
    return weir_buf_read_u32(buf, &ret_transfer->client) == 0 &&
           weir_buf_read_u32(buf, &ret_transfer->number) == 0 &&
           weir_buf_read_u32(buf, &ret_transfer->from) == 0 &&
           weir_buf_read_u32(buf, &ret_transfer->to) == 0 &&
           weir_buf_read_u32(buf, &ret_transfer->amount) == 0 &&
           ret_transfer->client < BANK_CLIENTS && ret_transfer->from < BANK_ACCOUNTS &&
           ret_transfer->to < BANK_ACCOUNTS;
}

static int answer(weir_ctx *ctx, uint32_t number, uint32_t result)
{
    weir_buf *buf;
    int err = weir_buf_create(8, 0, &buf);

    if (err < 0)
        return err;
    (void)weir_buf_write_u32(buf, number);
    (void)weir_buf_write_u32(buf, result);
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    return 0;
}

/* On the ledger's thread. A client whose transfer failed loses its connection, and retries. */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct bank *bank = *(struct bank **)weir_ctx_state(ctx);
    struct bank_transfer transfer;
    int result =
        read_transfer(weir_buf_of(msg), &transfer) ? execute(bank, &transfer) : WEIR_EMALFORMED;

    weir_msg_release(msg);
    if (result >= 0)
        result = answer(ctx, transfer.number, (uint32_t)result);
    if (result < 0)
        weir_close(ctx, NULL);
}

static int init_transfers(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct bank *));
    return 0;
}

static const weir_handler transfers = {
    .name = "transfers",
    .state_size = sizeof(struct bank *),
    .init = init_transfers,
    .read = on_read,
};

/* ---- the server ---- */

static int init_child(weir_channel *channel, void *user_data)
{
    struct bank *bank = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = bank_frames_add(pipeline);

    return err ? err
               : weir_pipeline_add(pipeline, WEIR_PLACE(.group = bank->ledger), &transfers, &bank);
}

int bank_serve(struct bank *bank, const char *address)
{
    weir_group *workers = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(
        WEIR_GROUP_OPTIONS(.name = "ledger", .threads = 1, .io = WEIR_IO_NONE), &bank->ledger);

    if (!err)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.name = "bank", .threads = 2), &workers);
    if (!err)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.workers = workers, .address = address,
                                                    .init_child = init_child, .user_data = bank),
                                &server);
    if (!err)
        err = weir_server_run(server); /* until SIGINT or SIGTERM */
    if (err && server != NULL)         /* it could not wait for signals, and still listens */
        (void)weir_server_stop(server, 0, weir_seconds(10));
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(bank->ledger);
    bank->ledger = NULL;
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small JSON service: notes in an SQLite database.
 *     rest [--port 8080] [--db FILE] [--io ...] [--threads N] [--tls] ...
 *
 *      GET    /notes         all of them
 *      POST   /notes         {"text": "..."} creates one: 201, Location
 *      GET    /notes/{id}    one
 *      PUT    /notes/{id}    {"text": "..."} replaces it
 *      DELETE /notes/{id}    204
 *
 * SQLite blocks, so the handlers run on a group of their own: a thread with a connection to the
 * database. The loops only pass on requests and responses. SQLite reads and writes the JSON, too.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/http.h"

/* The database, used on the one thread of `blocking` only. */
static sqlite3 *db;
static weir_group *blocking;

/* ---- statements ---- */

#define NOTE "json_object('id', id, 'text', text)"

/* ?1 is the id, ?2 the content of the request. */
static const char list_notes[] = "SELECT json_group_array(json(" NOTE ")) FROM notes";
static const char find_note[] = "SELECT " NOTE " FROM notes WHERE id = ?1";
static const char add_note[] =
    "INSERT INTO notes (text) SELECT json_extract(?2, '$.text') RETURNING " NOTE;
static const char change_note[] =
    "UPDATE notes SET text = json_extract(?2, '$.text') WHERE id = ?1 RETURNING " NOTE;
static const char delete_note[] = "DELETE FROM notes WHERE id = ?1 RETURNING id";
static const char is_note[] = "SELECT 1 WHERE json_valid(?2) AND json_type(?2, '$.text') = 'text'";

/* Prepares a statement with the id and the content of a request. NULL if it fails. */
static sqlite3_stmt *prepare(weir_http_exchange *exchange, const char *sql)
{
    weir_span id = weir_http_exchange_parameter(exchange, "id");
    weir_buf *content = weir_http_exchange_content(exchange);
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        return NULL;
    /* A statement without the parameter ignores it. */
    (void)sqlite3_bind_text(statement, 1, (const char *)id.data, (int)id.length, SQLITE_STATIC);
    (void)sqlite3_bind_text(statement, 2, (const char *)weir_buf_bytes(content),
                            (int)weir_buf_readable(content), SQLITE_STATIC);
    return statement;
}

static void fail(weir_http_exchange *exchange)
{
    fprintf(stderr, "rest: %s\n", sqlite3_errmsg(db));
    weir_http_respond_error(exchange, 500, NULL);
}

/* Runs a statement; responds with its row as JSON, or with 404 if it has none. */
static void respond_with(weir_http_exchange *exchange, const char *sql, int status)
{
    sqlite3_stmt *statement = prepare(exchange, sql);
    int result = statement != NULL ? sqlite3_step(statement) : SQLITE_ERROR;

    if (result == SQLITE_ROW && status == 204)
        weir_http_respond(exchange, status, NULL);
    else if (result == SQLITE_ROW)
        weir_http_respond_bytes(exchange, status, "application/json",
                                sqlite3_column_text(statement, 0),
                                (size_t)sqlite3_column_bytes(statement, 0));
    else if (result == SQLITE_DONE)
        weir_http_respond_error(exchange, 404, NULL);
    else
        fail(exchange);
    sqlite3_finalize(statement);
}

/* False if the content is not a note; then the response says so. */
static bool has_note(weir_http_exchange *exchange)
{
    sqlite3_stmt *statement = prepare(exchange, is_note);
    bool valid = statement != NULL && sqlite3_step(statement) == SQLITE_ROW;

    sqlite3_finalize(statement);
    if (!valid)
        weir_http_respond_error(exchange, 422, "expected {\"text\": \"...\"}");
    return valid;
}

/* ---- routes ---- */

static void on_list(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    respond_with(exchange, list_notes, 200);
}

static void on_find(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    respond_with(exchange, find_note, 200);
}

static void on_add(weir_http_exchange *exchange, void *user_data)
{
    sqlite3_stmt *statement;
    char location[64];

    (void)user_data;
    if (!has_note(exchange))
        return;
    statement = prepare(exchange, add_note);
    if (statement == NULL || sqlite3_step(statement) != SQLITE_ROW) {
        fail(exchange);
    } else {
        snprintf(location, sizeof(location), "/notes/%lld",
                 (long long)sqlite3_last_insert_rowid(db));
        (void)weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_LOCATION,
                                         location);
        weir_http_respond_bytes(exchange, 201, "application/json",
                                sqlite3_column_text(statement, 0),
                                (size_t)sqlite3_column_bytes(statement, 0));
    }
    sqlite3_finalize(statement);
}

static void on_change(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    if (has_note(exchange))
        respond_with(exchange, change_note, 200);
}

static void on_delete(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    respond_with(exchange, delete_note, 204);
}

/* doc:begin routes */
static const weir_http_route routes[] = {
    WEIR_HTTP_ROUTE("GET", "/notes", on_list, .group = &blocking),
    WEIR_HTTP_ROUTE("POST", "/notes", on_add, .group = &blocking),
    WEIR_HTTP_ROUTE("GET", "/notes/{id}", on_find, .group = &blocking),
    WEIR_HTTP_ROUTE("PUT", "/notes/{id}", on_change, .group = &blocking),
    WEIR_HTTP_ROUTE("DELETE", "/notes/{id}", on_delete, .group = &blocking),
    WEIR_HTTP_ROUTES_END};
/* doc:end */

static int open_database(const char *path)
{
    static const char create[] =
        "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)";

    if (sqlite3_open(path, &db) == SQLITE_OK &&
        sqlite3_exec(db, create, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    fprintf(stderr, "rest: %s: %s\n", path, sqlite3_errmsg(db));
    return -1;
}

int main(int argc, char **argv)
{
    const char *path = settings_take(&argc, argv, "--db");
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8080);
    int status = EXIT_FAILURE;

    if (open_database(path != NULL ? path : ":memory:") == 0 &&
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE, .name = "database"),
                          &blocking) == 0)
        status = serve_http(&settings, WEIR_HTTP_SERVER_OPTIONS(.routes = routes));
    weir_group_release(blocking); /* ends its thread */
    sqlite3_close(db);
    return status;
}

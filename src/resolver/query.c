/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver/query.h"

#include <string.h>

#include "base/memory.h"

void weir__queries_init(weir__queries *questions)
{
    *questions = (weir__queries){0};
    weir__string_map_init(&questions->by_host);
    weir__list_init(&questions->queue);
    weir__list_init(&questions->answered);
}

void weir__queries_remove(weir__queries *questions, weir__query *question)
{
    if (question->state == WEIR__QUERY_ANSWERED)
        questions->answered_count--;
    weir__list_remove(&question->link);
    weir__string_map_remove(&questions->by_host, &question->node);
    if (weir__string_map_count(&questions->by_host) == 0)
        weir__string_map_deinit(&questions->by_host);
    weir_addresses_release(question->addresses);
    weir__free(question);
}

static weir__query *of_link(weir__list *link)
{
    return WEIR_CONTAINER_OF(link, weir__query, link);
}

void weir__queries_flush(weir__queries *questions)
{
    questions->flushes++;
    while (!weir__list_is_empty(&questions->answered))
        weir__queries_remove(questions, of_link(questions->answered.next));
}

weir__query *weir__queries_find(weir__queries *questions, const char *host, int64_t now_ns)
{
    weir__string_node *node = weir__string_map_find(&questions->by_host, host);
    weir__query *question;

    if (node == NULL)
        return NULL;
    question = WEIR_CONTAINER_OF(node, weir__query, node);
    if (question->state != WEIR__QUERY_ANSWERED || now_ns < question->expires_ns)
        return question;
    weir__queries_remove(questions, question);
    return NULL;
}

static unsigned *turn_of(weir__queries *questions, const weir__query *question)
{
    return &questions->turns[question->node.item.key % WEIR__QUERY_TURNS];
}

weir__query *weir__queries_add(weir__queries *questions, const char *host)
{
    size_t size = strlen(host) + 1;
    weir__query *question = weir__zalloc(sizeof(*question) + size);

    if (question == NULL)
        return NULL;
    memcpy(question->host, host, size);
    weir__string_map_add(&questions->by_host, &question->node, question->host);
    question->turn = *turn_of(questions, question);
    weir__list_init(&question->queries);
    weir__list_append(&questions->queue, &question->link);
    return question;
}

unsigned weir__queries_take_turns(weir__queries *questions, weir__query *question, unsigned count)
{
    unsigned turn = question->turn;

    question->turn += count;
    *turn_of(questions, question) = question->turn;
    return turn;
}

weir__query *weir__queries_next(weir__queries *questions)
{
    weir__list *link = weir__list_pop(&questions->queue);
    weir__query *question;

    if (link == NULL)
        return NULL;
    question = of_link(link);
    question->state = WEIR__QUERY_RUNNING;
    question->flushes = questions->flushes;
    return question;
}

void weir__queries_store(weir__queries *questions, weir__query *question, size_t max)
{
    if (question->flushes != questions->flushes) {
        weir__queries_remove(questions, question);
        return;
    }
    question->state = WEIR__QUERY_ANSWERED;
    weir__list_append(&questions->answered, &question->link);
    if (++questions->answered_count > max)
        weir__queries_remove(questions, of_link(questions->answered.next));
}

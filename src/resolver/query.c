/* SPDX-License-Identifier: Apache-2.0 */
#include "resolver/query.h"

#include <string.h>

#include "base/memory.h"

void weir__questions_init(weir__questions *questions)
{
    *questions = (weir__questions){0};
    weir__string_map_init(&questions->by_host);
    weir__list_init(&questions->queue);
    weir__list_init(&questions->answered);
}

void weir__questions_drop(weir__questions *questions, weir__question *question)
{
    if (question->state == WEIR__QUESTION_ANSWERED)
        questions->answered_count--;
    weir__list_remove(&question->link);
    weir__string_map_remove(&questions->by_host, &question->node);
    if (weir__string_map_count(&questions->by_host) == 0)
        weir__string_map_deinit(&questions->by_host);
    weir_addresses_release(question->addresses);
    weir__free(question);
}

static weir__question *of_link(weir__list *link)
{
    return container_of(link, weir__question, link);
}

void weir__questions_flush(weir__questions *questions)
{
    questions->flushes++;
    while (!weir__list_is_empty(&questions->answered))
        weir__questions_drop(questions, of_link(questions->answered.next));
}

weir__question *weir__questions_find(weir__questions *questions, const char *host, int64_t now_ns)
{
    weir__string_node *node = weir__string_map_find(&questions->by_host, host);
    weir__question *question;

    if (node == NULL)
        return NULL;
    question = container_of(node, weir__question, node);
    if (question->state != WEIR__QUESTION_ANSWERED || now_ns < question->expires_ns)
        return question;
    weir__questions_drop(questions, question);
    return NULL;
}

static unsigned *turn_of(weir__questions *questions, const weir__question *question)
{
    return &questions->turns[question->node.item.key % WEIR__QUESTION_TURNS];
}

weir__question *weir__questions_add(weir__questions *questions, const char *host)
{
    size_t size = strlen(host) + 1;
    weir__question *question = weir__zalloc(sizeof(*question) + size);

    if (question == NULL)
        return NULL;
    memcpy(question->host, host, size);
    weir__string_map_add(&questions->by_host, &question->node, question->host);
    question->turn = *turn_of(questions, question);
    weir__list_init(&question->queries);
    weir__list_append(&questions->queue, &question->link);
    return question;
}

unsigned weir__questions_take_turns(weir__questions *questions, weir__question *question,
                                    unsigned count)
{
    unsigned turn = question->turn;

    question->turn += count;
    *turn_of(questions, question) = question->turn;
    return turn;
}

weir__question *weir__questions_next(weir__questions *questions)
{
    weir__list *link = weir__list_pop(&questions->queue);
    weir__question *question;

    if (link == NULL)
        return NULL;
    question = of_link(link);
    question->state = WEIR__QUESTION_RUNNING;
    question->flushes = questions->flushes;
    return question;
}

void weir__questions_keep(weir__questions *questions, weir__question *question, size_t max)
{
    if (question->flushes != questions->flushes) {
        weir__questions_drop(questions, question);
        return;
    }
    question->state = WEIR__QUESTION_ANSWERED;
    weir__list_append(&questions->answered, &question->link);
    if (++questions->answered_count > max)
        weir__questions_drop(questions, of_link(questions->answered.next));
}

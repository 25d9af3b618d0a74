/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intrusive list.
 */
#include "base/list.h"
#include "support/test.h"

struct item {
    int number;
    weir__list link;
};

/* The contents of the list as digits: 1, 2, 3 -> 123. */
static int digits(weir__list *list)
{
    int answer = 0;

    for (weir__list *link = list->next; link != list; link = link->next)
        answer = answer * 10 + WEIR_CONTAINER_OF(link, struct item, link)->number;
    return answer;
}

static int digits_backwards(weir__list *list)
{
    int answer = 0;

    for (weir__list *link = list->previous; link != list; link = link->previous)
        answer = answer * 10 + WEIR_CONTAINER_OF(link, struct item, link)->number;
    return answer;
}

static void fill(weir__list *list, struct item *items, int count)
{
    weir__list_init(list);
    for (int i = 0; i < count; i++) {
        items[i].number = i + 1;
        weir__list_append(list, &items[i].link);
    }
}

TEST(list, is_empty_until_something_is_appended)
{
    struct item item = {1, {NULL, NULL}};
    weir__list list;

    weir__list_init(&list);
    assert_true(weir__list_is_empty(&list));
    weir__list_append(&list, &item.link);
    assert_false(weir__list_is_empty(&list));
}

TEST(list, keeps_items_in_the_order_appended)
{
    struct item items[3];
    weir__list list;

    fill(&list, items, 3);
    assert_int_equal(digits(&list), 123);
    assert_int_equal(digits_backwards(&list), 321);
}

TEST(list, removes_an_item_from_any_place)
{
    const int without[3] = {23, 13, 12};
    struct item items[3];
    weir__list list;

    for (int i = 0; i < 3; i++) {
        fill(&list, items, 3);
        weir__list_remove(&items[i].link);
        assert_int_equal(digits(&list), without[i]);
        assert_int_equal(digits_backwards(&list), without[i] % 10 * 10 + without[i] / 10);
    }
}

TEST(list, removing_an_item_twice_is_harmless)
{
    struct item items[3];
    weir__list list;

    fill(&list, items, 3);
    weir__list_remove(&items[1].link);
    weir__list_remove(&items[1].link);
    assert_int_equal(digits(&list), 13);
}

TEST(list, takes_a_removed_item_again)
{
    struct item items[3];
    weir__list list;

    fill(&list, items, 3);
    weir__list_remove(&items[0].link);
    weir__list_append(&list, &items[0].link);
    assert_int_equal(digits(&list), 231);
}

TEST(list, pops_the_first_until_there_is_none)
{
    struct item items[2];
    weir__list list;

    fill(&list, items, 2);
    assert_ptr_equal(weir__list_pop(&list), &items[0].link);
    assert_ptr_equal(weir__list_pop(&list), &items[1].link);
    assert_null(weir__list_pop(&list));
    assert_true(weir__list_is_empty(&list));
}

TEST(list, foreach_goes_from_the_first_to_the_last)
{
    struct item items[4];
    weir__list list;
    int seen = 0;

    fill(&list, items, 4);
    weir_list_foreach (link, &list)
        seen = seen * 10 + WEIR_CONTAINER_OF(link, struct item, link)->number;
    assert_int_equal(seen, 1234);
}

TEST(list, foreach_of_an_empty_list_does_nothing)
{
    weir__list list;
    int seen = 0;

    weir__list_init(&list);
    weir_list_foreach (link, &list)
        seen++;
    assert_int_equal(seen, 0);
}

TEST(list, foreach_lets_the_body_remove_its_item)
{
    struct item items[5];
    weir__list list;
    int seen = 0;

    fill(&list, items, 5);
    weir_list_foreach (link, &list) {
        int number = WEIR_CONTAINER_OF(link, struct item, link)->number;

        seen = seen * 10 + number;
        if (number % 2 == 1)
            weir__list_remove(link);
    }
    assert_int_equal(seen, 12345);
    assert_int_equal(digits(&list), 24);
}

/* Everything that the header has, against a master with a set `map` of 40 blocks of 8192 bytes: client MASTER. */
#include "stackline_blockclient.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) ((what) ? (void)0 : (fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, blockclient_error()), exit(1)))

static uint64_t following(void *context, const uint64_t *list, uint64_t count, uint64_t *next, uint64_t room) {
    ++*(int *)context;
    if (count == 0 || room == 0) return 0;
    next[0] = list[count - 1] + 1;
    return 1;
}

static int heard(void *context, uint64_t done, uint64_t all) {
    *(uint64_t *)context = done;
    return done > all;
}

static int never(void *context, uint64_t done, uint64_t all) {
    (void)context, (void)done, (void)all;
    return 1;
}

static int given(void *context, uint64_t number, const uint8_t *data, uint64_t length) {
    uint64_t *next = context;
    if (number != *next || !data || length == 0 || data[7] != number) return 1;
    ++*next;
    return 0;
}

/* Waits for a block; its number. */
static uint64_t block(uint64_t client, uint64_t *cached_or_kept) {
    struct blockclient_event event;
    CHECK(blockclient_next(client, 10000000000, &event) == 1);
    CHECK(event.kind == BLOCKCLIENT_BLOCK && event.wanted && event.length == 8192 && event.data[7] == event.number);
    CHECK(event.app_send > 0 && event.app_send <= event.server_in && event.start_write <= event.app_receive);
    uint64_t number = event.number;
    if (cached_or_kept) *cached_or_kept = event.app_receive;
    blockclient_free(&event);
    CHECK(event.owner == NULL && event.kind == 0);
    blockclient_free(&event);
    return number;
}

static void shapes(void) {
    printf("%zu %zu %zu %zu %zu\n", sizeof(struct blockclient_options), sizeof(struct blockclient_set),
           sizeof(struct blockclient_pace), sizeof(struct blockclient_played), sizeof(struct blockclient_event));
    printf("%zu %zu %zu %zu %zu %zu\n", offsetof(struct blockclient_event, server), offsetof(struct blockclient_event, app_send),
           offsetof(struct blockclient_event, app_receive), offsetof(struct blockclient_event, data),
           offsetof(struct blockclient_event, words), offsetof(struct blockclient_event, owner));
}

int main(int count, char **words) {
    if (count < 2) return shapes(), 0;
    uint64_t client = 0;
    struct blockclient_options options = {0};
    CHECK(blockclient_connect(NULL, NULL, &client) == -1 && strstr(blockclient_error(), "NULL"));
    CHECK(blockclient_connect("127.0.0.1:1", NULL, &client) == -2 && blockclient_hint()[0]);
    options.transport = 9;
    CHECK(blockclient_connect(words[1], &options, &client) == -1);
    CHECK(blockclient_open(77, "map", &(struct blockclient_set){0}) == -1);
    for (options.transport = 0; options.transport <= 3; options.transport++) {
        CHECK(blockclient_connect(words[1], &options, &client) == 0);
        struct blockclient_set set;
        CHECK(blockclient_open(client, "none", &set) == -1);
        CHECK(blockclient_open(client, "map", &set) == 0 && set.blocks == 40 && set.block_size == 8192);
        uint64_t list[] = {3, 5}, sum = 0;
        CHECK(blockclient_request(client, set.id, list, 2, 1) == 0);
        for (int at = 0; at < 2; at++) sum += block(client, NULL);
        CHECK(sum == 8 && blockclient_waiting(client, set.id) == 0);
        CHECK(blockclient_request(client, set.id + 9, list, 2, 1) == -1);
        CHECK(blockclient_next(client, 1000000, &(struct blockclient_event){0}) == 0);
        CHECK(blockclient_close(client) == 0 && blockclient_close(client) == -1);
    }
    CHECK(blockclient_connect(words[1], NULL, &client) == 0);
    struct blockclient_set set;
    CHECK(blockclient_open(client, "map", &set) == 0);

    int asked = 0;
    uint64_t one = 10, two = 11;
    CHECK(blockclient_predict(client, set.id, following, &asked, 0) == 0);
    CHECK(blockclient_request(client, set.id, &one, 1, 0) == -1);
    CHECK(blockclient_request(client, set.id, &one, 1, 1) == 0 && block(client, NULL) == 10);
    /* Time for the block behind it, which nobody asked for yet. */
    CHECK(blockclient_next(client, 300000000, &(struct blockclient_event){0}) == 0);
    CHECK(blockclient_request(client, set.id, &two, 1, 1) == 0 && block(client, NULL) == 11 && asked == 2);
    CHECK(blockclient_predict(client, set.id, NULL, NULL, 0) == 0);

    static uint8_t memory[40 * 8192];
    uint64_t done = 0;
    CHECK(blockclient_read(client, set.id, 0, 40, memory, 8192, heard, &done) == -1);
    CHECK(blockclient_read(client, set.id, 0, 41, memory, sizeof memory, heard, &done) == -1);
    CHECK(blockclient_read(client, set.id, 0, 40, memory, sizeof memory, heard, &done) == 0 && done == set.bytes);
    for (int at = 0; at < 40; at++) CHECK(memory[at * 8192 + 7] == at);
    CHECK(blockclient_read(client, set.id, 0, 40, memory, sizeof memory, never, NULL) == -4);

    struct blockclient_pace pace = {.interval_ns = 1000000, .depth = 4, .wait = 1};
    struct blockclient_played played;
    uint64_t turn = 0;
    CHECK(blockclient_play(client, set.id, 0, 40, &pace, given, &turn, &played) == 0);
    CHECK(turn == 40 && played.skipped == 0);
    CHECK(blockclient_close(client) == 0);
    puts("all of it");
    return 0;
}

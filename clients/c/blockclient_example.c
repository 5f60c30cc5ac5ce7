/* Reads some blocks of a set and reports where their time went: blockclient_example MASTER SET NUMBER... */
#include "stackline_blockclient.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(void) {
    fprintf(stderr, "error: %s\nhint: %s\n", blockclient_error(), blockclient_hint());
    return 1;
}

int main(int count, char **words) {
    uint64_t client, blocks[64], left = 0;
    struct blockclient_set set;
    struct blockclient_event event;
    if (count < 4 || blockclient_connect(words[1], NULL, &client)) return failed();
    if (blockclient_open(client, words[2], &set)) return failed();
    for (int at = 3; at < count && left < 64; at++) blocks[left++] = strtoull(words[at], NULL, 10);
    if (blockclient_request(client, set.id, blocks, left, 1)) return failed();
    while (left > 0 && blockclient_next(client, 10000000000, &event) > 0) {
        if (event.kind == BLOCKCLIENT_BLOCK) {
            printf("block %" PRIu64 ": %" PRIu64 " bytes, %s, %" PRIu64 " us in total\n", event.number, event.length,
                   event.cached ? "from memory" : "from its disk", (event.app_receive - event.app_send) / 1000);
            left--;
        } else if (event.kind == BLOCKCLIENT_FAILED) {
            printf("block %" PRIu64 ": %s\n", event.number, event.words);
            left--;
        }
        blockclient_free(&event);
    }
    return blockclient_close(client) || left ? failed() : 0;
}

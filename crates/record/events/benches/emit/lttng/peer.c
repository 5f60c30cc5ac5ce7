/* Prints the ns that an event costs the thread that emits it through LTTng-UST: bursts with rests, as for the others. */
#define _DEFAULT_SOURCE 1
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "peer.h"

#include <stdio.h>
#include <time.h>

enum { BURSTS = 20, BURST = 10000, WARMING = 20 };

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int main(void) {
    uint64_t spent = 0;
    for (int burst = -WARMING; burst < BURSTS; burst++) {
        uint64_t start = now();
        for (int64_t n = 0; n < BURST; n++) lttng_ust_tracepoint(stackline_peer, app_send, n, 4, n * 1500, 1500);
        /* The first ones are not counted, as for the others. */
        if (burst >= 0) spent += now() - start;
        struct timespec rest = {0, 5000000};
        nanosleep(&rest, NULL);
    }
    printf("%.3f\n", (double)spent / BURSTS / BURST);
    return 0;
}

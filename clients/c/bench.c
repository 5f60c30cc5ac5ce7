/* Prints the ns that an event costs the thread that emits it: bursts, with rests in which they are drained. */
#define STACKLINE_EVENTS_IMPLEMENTATION
#include "stackline_events.h"

enum { BURSTS = 20, BURST = 10000, WARMING = 20 };

int main(void) {
    if (stackline_events_from_env()) return 3;
    uint64_t spent = 0;
    for (int burst = -WARMING; burst < BURSTS; burst++) {
        uint64_t start = sl_read(CLOCK_MONOTONIC);
        for (int64_t n = 0; n < BURST; n++) STACKLINE_EVENT("APP_SEND", n, 4, n * 1500, 1500);
        /* The first ones are not counted: the kernel gives memory to the ring while it is first written. */
        if (burst >= 0) spent += sl_read(CLOCK_MONOTONIC) - start;
        struct timespec rest = {0, 5000000};
        nanosleep(&rest, NULL);
    }
    struct stackline_totals totals = stackline_events_stop();
    printf("%.3f\n", (double)spent / BURSTS / BURST);
    return totals.lost || totals.fault;
}

#define STACKLINE_EVENTS_IMPLEMENTATION /* in one file of a program; cc example.c */
#include "stackline_events.h"
#include <stdio.h>

int main(void) {
    if (stackline_events_from_env()) return 3; /* STACKLINE_EVENTS=file:app.tape */
    long unit = 17;
    STACKLINE_EVENT("APP_SEND", unit, STACKLINE_ABSENT, 0, 1500);
    STACKLINE_EVENT("DPSS_START_WRITE", unit, "set 3");
    struct stackline_totals totals = stackline_events_stop();
    printf("%llu recorded, %llu lost\n", (unsigned long long)totals.recorded, (unsigned long long)totals.lost);
}

/* Emits the events of one request: STACKLINE_EVENTS=file:example.tape ./example */
#include "stackline_events.h"

int main(void) {
    if (stackline_events_from_env()) return 3;
    long unit = 17;
    STACKLINE_EVENT("APP_SEND", unit, STACKLINE_ABSENT, 0, 1500);
    STACKLINE_EVENT("DPSS_START_WRITE", unit, "set 3");
    struct stackline_totals totals = stackline_events_stop();
    return totals.lost || totals.fault;
}

/* What the test of the C client runs: one part of it, by the first argument, into the file of STACKLINE_EVENTS. */
#define STACKLINE_EVENTS_IMPLEMENTATION
#include "stackline_events.h"

#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 50, EACH = 200 };

static void values(void) {
    static char big[5000];
    memset(big, 'x', sizeof big - 1);
    memcpy(big + 4094, "\xe2\x82\xac", 3); /* a character of three bytes across the longest length */
    STACKLINE_EVENT("EMPTY");
    STACKLINE_EVENT("NUMBERS", -7, UINT64_MAX, INT64_MIN, (unsigned char)200, 1 == 1);
    STACKLINE_EVENT("TEXTS", "a; b", "95%", " edge ", "100%3B", "\xff no utf-8 \xc3\xa4", (char *)0, "");
    STACKLINE_EVENT("LONG", (const char *)big, STACKLINE_ABSENT, "17");
    STACKLINE_EVENT("SIXTEEN", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
}

static void *emit(void *thread) {
    for (int n = 0; n < EACH; n++) STACKLINE_EVENT("APP_SEND", *(int *)thread, n);
    return NULL;
}

static int threads(void) {
    static int numbers[THREADS];
    pthread_t running[THREADS];
    for (int n = 0; n < THREADS; n++) {
        numbers[n] = n;
        if (pthread_create(&running[n], NULL, emit, &numbers[n])) return 1;
    }
    for (int n = 0; n < THREADS; n++) pthread_join(running[n], NULL);
    return 0;
}

/* The child records nothing, then into a file of its own. */
static int forks(void) {
    STACKLINE_EVENT("BEFORE");
    pid_t child = fork();
    if (child == 0) {
        STACKLINE_EVENT("IN_CHILD");
        if (stackline_events_start("child", getenv("OTHER"))) _exit(1);
        STACKLINE_EVENT("CHILD");
        struct stackline_totals totals = stackline_events_stop();
        _exit(totals.recorded != 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    STACKLINE_EVENT("AFTER");
    return status;
}

/* More than a ring holds, without a pause; what the totals say is told on the other side. */
static int flood(void) {
    for (int n = 0; n < 1000000; n++) STACKLINE_EVENT("APP_SEND", n, 4, n, 1500);
    return 0;
}

int main(int count, char **arguments) {
    const char *part = count > 1 ? arguments[1] : "";
    if (!strcmp(part, "wrong")) {
        return stackline_events_start("c", "tcp:1") == EINVAL && stackline_events_start("c", "file:") == EINVAL &&
                       stackline_events_start("c", "file:/nowhere/at/all") == ENOENT && stackline_events_start("c", "off") == 0
                   ? 0
                   : 1;
    }
    STACKLINE_EVENT("TOO_EARLY");
    int fault = stackline_events_start("c host", getenv("STACKLINE_EVENTS"));
    if (fault) {
        fprintf(stderr, "%s\n", strerror(fault));
        return 3;
    }
    if (!strcmp(part, "killed")) {
        STACKLINE_EVENT("BEFORE_THE_END");
        struct timespec while_drained = {0, 200000000};
        nanosleep(&while_drained, NULL);
        raise(SIGKILL);
    }
    if (!strcmp(part, "values")) values();
    else if (!strcmp(part, "threads")) fault = threads();
    else if (!strcmp(part, "forks")) fault = forks();
    else if (!strcmp(part, "flood")) fault = flood();
    else if (!strcmp(part, "exit")) {
        STACKLINE_EVENT("AT_EXIT");
        return 0;
    }
    struct stackline_totals totals = stackline_events_stop();
    STACKLINE_EVENT("TOO_LATE");
    printf("%llu %llu %d\n", (unsigned long long)totals.recorded, (unsigned long long)totals.lost, totals.fault);
    return fault;
}

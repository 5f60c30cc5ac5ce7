/* What the test of the C client runs: one part of it, by the first argument, into the file of STACKLINE_EVENTS. */
#define _DEFAULT_SOURCE 1
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Has a signal come while the client holds its lock: it copies a name, and makes a ring, there. */
static volatile sig_atomic_t interrupts;
static char *interrupted_copy(const char *text) {
    if (interrupts) raise(SIGUSR1);
    return strdup(text);
}
static void *interrupted_calloc(size_t count, size_t size) {
    if (interrupts) raise(SIGUSR1);
    return calloc(count, size);
}
#undef strdup
#define strdup interrupted_copy
#define calloc interrupted_calloc
#define STACKLINE_EVENTS_IMPLEMENTATION
#include "stackline_events.h"
#undef strdup
#undef calloc

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

static void *lose_ring(void *unused) {
    STACKLINE_EVENT("HAS_A_RING");
    sl_renew(sl_state + 2); /* as when that recorder is over: no new ring follows */
    for (unsigned left = 1; left;) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&sl_lock);
        left = sl_ring_count;
        pthread_mutex_unlock(&sl_lock);
    }
    return unused;
}

/* A thread ends after its ring was freed. */
static int renews(void) {
    pthread_t thread;
    alarm(20); /* rather than to wait for ever */
    return pthread_create(&thread, NULL, lose_ring, NULL) || pthread_join(thread, NULL);
}

static void emit_in_handler(int signal) {
    STACKLINE_EVENT("IN_HANDLER", signal);
}

/* A handler emits while its thread takes a number for a keyword and a ring: lost and counted. */
static int signals(void) {
    struct sigaction action = {0};
    sigset_t one, pending;
    action.sa_handler = emit_in_handler;
    sigaction(SIGUSR1, &action, NULL);
    alarm(20); /* rather than to wait for ever */
    interrupts = 1;
    STACKLINE_EVENT("INTERRUPTED_TWICE");
    interrupts = 0;
    /* The thread that drains takes none in the program's place. */
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    kill(getpid(), SIGUSR1);
    struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
    if (sigpending(&pending) || !sigismember(&pending, SIGUSR1)) return 1;
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    return 0;
}

/* A child lives on: the parent can stop and start on the same file, and the child holds no copy of it. */
static int outlived(void) {
    int held[2];
    char byte;
    STACKLINE_EVENT("FIRST");
    if (pipe(held)) return 1;
    pid_t child = fork();
    if (child == 0) {
        int open = 0;
        struct stat file, other;
        stat(getenv("STACKLINE_EVENTS") + 5, &file);
        for (int at = 0; at < 64; at++) open += !fstat(at, &other) && other.st_ino == file.st_ino && other.st_dev == file.st_dev;
        close(held[1]);
        _exit(read(held[0], &byte, 1) != 0 || open);
    }
    struct stackline_totals first = stackline_events_stop();
    int status = 1, fault = stackline_events_start("again", getenv("STACKLINE_EVENTS"));
    STACKLINE_EVENT("SECOND");
    close(held[1]);
    waitpid(child, &status, 0);
    return fault || status || first.recorded != 1;
}

/* More than a ring holds, without a pause; the totals are reported on the other side. */
static int flood(void) {
    for (int n = 0; n < 1000000; n++) STACKLINE_EVENT("APP_SEND", n, 4, n, 1500);
    return 0;
}

/* Reads each line of the input; prints its unit and itself again, or "none". */
static int traceparents(void) {
    static char line[1 << 21];
    struct sl_traceparent read, no_parent = {{0, 1}, 0, 0}, no_trace = {{0, 0}, 1, 0};
    char printed[SL_TRACEPARENT_SIZE];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (sl_traceparent_parse(line, &read)) puts("none");
        else if (sl_traceparent_print(&read, printed)) return 1;
        else printf("%lld %s\n", (long long)sl_traceparent_unit(&read), printed);
    }
    return sl_traceparent_print(&no_parent, printed) != EINVAL || sl_traceparent_print(&no_trace, printed) != EINVAL ||
           sl_traceparent_parse(NULL, &read) != EINVAL;
}

int main(int count, char **arguments) {
    const char *part = count > 1 ? arguments[1] : "";
    if (!strcmp(part, "wrong")) {
        return stackline_events_start("c", "tcp:1") == EINVAL && stackline_events_start("c", "file:") == EINVAL &&
                       stackline_events_start("c", "file:/nowhere/at/all") == ENOENT && stackline_events_start("c", "off") == 0
                   ? 0
                   : 1;
    }
    if (!strcmp(part, "traceparents")) return traceparents();
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
    else if (!strcmp(part, "outlived")) fault = outlived();
    else if (!strcmp(part, "renews")) fault = renews();
    else if (!strcmp(part, "signals")) fault = signals();
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

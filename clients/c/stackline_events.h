/* stackline events for C: timestamped events from any program, for the price of reading a clock.
 *
 * The whole client is this file. In one source file of a program, before any other include:
 *
 *     #define STACKLINE_EVENTS_IMPLEMENTATION
 *     #include "stackline_events.h"
 *
 * and in all others only the include; or link with libstackline_events.a (see the Makefile). C11, POSIX threads, -pthread.
 *
 * It writes the binary form or the text form of docs/EVENTS.md. Each thread writes into a ring of its own, one thread
 * drains them all. While nobody records, an event costs one load and one branch. What there is no room for, or a full disk
 * does not take, is counted and reported as an event, EVENTS_LOST. A forked process records nothing until it starts itself.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef STACKLINE_EVENTS_H
#define STACKLINE_EVENTS_H

#if defined(STACKLINE_EVENTS_IMPLEMENTATION) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The totals between start and stop. Recorded plus lost is the number of events emitted. */
struct stackline_totals {
    uint64_t recorded;
    uint64_t lost;
    int fault; /* 0, or the errno of the first write that failed */
};

/* Starts recording as `host` (NULL: the name of this machine) into "file:PATH" (binary form) or "text:PATH"; %p in PATH is
 * the process's number; "off", "" and NULL record nothing. Returns 0, or an errno: EINVAL for any other setting, EALREADY when this
 * process records already, EBUSY when another writes that file, EEXIST when it holds something else. Ends by itself at exit. */
int stackline_events_start(const char *host, const char *setting);

/* The same with the setting of the environment variable STACKLINE_EVENTS. */
int stackline_events_from_env(void);

/* Stops recording once everything emitted before is in the file. */
struct stackline_totals stackline_events_stop(void);

/* Emits an event now: a keyword as a string literal, then up to 16 data (numbers, texts or STACKLINE_ABSENT) in the order
 * that docs/EVENTS.md gives for the keyword: STACKLINE_EVENT("APP_SEND", unit, stream, offset, bytes). A text is copied. */
#define STACKLINE_EVENT(...)                                                                                             \
    STACKLINE_PICK_(__VA_ARGS__, STACKLINE_16_, STACKLINE_15_, STACKLINE_14_, STACKLINE_13_, STACKLINE_12_, STACKLINE_11_, \
                    STACKLINE_10_, STACKLINE_9_, STACKLINE_8_, STACKLINE_7_, STACKLINE_6_, STACKLINE_5_, STACKLINE_4_,     \
                    STACKLINE_3_, STACKLINE_2_, STACKLINE_1_, STACKLINE_0_, 0)                                           \
    (__VA_ARGS__)

/* An id that travels with a request: the traceparent header of W3C Trace Context, 00-TRACE-PARENT-FLAGS. Every client in every
 * language makes the same unit of it. To call in one's turn, keep `trace` and put another random number into `parent`. */
struct sl_traceparent {
    uint64_t trace[2]; /* the first and the last eight bytes of trace-id; not both 0 */
    uint64_t parent;   /* parent-id; not 0 */
    unsigned flags;
};

enum { SL_TRACEPARENT_SIZE = 56 }; /* bytes that are printed, with the 0 at the end */

/* Reads a header's value, of this version or a later one, with or without blanks around it. 0, or EINVAL if it is not valid. */
int sl_traceparent_parse(const char *text, struct sl_traceparent *parent);

/* Prints version 00. 0, or EINVAL if trace or parent is 0. */
int sl_traceparent_print(const struct sl_traceparent *parent, char text[SL_TRACEPARENT_SIZE]);

/* The `unit` of the request's events: the last eight bytes of trace-id, exclusive or with parent-id, without the first bit. */
static inline int64_t sl_traceparent_unit(const struct sl_traceparent *parent) {
    return (int64_t)((parent->trace[1] ^ parent->parent) & INT64_MAX);
}

/* A field that is unknown or does not apply. */
#define STACKLINE_ABSENT ((struct stackline_value){0})

/* One data field; made by STACKLINE_EVENT. */
struct stackline_value {
    uint64_t word; /* the number, or the bytes of the text */
    const char *text;
    unsigned kind; /* 0 absent, 1 number, 2 text */
};

struct stackline_keyword {
    const char *name;
    _Atomic uint32_t id;
};

extern _Atomic uint64_t stackline_events_state; /* 0 while nobody records */
struct stackline_value stackline_text(const char *text);
void stackline_events_emit(struct stackline_keyword *keyword, unsigned count, const struct stackline_value *values);

static inline struct stackline_value stackline_number(int64_t number) {
    return (struct stackline_value){(uint64_t)number, 0, 1};
}

/* What is above 2^63 - 1 becomes that. */
static inline struct stackline_value stackline_unsigned(uint64_t number) {
    return stackline_number(number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

/* There are none: times are in ns, shares in parts per million. Naming it here makes the compiler refuse them. */
struct stackline_value stackline_no_fractions(void);

static inline struct stackline_value stackline_same(struct stackline_value value) { return value; }

#define STACKLINE_V_(x)                                                                                             \
    _Generic((x), char *: stackline_text, const char *: stackline_text, struct stackline_value: stackline_same,         \
             unsigned long: stackline_unsigned, unsigned long long: stackline_unsigned, float: stackline_no_fractions,   \
             double: stackline_no_fractions, default: stackline_number)(x)

#define STACKLINE_EMIT_(keyword, count, ...)                                                                            \
    do {                                                                                                                \
        if (atomic_load_explicit(&stackline_events_state, memory_order_relaxed)) {                                      \
            static struct stackline_keyword stackline_place_ = {keyword, 0};                                            \
            const struct stackline_value stackline_values_[] = {__VA_ARGS__};                                           \
            stackline_events_emit(&stackline_place_, count, stackline_values_);                                         \
        }                                                                                                               \
    } while (0)

#define STACKLINE_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, pick, ...) pick
#define STACKLINE_0_(z) STACKLINE_EMIT_(z, 0, STACKLINE_ABSENT)
#define STACKLINE_1_(z, a) STACKLINE_EMIT_(z, 1, STACKLINE_V_(a))
#define STACKLINE_2_(z, a, b) STACKLINE_EMIT_(z, 2, STACKLINE_V_(a), STACKLINE_V_(b))
#define STACKLINE_3_(z, a, b, c) STACKLINE_EMIT_(z, 3, STACKLINE_V_(a), STACKLINE_V_(b), STACKLINE_V_(c))
#define STACKLINE_4_(z, a, b, c, d) STACKLINE_EMIT_(z, 4, STACKLINE_V_(a), STACKLINE_V_(b), STACKLINE_V_(c), STACKLINE_V_(d))
#define STACKLINE_FOUR_(a, b, c, d) STACKLINE_V_(a), STACKLINE_V_(b), STACKLINE_V_(c), STACKLINE_V_(d)
#define STACKLINE_5_(z, a, b, c, d, e) STACKLINE_EMIT_(z, 5, STACKLINE_FOUR_(a, b, c, d), STACKLINE_V_(e))
#define STACKLINE_6_(z, a, b, c, d, e, f) STACKLINE_EMIT_(z, 6, STACKLINE_FOUR_(a, b, c, d), STACKLINE_V_(e), STACKLINE_V_(f))
#define STACKLINE_7_(z, a, b, c, d, e, f, g) STACKLINE_EMIT_(z, 7, STACKLINE_FOUR_(a, b, c, d), STACKLINE_V_(e), STACKLINE_V_(f), STACKLINE_V_(g))
#define STACKLINE_8_(z, a, b, c, d, e, f, g, h) STACKLINE_EMIT_(z, 8, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h))
#define STACKLINE_9_(z, a, b, c, d, e, f, g, h, i) STACKLINE_EMIT_(z, 9, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h), STACKLINE_V_(i))
#define STACKLINE_10_(z, a, b, c, d, e, f, g, h, i, j)                                                                  \
    STACKLINE_EMIT_(z, 10, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h), STACKLINE_V_(i), STACKLINE_V_(j))
#define STACKLINE_11_(z, a, b, c, d, e, f, g, h, i, j, k)                                                               \
    STACKLINE_EMIT_(z, 11, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h), STACKLINE_V_(i), STACKLINE_V_(j), STACKLINE_V_(k))
#define STACKLINE_12_(z, a, b, c, d, e, f, g, h, i, j, k, l)                                                            \
    STACKLINE_EMIT_(z, 12, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h), STACKLINE_FOUR_(i, j, k, l))
#define STACKLINE_13_(z, a, b, c, d, e, f, g, h, i, j, k, l, m)                                                         \
    STACKLINE_EMIT_(z, 13, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h), STACKLINE_FOUR_(i, j, k, l), STACKLINE_V_(m))
#define STACKLINE_14_(z, a, b, c, d, e, f, g, h, i, j, k, l, m, n)                                                      \
    STACKLINE_EMIT_(z, 14, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h), STACKLINE_FOUR_(i, j, k, l), STACKLINE_V_(m), STACKLINE_V_(n))
#define STACKLINE_15_(z, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)                                                   \
    STACKLINE_EMIT_(z, 15, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h), STACKLINE_FOUR_(i, j, k, l), STACKLINE_V_(m), STACKLINE_V_(n), STACKLINE_V_(o))
#define STACKLINE_16_(z, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                                                \
    STACKLINE_EMIT_(z, 16, STACKLINE_FOUR_(a, b, c, d), STACKLINE_FOUR_(e, f, g, h), STACKLINE_FOUR_(i, j, k, l), STACKLINE_FOUR_(m, n, o, p))

#endif /* STACKLINE_EVENTS_H */

#if defined(STACKLINE_EVENTS_IMPLEMENTATION) && !defined(STACKLINE_EVENTS_IMPLEMENTED)
#define STACKLINE_EVENTS_IMPLEMENTED

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

enum {
    SL_MOST_VALUES = 16,
    SL_LONGEST_TEXT = 4096,
    SL_FIRST = 16,           /* numbers of keywords below this mean something of the form itself */
    SL_DEFINE = 1,           /* gives a number its name */
    SL_HOST = 2,             /* whose the following records are */
    SL_MOST_NAMES = 1 << 16, /* further ones count as the last */
    SL_RING_WORDS = 1 << 20, /* of the first threads; later ones get less */
    SL_LEAST_WORDS = 1 << 14,
    SL_OF_A_SIZE = 8,
    SL_MOST_RINGS = 1 << 13, /* events of further threads are lost */
    SL_BATCH = 1 << 20,      /* bytes that are written at once */
    SL_ANCHORS = 64,
};

#define SL_TICKS (UINT64_C(1) << 31) /* in a ring: the time is in ticks of the processor's counter still */
#define SL_SECOND UINT64_C(1000000000)

/* Words from one thread to one other: what each end writes lies in cache lines of its own. */
struct sl_ring {
    _Alignas(128) _Atomic uint64_t head; /* words ever written */
    _Atomic uint64_t lost;               /* records there was no room for, ever */
    _Atomic bool closed;                 /* the writer is gone */
    uint64_t limit;                      /* words up to which may be written without looking at the tail */
    _Alignas(128) _Atomic uint64_t tail; /* words ever taken */
    uint64_t reported;                   /* records lost that were reported */
    _Alignas(128) uint64_t size;
    uint64_t *words;
    struct sl_ring *next;
};

/* What the calling thread writes into. */
struct sl_mine {
    uint64_t state;
    struct sl_ring *ring;
    unsigned busy; /* not 0: a handler of a signal that emits now has come into the midst of something; its event is lost */
};

_Atomic uint64_t stackline_events_state;
static _Thread_local struct sl_mine sl_mine;
static _Atomic uint64_t sl_stray; /* records that found no ring */

/* Everything below is behind this lock, but for what only the draining thread uses. */
static pthread_mutex_t sl_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sl_wake;
static struct sl_ring *sl_rings;
static unsigned sl_ring_count;
static uint64_t sl_state, sl_recorders;
static bool sl_stop, sl_once;
static pthread_key_t sl_key;
static pthread_t sl_thread;
static const char *sl_names[SL_MOST_NAMES];
static uint32_t sl_name_count;

static inline void sl_begin_busy(void) {
    sl_mine.busy++;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void sl_end_busy(void) {
    atomic_signal_fence(memory_order_seq_cst);
    sl_mine.busy--;
}

/* A handler of a signal must not wait for what its own thread holds. */
static void sl_hold(void) {
    sl_begin_busy();
    pthread_mutex_lock(&sl_lock);
}

static void sl_let_go(void) {
    pthread_mutex_unlock(&sl_lock);
    sl_end_busy();
}

/* --- the clock ----------------------------------------------------------------------------------------------------- */

/* The same moment on both clocks, and ns in a tick since the one before, in parts of 2^32. */
struct sl_anchor {
    uint64_t ticks, ns, slope;
};

static int64_t sl_offset; /* from the monotonic clock to ns since 1970 */
static bool sl_counts_ticks;
static struct sl_anchor sl_anchors[SL_ANCHORS]; /* the newest is number sl_anchor_count - 1, modulo their number */
static uint64_t sl_anchor_count, sl_narrowest;

static uint64_t sl_read(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * SL_SECOND + (uint64_t)time.tv_nsec;
}

static inline uint64_t sl_now(void) { return sl_read(CLOCK_MONOTONIC) + (uint64_t)sl_offset; }

#if defined(__x86_64__)
static inline uint64_t sl_ticks(void) { return __rdtsc(); }
#else
static inline uint64_t sl_ticks(void) { return 0; }
#endif

/* Whether the counter goes at one speed by the processor, and is what the kernel keeps time with. */
static bool sl_ticks_are_time(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d = 0;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1 << 8)) return false;
    char source[8] = "";
    int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t length = read(file, source, sizeof source);
    close(file);
    return length == 4 && !memcmp(source, "tsc\n", 4);
#else
    return false;
#endif
}

#if defined(__x86_64__)
__extension__ typedef unsigned __int128 sl_wide;
#else
typedef uint64_t sl_wide; /* there are no ticks to turn into ns */
#endif

static uint64_t sl_scaled(uint64_t ticks, uint64_t slope) { return (uint64_t)((sl_wide)ticks * slope >> 32); }

static struct sl_anchor *sl_anchor(uint64_t back) { return &sl_anchors[(sl_anchor_count - 1 - back) % SL_ANCHORS]; }

/* Reads both clocks: again, while something comes between. */
static void sl_anchor_read(void) {
    struct sl_anchor best = {0, 0, 0};
    uint64_t width = UINT64_MAX;
    for (int tries = 0; tries < 8 && !(sl_narrowest && width <= sl_narrowest * 2); tries++) {
        uint64_t before = sl_ticks(), ns = sl_now(), took = sl_ticks() - before;
        if (took < width) {
            width = took;
            best.ticks = before + took / 2;
            best.ns = ns;
        }
    }
    if (!sl_narrowest || width < sl_narrowest) sl_narrowest = width ? width : 1;
    struct sl_anchor *last = sl_anchor_count ? sl_anchor(0) : NULL;
    if (last && best.ticks > last->ticks) {
        uint64_t ns = best.ns > last->ns ? best.ns - last->ns : 0;
        best.slope = (uint64_t)(((sl_wide)ns << 32) / (best.ticks - last->ticks));
        if (sl_anchor_count == 1) last->slope = best.slope;
    } else {
        sl_anchor_count = 0; /* the counter began again */
    }
    sl_anchor_count++;
    *sl_anchor(0) = best;
}

/* What a stamp is in ns: on the line between the anchors around it. */
static uint64_t sl_ns(uint64_t ticks) {
    struct sl_anchor *after = sl_anchor(0);
    if (ticks > after->ticks) return after->ns + sl_scaled(ticks - after->ticks, after->slope);
    uint64_t kept = sl_anchor_count < SL_ANCHORS ? sl_anchor_count : SL_ANCHORS;
    for (uint64_t back = 1; back < kept; back++) {
        struct sl_anchor *anchor = sl_anchor(back);
        if (ticks >= anchor->ticks) {
            uint64_t ns = anchor->ns + sl_scaled(ticks - anchor->ticks, after->slope);
            return ns < after->ns ? ns : after->ns;
        }
        after = anchor;
    }
    uint64_t before = sl_scaled(after->ticks - ticks, after->slope);
    return before < after->ns ? after->ns - before : 0;
}

/* --- emitting ------------------------------------------------------------------------------------------------------ */

/* The number of a name. The name is copied: its library may be unloaded before it is written. */
static uint32_t sl_intern(struct stackline_keyword *keyword) {
    sl_hold();
    uint32_t index = 0;
    while (index < sl_name_count && strcmp(sl_names[index], keyword->name)) index++;
    if (index == SL_MOST_NAMES) index--;
    if (index == sl_name_count) {
        const char *copy = strdup(keyword->name);
        sl_names[sl_name_count++] = copy ? copy : "UNKNOWN";
    }
    sl_let_go();
    atomic_store_explicit(&keyword->id, SL_FIRST + index, memory_order_relaxed);
    return SL_FIRST + index;
}

static void sl_close(void *ring) {
    sl_mine.ring = NULL;
    atomic_store_explicit(&((struct sl_ring *)ring)->closed, true, memory_order_release);
}

/* Gives the calling thread a ring of the present recorder. */
static void sl_renew(uint64_t state) {
    if (sl_mine.ring) {
        pthread_setspecific(sl_key, NULL); /* whoever drains frees it, so the end of the thread must not see it */
        sl_close(sl_mine.ring);
    }
    sl_hold();
    struct sl_ring *ring = NULL;
    if (sl_state == state && sl_ring_count < SL_MOST_RINGS) {
        unsigned halved = sl_ring_count / SL_OF_A_SIZE;
        size_t size = SL_RING_WORDS >> (halved < 16 ? halved : 16);
        if (size < SL_LEAST_WORDS) size = SL_LEAST_WORDS;
        ring = aligned_alloc(128, sizeof *ring);
        uint64_t *words = calloc(size, sizeof *words);
        if (ring && words && pthread_setspecific(sl_key, ring) == 0) {
            memset(ring, 0, sizeof *ring);
            ring->size = size;
            ring->words = words;
            ring->next = sl_rings;
            sl_rings = ring;
            sl_ring_count++;
        } else {
            free(ring);
            free(words);
            ring = NULL;
        }
    }
    sl_mine.state = state;
    sl_mine.ring = ring;
    sl_let_go();
}

/* Reads the reader's position, a few times a round; whether there is room for so many words. */
static bool sl_look(struct sl_ring *ring, uint64_t head, uint64_t length) {
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    if (head - tail > ring->size / 2) pthread_cond_signal(&sl_wake);
    uint64_t soon = head + (length > ring->size / 8 ? length : ring->size / 8);
    ring->limit = tail + ring->size < soon ? tail + ring->size : soon;
    if (head + length <= ring->limit) return true;
    /* Nobody else writes it. */
    uint64_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
    atomic_store_explicit(&ring->lost, lost + 1, memory_order_relaxed);
    return false;
}

/* A longer one is cut before the character that does not fit. */
struct stackline_value stackline_text(const char *text) {
    if (!text) return STACKLINE_ABSENT;
    size_t length = strnlen(text, SL_LONGEST_TEXT + 1);
    if (length > SL_LONGEST_TEXT) {
        length = SL_LONGEST_TEXT;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    }
    return (struct stackline_value){length, text, 2};
}

/* Where the words of a record go; copies, because a word that is written might be part of a ring as far as the compiler can prove. */
struct sl_place {
    uint64_t *words, mask, at;
};

static inline void sl_put(struct sl_place *place, uint64_t word) { place->words[place->at++ & place->mask] = word; }

static void sl_put_text(struct sl_place *place, const struct stackline_value *value) {
    sl_put(place, value->word);
    for (size_t done = 0; done < value->word; done += 8) {
        uint64_t word = 0;
        memcpy(&word, value->text + done, value->word - done < 8 ? value->word - done : 8);
        sl_put(place, word);
    }
}

static void sl_write(struct sl_ring *ring, uint64_t word, uint64_t stamp, unsigned count, const struct stackline_value *values) {
    uint64_t length = 2;
    for (unsigned index = 0; index < count; index++) {
        word |= (uint64_t)values[index].kind << (32 + 2 * index);
        length += values[index].kind == 2 ? 1 + (values[index].word + 7) / 8 : values[index].kind;
    }
    struct sl_place place = {ring->words, ring->size - 1, atomic_load_explicit(&ring->head, memory_order_relaxed)};
    if (place.at + length > ring->limit && !sl_look(ring, place.at, length)) return;
    sl_put(&place, word);
    sl_put(&place, stamp);
    for (unsigned index = 0; index < count; index++) {
        if (values[index].kind == 1) {
            sl_put(&place, values[index].word);
        } else if (values[index].kind == 2) {
            struct sl_place text = place; /* a copy, so that the other one need not be in memory */
            sl_put_text(&text, &values[index]);
            place.at = text.at;
        }
    }
    atomic_store_explicit(&ring->head, place.at, memory_order_release);
}

void stackline_events_emit(struct stackline_keyword *keyword, unsigned count, const struct stackline_value *values) {
    uint64_t state = atomic_load_explicit(&stackline_events_state, memory_order_relaxed);
    uint64_t stamp = state & 1 ? sl_ticks() : sl_now();
    struct sl_mine *mine = &sl_mine;
    if (!state) return;
    if (mine->busy) {
        atomic_fetch_add_explicit(&sl_stray, 1, memory_order_relaxed);
        return;
    }
    sl_begin_busy();
    uint32_t id = atomic_load_explicit(&keyword->id, memory_order_relaxed);
    if (!id) id = sl_intern(keyword);
    if (mine->state != state) sl_renew(state);
    if (mine->ring) sl_write(mine->ring, id | (uint64_t)count << 24 | (state & 1 ? SL_TICKS : 0), stamp, count, values);
    else atomic_fetch_add_explicit(&sl_stray, 1, memory_order_relaxed);
    sl_end_busy();
}

/* --- draining: only the thread that drains uses what follows ------------------------------------------------------- */

struct sl_buffer {
    unsigned char *bytes;
    size_t length, room;
};

static int sl_file = -1; /* changed only behind the lock */
static bool sl_as_text;
static off_t sl_written;                /* bytes of the file that are whole records */
static struct sl_buffer sl_out;
static bool sl_told[SL_MOST_NAMES];     /* which numbers have their names in the file */
static uint64_t sl_in_out, sl_untold, sl_telling;
static struct stackline_totals sl_totals;
static char sl_host[256];

static void sl_add(const void *bytes, size_t length) {
    if (sl_out.length + length > sl_out.room) {
        size_t room = (sl_out.length + length) * 2;
        unsigned char *more = realloc(sl_out.bytes, room);
        if (!more) abort(); /* a few MiB: nothing else of the program would go on either */
        sl_out.bytes = more;
        sl_out.room = room;
    }
    memcpy(sl_out.bytes + sl_out.length, bytes, length);
    sl_out.length += length;
}

static void sl_add_word(uint64_t word) {
    unsigned char bytes[8];
    for (int index = 0; index < 8; index++) bytes[index] = (unsigned char)(word >> 8 * index);
    sl_add(bytes, 8);
}

/* A text as the binary form has it: its length, and its bytes filled up to whole words. */
static void sl_add_text(const char *text, size_t length) {
    static const char none[8];
    sl_add_word(length);
    sl_add(text, length);
    sl_add(none, (8 - length % 8) % 8);
}

static void sl_tell_host(void) {
    if (sl_as_text) return;
    sl_add_word(SL_HOST | UINT64_C(1) << 24 | UINT64_C(2) << 32);
    sl_add_word(0);
    sl_add_text(sl_host, strlen(sl_host));
}

static const char *sl_name(uint32_t id) {
    sl_hold();
    const char *name = id - SL_FIRST < sl_name_count ? sl_names[id - SL_FIRST] : "UNKNOWN";
    sl_let_go();
    return name;
}

static void sl_tell_name(uint32_t id) {
    const char *name = sl_name(id);
    sl_told[id - SL_FIRST] = true;
    if (sl_as_text) return;
    sl_add_word(SL_DEFINE | UINT64_C(2) << 24 | UINT64_C(1) << 32 | UINT64_C(2) << 34);
    sl_add_word(0);
    sl_add_word(id);
    sl_add_text(name, strnlen(name, SL_LONGEST_TEXT));
}

/* Bytes of the UTF-8 character at the beginning; 0 where there is none. */
static size_t sl_character(const unsigned char *text, size_t length) {
    unsigned char first = text[0];
    size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (!size || size > length) return 0;
    for (size_t index = 1; index < size; index++) {
        if ((text[index] & 0xc0) != 0x80) return 0;
    }
    bool wrong = (first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
                 (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f);
    return wrong ? 0 : size;
}

/* What is no UTF-8 in it becomes question marks. */
static void sl_cleanse(char *text, size_t length) {
    for (size_t at = 0; at < length;) {
        size_t size = sl_character((unsigned char *)text + at, length - at);
        if (!size) text[at] = '?';
        at += size ? size : 1;
    }
}

static bool sl_blank(char c) { return c == ' ' || c == '\t'; }

static bool sl_code(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); }

/* Whether `%` and two digits would be read as a character that is written so. */
static bool sl_would_decode(const char *text, size_t length) {
    if (length < 3 || !sl_code(text[1]) || !sl_code(text[2])) return false;
    char digits[3] = {text[1], text[2], 0};
    long c = strtol(digits, NULL, 16);
    return c < 0x20 || c == 0x7f || c == ';' || c == '%' || c == '#' || c == ' ';
}

/* A field of the text form. */
static void sl_add_field(const char *text, size_t length) {
    size_t begin = 0, end = length, plain = 0;
    while (plain < length && text[plain] > ' ' && text[plain] < 0x7f && text[plain] != ';' && text[plain] != '%') plain++;
    if (plain == length) {
        sl_add(text, length);
        return;
    }
    while (begin < length && sl_blank(text[begin])) begin++;
    while (end > 0 && sl_blank(text[end - 1])) end--;
    for (size_t at = 0; at < length; at++) {
        unsigned char c = (unsigned char)text[at];
        bool edge = sl_blank(text[at]) && (at < begin || at >= end);
        if (c == ';' || c < 0x20 || c == 0x7f || edge || (c == '%' && sl_would_decode(text + at, length - at))) {
            static const char digits[] = "0123456789ABCDEF";
            char coded[3] = {'%', digits[c >> 4], digits[c & 15]};
            sl_add(coded, 3);
        } else {
            sl_add(text + at, 1);
        }
    }
}

static void sl_add_number(int64_t number, bool negative) {
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = negative ? -(uint64_t)number : (uint64_t)number;
    do digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (negative) digits[--at] = '-';
    sl_add(digits + at, sizeof digits - at);
}

/* A record of words, its time in ns, as a line. */
static void sl_add_line(const uint64_t *words) {
    const char *name = sl_name(words[0] & 0xffffff);
    if (name[0] == '#') sl_add("%23", 3);
    sl_add_field(name + (name[0] == '#'), strlen(name) - (name[0] == '#'));
    sl_add("; ", 2);
    sl_add_field(sl_host, strlen(sl_host));
    sl_add("; ", 2);
    sl_add_number((int64_t)(words[1] / SL_SECOND), false);
    sl_add("; ", 2);
    sl_add_number((int64_t)(words[1] % SL_SECOND), false);
    unsigned count = words[0] >> 24 & 0x1f;
    const uint64_t *next = words + 2;
    bool empty = false;
    for (unsigned index = 0; index < count; index++) {
        unsigned kind = words[0] >> (32 + 2 * index) & 3;
        empty = kind == 0 || (kind == 2 && *next == 0);
        sl_add("; ", 2);
        if (kind == 1) {
            sl_add_number((int64_t)*next, (int64_t)*next < 0);
            next++;
        } else if (kind == 2) {
            sl_add_field((const char *)(next + 1), *next);
            next += 1 + (*next + 7) / 8;
        }
    }
    if (empty) sl_add(";", 1); /* it would be taken for the end of the field before */
    sl_add("\n", 1);
}

/* Words of the record that begins there. Texts in it are made UTF-8. */
static size_t sl_record(uint64_t *words) {
    size_t length = 2;
    for (unsigned index = 0; index < (words[0] >> 24 & 0x1f); index++) {
        unsigned kind = words[0] >> (32 + 2 * index) & 3;
        if (kind == 2) {
            sl_cleanse((char *)(words + length + 1), words[length]);
            length += 1 + (words[length] + 7) / 8;
        } else {
            length += kind;
        }
    }
    return length;
}

static void sl_add_record(uint64_t *words, size_t length) {
    uint32_t id = words[0] & 0xffffff;
    if (words[0] & SL_TICKS) words[1] = sl_ns(words[1]);
    words[0] &= ~SL_TICKS;
    if (!sl_told[id - SL_FIRST]) sl_tell_name(id);
    if (sl_as_text) {
        sl_add_line(words);
        return;
    }
    for (unsigned index = 0, at = 2; index < (words[0] >> 24 & 0x1f); index++) {
        unsigned kind = words[0] >> (32 + 2 * index) & 3;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
        /* Bytes of texts are in their order already, words are not. */
        for (size_t text = 0; kind == 2 && text < (words[at] + 7) / 8; text++)
            words[at + 1 + text] = __builtin_bswap64(words[at + 1 + text]);
#endif
        at += kind == 2 ? 1 + (words[at] + 7) / 8 : kind;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    sl_add(words, length * 8);
#else
    for (size_t at = 0; at < length; at++) sl_add_word(words[at]);
#endif
}

static void sl_lose(uint64_t count) {
    sl_totals.lost += count;
    sl_untold += count;
}

/* Writes the batch, whole or not at all. */
static void sl_hand_over(void) {
    size_t done = 0;
    while (done < sl_out.length) {
        ssize_t length = write(sl_file, sl_out.bytes + done, sl_out.length - done);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) break;
        done += (size_t)length;
    }
    if (done == sl_out.length) {
        sl_written += (off_t)done;
        sl_totals.recorded += sl_in_out;
        sl_untold -= sl_telling;
        sl_out.length = 0;
    } else {
        if (!sl_totals.fault) sl_totals.fault = errno ? errno : EIO;
        if (done && ftruncate(sl_file, sl_written)) { /* a pipe or a device: its reader misses the end of the batch */
        }
        sl_lose(sl_in_out);
        sl_out.length = 0;
        memset(sl_told, 0, sizeof sl_told);
        sl_tell_host();
    }
    sl_in_out = sl_telling = 0;
}

static void sl_tell_lost(void) {
    static struct stackline_keyword lost = {"EVENTS_LOST", 0};
    if (!sl_untold) return;
    uint32_t id = atomic_load_explicit(&lost.id, memory_order_relaxed);
    if (!id) id = sl_intern(&lost);
    uint64_t words[3] = {id | UINT64_C(1) << 24 | UINT64_C(1) << 32, sl_now(), sl_untold};
    sl_telling = sl_untold;
    sl_add_record(words, 3);
}

/* Takes what a ring holds up to there. How full it was, in parts of 1024. */
static uint64_t sl_take(struct sl_ring *ring, uint64_t until) {
    static uint64_t record[2 + SL_MOST_VALUES * (1 + SL_LONGEST_TEXT / 8)];
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), full = (until - tail) * 1024 / ring->size;
    while (tail < until) {
        uint64_t at = tail & (ring->size - 1), straight = ring->size - at;
        uint64_t most = until - tail < sizeof record / 8 ? until - tail : sizeof record / 8;
        uint64_t *words = ring->words + at;
        if (straight < most) { /* it may go on at the beginning of the ring */
            memcpy(record, words, straight * 8);
            memcpy(record + straight, ring->words, (most - straight) * 8);
            words = record;
        }
        size_t length = sl_record(words);
        sl_add_record(words, length);
        sl_in_out++;
        tail += length;
        if (sl_out.length > SL_BATCH) {
            atomic_store_explicit(&ring->tail, tail, memory_order_release);
            sl_hand_over();
        }
    }
    atomic_store_explicit(&ring->tail, until, memory_order_release);
    return full;
}

static void sl_free(struct sl_ring *ring) {
    free(ring->words);
    free(ring);
}

static uint64_t sl_drain(void) {
    uint64_t fullest = 0;
    sl_hold();
    struct sl_ring *first = sl_rings; /* later ones come before it */
    sl_let_go();
    for (struct sl_ring *ring = first; ring; ring = ring->next) {
        uint64_t until = atomic_load_explicit(&ring->head, memory_order_acquire);
        /* Every stamp up to there is older than this reading. */
        if (sl_counts_ticks && until != atomic_load_explicit(&ring->tail, memory_order_relaxed)) sl_anchor_read();
        uint64_t full = sl_take(ring, until), lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
        if (full > fullest) fullest = full;
        sl_lose(lost - ring->reported);
        ring->reported = lost;
    }
    sl_lose(atomic_exchange_explicit(&sl_stray, 0, memory_order_relaxed));
    sl_tell_lost();
    if (sl_out.length) sl_hand_over();
    sl_hold();
    for (struct sl_ring **link = &sl_rings; *link;) {
        struct sl_ring *ring = *link;
        bool closed = atomic_load_explicit(&ring->closed, memory_order_acquire);
        if (closed && atomic_load_explicit(&ring->head, memory_order_relaxed) == atomic_load_explicit(&ring->tail, memory_order_relaxed) &&
            atomic_load_explicit(&ring->lost, memory_order_relaxed) == ring->reported) {
            *link = ring->next;
            sl_ring_count--;
            sl_free(ring);
        } else {
            link = &ring->next;
        }
    }
    sl_let_go();
    return fullest;
}

static void *sl_work(void *unused) {
    uint64_t pause = SL_SECOND / 1000;
    (void)unused;
    for (;;) {
        sl_hold();
        bool last = sl_stop;
        sl_let_go();
        uint64_t full = sl_drain();
        if (last) return NULL;
        /* Seldom while there is little, which costs less. */
        if (full > 128 && pause > SL_SECOND / 1000) pause /= 2;
        else if (full < 32 && pause < SL_SECOND / 50) pause *= 2;
        uint64_t until = sl_read(CLOCK_MONOTONIC) + pause;
        struct timespec time = {(time_t)(until / SL_SECOND), (long)(until % SL_SECOND)};
        sl_hold();
        if (!sl_stop) pthread_cond_timedwait(&sl_wake, &sl_lock, &time);
        sl_let_go();
    }
}

/* The thread that drains takes no signals: a program's handlers run in the program's own threads. */
static int sl_begin_work(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int fault = pthread_create(&sl_thread, NULL, sl_work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return fault;
}

/* --- starting and stopping ----------------------------------------------------------------------------------------- */

static void sl_before_fork(void) { sl_hold(); }
static void sl_after_fork(void) { sl_let_go(); }

static void sl_wake_make(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sl_wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* The process that was forked off has none of the other threads. Its copies of rings are left where they are. */
static void sl_in_child(void) {
    atomic_store_explicit(&stackline_events_state, 0, memory_order_relaxed);
    sl_state = 0;
    sl_rings = NULL;
    sl_ring_count = 0;
    sl_mine.ring = NULL;
    pthread_setspecific(sl_key, NULL);
    if (sl_file >= 0) close(sl_file); /* it would keep the parent's lock when the parent is gone */
    sl_file = -1;
    sl_wake_make(); /* the thread that waited for it is not here */
    sl_let_go();
}

static void sl_at_exit(void) { (void)stackline_events_stop(); }

/* How many bytes from the beginning of a file of the binary form are whole records; 0 where it does not begin as one. */
static off_t sl_whole(FILE *file) {
    off_t whole = 0;
    uint64_t words[2];
    while (fread(words, 8, 2, file) == 2) {
        unsigned char *head = (unsigned char *)words;
        unsigned id = head[0] | head[1] << 8 | head[2] << 16, count = head[3];
        off_t length = 16;
        if (count > SL_MOST_VALUES || (!whole && id != SL_HOST)) return whole;
        for (unsigned index = 0; index < count; index++) {
            unsigned kind = head[4 + index / 4] >> index % 4 * 2 & 3;
            unsigned char word[8];
            if (!kind) continue;
            if (kind == 3 || fread(word, 8, 1, file) != 1) return whole;
            length += 8;
            if (kind == 1) continue;
            uint64_t text = 0, zeros = 0;
            for (int byte = 0; byte < 8; byte++) text |= (uint64_t)word[byte] << 8 * byte;
            if (text > SL_LONGEST_TEXT) return whole;
            for (uint64_t done = 0; done < text; done += 8) {
                if (fread(&zeros, 8, 1, file) != 1) return whole;
                length += 8;
            }
        }
        whole += length;
    }
    return whole;
}

/* Opens a file behind what is whole in it, for this process alone. Returns 0 or an errno. */
static int sl_open(const char *path, bool text) {
    int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    struct stat status;
    if (file < 0) return errno;
    if (flock(file, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        close(file);
        return EBUSY;
    }
    int fault = fstat(file, &status) ? errno : 0;
    off_t whole = fault ? 0 : status.st_size;
    if (!fault && text && S_ISREG(status.st_mode) && whole) {
        char last = '\n';
        if (pread(file, &last, 1, whole - 1) != 1 || (last != '\n' && write(file, "\n", 1) != 1)) fault = errno ? errno : EIO;
        else if (last != '\n') whole++;
    } else if (!fault && !text && whole) {
        int copy = dup(file);
        FILE *reader = copy < 0 ? NULL : fdopen(copy, "r");
        if (reader) {
            whole = sl_whole(reader);
            fclose(reader);
            fault = whole == 0 ? EEXIST : ftruncate(file, whole) ? errno : 0;
        } else {
            fault = errno;
            if (copy >= 0) close(copy);
        }
    }
    if (fault) {
        close(file);
        return fault;
    }
    sl_file = file;
    sl_written = whole;
    sl_as_text = text;
    return 0;
}

/* Gives the file back. Its lock belongs to every copy of the descriptor, also one in a process that was forked off. */
static void sl_shut(void) {
    flock(sl_file, LOCK_UN);
    close(sl_file);
    sl_file = -1;
}

/* The path behind "file:" or "text:", with the process's number in place of %p. */
static bool sl_path(const char *setting, char *path, size_t room) {
    size_t at = 0;
    for (const char *c = setting + 5; *c; c++) {
        int length = c[0] == '%' && c[1] == 'p' ? snprintf(path + at, room - at, "%ld", (long)getpid())
                                                : snprintf(path + at, room - at, "%c", *c);
        if (length < 0 || (at += (size_t)length) >= room) return false;
        c += c[0] == '%' && c[1] == 'p';
    }
    return at > 0;
}

static int sl_start(const char *host, const char *setting) {
    char path[4096];
    bool text = !strncmp(setting, "text:", 5);
    if ((!text && strncmp(setting, "file:", 5)) || !sl_path(setting, path, sizeof path)) return EINVAL;
    if (sl_state) return EALREADY;
    if (!sl_once) {
        int fault = pthread_key_create(&sl_key, sl_close);
        if (fault) return fault;
        sl_wake_make();
        pthread_atfork(sl_before_fork, sl_after_fork, sl_in_child);
        atexit(sl_at_exit);
        sl_once = true;
    }
    int fault = sl_open(path, text);
    if (fault) return fault;
    if (!host && gethostname(sl_host, sizeof sl_host - 1) == 0) host = sl_host;
    if (host != sl_host) snprintf(sl_host, sizeof sl_host, "%s", host && *host ? host : "localhost");
    if (!*sl_host) strcpy(sl_host, "localhost");
    sl_cleanse(sl_host, strlen(sl_host));
    sl_offset = (int64_t)(sl_read(CLOCK_REALTIME) - sl_read(CLOCK_MONOTONIC));
    sl_counts_ticks = sl_ticks_are_time();
    sl_anchor_count = sl_narrowest = 0;
    if (sl_counts_ticks) sl_anchor_read();
    sl_totals = (struct stackline_totals){0, 0, 0};
    sl_in_out = sl_untold = sl_telling = 0;
    sl_out.length = 0;
    memset(sl_told, 0, sizeof sl_told);
    sl_tell_host();
    sl_stop = false;
    atomic_store(&sl_stray, 0);
    fault = sl_begin_work();
    if (fault) {
        sl_shut();
        return fault;
    }
    sl_state = ++sl_recorders << 1 | sl_counts_ticks;
    atomic_store_explicit(&stackline_events_state, sl_state, memory_order_release);
    return 0;
}

int stackline_events_start(const char *host, const char *setting) {
    if (!setting || !*setting || !strcmp(setting, "off")) return 0;
    sl_hold();
    int fault = sl_start(host, setting);
    sl_let_go();
    return fault;
}

int stackline_events_from_env(void) { return stackline_events_start(NULL, getenv("STACKLINE_EVENTS")); }

struct stackline_totals stackline_events_stop(void) {
    struct stackline_totals none = {0, 0, 0};
    sl_hold();
    bool records = sl_state && !sl_stop;
    sl_stop = true;
    atomic_store_explicit(&stackline_events_state, 0, memory_order_release);
    sl_let_go();
    if (!records) return none;
    pthread_cond_signal(&sl_wake);
    pthread_join(sl_thread, NULL);
    sl_hold();
    sl_shut();
    /* Rings of threads that live on are given back by those threads' next event or end. */
    sl_state = 0;
    sl_let_go();
    return sl_totals;
}

/* --- ids that travel ----------------------------------------------------------------------------------------------- */

/* So many hexadecimal digits, small letters only, at most 16. */
static bool sl_hexadecimal(const char *digits, size_t count, uint64_t *number) {
    *number = 0;
    for (size_t at = 0; at < count; at++) {
        char c = digits[at];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return false;
        *number = *number << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return true;
}

int sl_traceparent_parse(const char *text, struct sl_traceparent *parent) {
    enum { KNOWN = 55, LONGEST = 512 };
    uint64_t version, flags;
    struct sl_traceparent read = {{0, 0}, 0, 0};
    if (!text) return EINVAL;
    while (sl_blank(*text)) text++;
    size_t length = strlen(text);
    while (length && sl_blank(text[length - 1])) length--;
    if (length < KNOWN || length > LONGEST || text[2] != '-' || text[35] != '-' || text[52] != '-') return EINVAL;
    if (!sl_hexadecimal(text, 2, &version) || !sl_hexadecimal(text + 3, 16, &read.trace[0]) ||
        !sl_hexadecimal(text + 19, 16, &read.trace[1]) || !sl_hexadecimal(text + 36, 16, &read.parent) ||
        !sl_hexadecimal(text + 53, 2, &flags))
        return EINVAL;
    /* A version that is not known yet may have more behind another `-`; version ff is none. */
    if (version == 0xff || (length > KNOWN && (version == 0 || text[KNOWN] != '-'))) return EINVAL;
    if (!(read.trace[0] | read.trace[1]) || !read.parent) return EINVAL;
    read.flags = (unsigned)flags;
    *parent = read;
    return 0;
}

int sl_traceparent_print(const struct sl_traceparent *parent, char text[SL_TRACEPARENT_SIZE]) {
    if (!(parent->trace[0] | parent->trace[1]) || !parent->parent) return EINVAL;
    snprintf(text, SL_TRACEPARENT_SIZE, "00-%016" PRIx64 "%016" PRIx64 "-%016" PRIx64 "-%02x", parent->trace[0],
             parent->trace[1], parent->parent, parent->flags & 1);
    return 0;
}

#endif /* STACKLINE_EVENTS_IMPLEMENTATION */

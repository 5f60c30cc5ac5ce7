/*
 * A client of stackline's block server (docs/BLOCKS.md): open a set, ask for lists of blocks, take blocks as they arrive, with the
 * timestamps of every hop.
 *
 *     cc -o viewer viewer.c -Iclients/c -Ltarget/release -lstackline_blockclient
 *
 * Functions return 0 or more on success, and a negative number on failure: -1 the request is not possible, -2 this machine, the
 * master or a server cannot do it, -3 it failed in progress, -4 one of your functions ended it. After a failure,
 * blockclient_error() is a sentence and blockclient_hint() what to try, both UTF-8, of this thread, until its next call.
 *
 * All functions may be called from several threads. Your functions get the context that was given with them, are called by the thread
 * that called the library, and must not call the library themselves. Times are ns since the Epoch, 0 if there is none.
 */
#ifndef STACKLINE_BLOCKCLIENT_H
#define STACKLINE_BLOCKCLIENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero is the default. */
struct blockclient_options {
    uint32_t transport;      /* 0 TCP, 1 UDP, 2 RTP, 3 blast */
    uint32_t no_check;       /* 1: checksums of blocks are not verified */
    uint32_t report;         /* 1: servers report what a newer list discards */
    uint32_t reserved;       /* 0 */
    uint64_t age_ns;         /* blocks requested longer ago are dropped at the server; 0: never */
    uint64_t receive_buffer; /* bytes, of each connection; 0: the system's */
    uint64_t pace;           /* bytes per second at which each server sends datagrams (UDP, RTP); 0: as fast as it can */
};

struct blockclient_set {
    uint32_t id;
    uint32_t block_size; /* bytes of each block except the last */
    uint64_t blocks;
    uint64_t bytes;
};

enum blockclient_kind {
    BLOCKCLIENT_BLOCK = 1,       /* a block arrived */
    BLOCKCLIENT_FAILED = 2,      /* a block will not arrive: words says why */
    BLOCKCLIENT_FLUSHED = 3,     /* a newer list discarded units[0 .. count - 1] at app_receive, if report was set */
    BLOCKCLIENT_SERVER_GONE = 4, /* the server named in words is gone */
    BLOCKCLIENT_SERVER_CAME = 5, /* the server named in words is available */
    BLOCKCLIENT_MASTER_GONE = 6  /* the master is gone; open sets can still be read */
};

struct blockclient_event {
    int32_t kind; /* enum blockclient_kind; 0: nothing happened */
    uint32_t set;
    uint64_t number; /* of the block in its set */
    uint64_t unit;   /* of the block on lifelines: the unit of its list's first block plus its position there */
    uint64_t serial; /* of its list */
    uint16_t server;
    uint16_t disk;
    uint8_t wanted; /* 0: no list that is still valid asks for it */
    uint8_t cached; /* 1: it was in the server's memory */
    uint16_t reserved;
    /* When it passed each point. */
    uint64_t app_send;
    uint64_t master_in;
    uint64_t master_out;
    uint64_t server_in;
    uint64_t start_read;
    uint64_t end_read;
    uint64_t start_write;
    uint64_t app_receive;
    /* An earlier unit over the same connection, and when its writing ended; 0: none is reported. */
    uint64_t before;
    uint64_t before_end_write;
    /* Valid until blockclient_free. */
    const uint8_t *data;
    uint64_t length;
    const uint64_t *units;
    uint64_t count;
    const char *words;
    void *owner;
};

/* Connects to a master, such as "10.0.0.5:7480", to read. options may be NULL. */
int blockclient_connect(const char *master, const struct blockclient_options *options, uint64_t *client);

/* Closes the client. Threads waiting for its blocks get an error within a tenth of a second. Events already taken stay valid. */
int blockclient_close(uint64_t client);

int blockclient_open(uint64_t client, const char *name, struct blockclient_set *set);

/* Requests blocks by number, 8192 at most. A list that supersedes discards pending blocks of the set; one that does not is
 * for blocks requested again or in addition. */
int blockclient_request(uint64_t client, uint32_t set, const uint64_t *blocks, uint64_t count, int supersedes);

/* Names up to room blocks that may be needed after those of list, the likeliest first, in next; returns their number. */
typedef uint64_t (*blockclient_prediction)(void *context, const uint64_t *list, uint64_t count, uint64_t *next, uint64_t room);

/* From now on, the blocks that function names are requested after each list of the set, at most `most` per list and kept (0: 64).
 * A block that arrived this way is an event as soon as it is requested. NULL: stop. */
int blockclient_predict(uint64_t client, uint32_t set, blockclient_prediction function, void *context, uint32_t most);

/* Waits for the next event, at most within_ns (negative: without limit): 1 one came, 0 the time is over. Free every event. */
int blockclient_next(uint64_t client, int64_t within_ns, struct blockclient_event *event);
void blockclient_free(struct blockclient_event *event);

/* Number of blocks of a set that are wanted and have not arrived. */
int64_t blockclient_waiting(uint64_t client, uint32_t set);

/* Is called with the number of bytes read so far; return not 0 to stop. */
typedef int (*blockclient_progress)(void *context, uint64_t done, uint64_t all);

/* Reads count blocks from first on at full speed into memory of size bytes. progress may be NULL. Events of the client that arrive
 * meanwhile are lost. */
int blockclient_read(uint64_t client, uint32_t set, uint64_t first, uint64_t count, void *memory, uint64_t size,
                     blockclient_progress progress, void *context);

struct blockclient_pace {
    uint64_t interval_ns; /* a block is due this long after the previous one */
    uint32_t depth;       /* playing starts when this many are held; twice as many are requested ahead */
    uint32_t wait;        /* 1: wait for a block that has not arrived when it is due; 0: skip it */
};

struct blockclient_played {
    uint64_t late;    /* blocks that arrived after their turn */
    uint64_t skipped; /* blocks that were skipped */
    uint64_t stalls;  /* how often playing stalled */
};

/* Receives a block when it is due, data NULL if it is skipped; return not 0 to stop. */
typedef int (*blockclient_give)(void *context, uint64_t number, const uint8_t *data, uint64_t length);

/* Plays count blocks from first on in order. played may be NULL. Events of the client that arrive meanwhile are lost. */
int blockclient_play(uint64_t client, uint32_t set, uint64_t first, uint64_t count, const struct blockclient_pace *pace,
                     blockclient_give give, void *context, struct blockclient_played *played);

const char *blockclient_error(void);
const char *blockclient_hint(void);

#ifdef __cplusplus
}
#endif

#endif

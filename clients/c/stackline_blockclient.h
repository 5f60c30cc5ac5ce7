/*
 * A client of stackline's block server (docs/BLOCKS.md): open a set, ask for lists of blocks, take blocks as they come, with the
 * time stamps of every hop.
 *
 *     cc -o viewer viewer.c -Iclients/c -Ltarget/release -lstackline_blockclient
 *
 * Functions return 0 or more where they succeed, and below 0 where they do not: -1 what was asked for cannot be, -2 this machine, the
 * master or a server cannot do it, -3 it failed on its way, -4 a function of yours ended it. blockclient_error() then is a sentence
 * and blockclient_hint() what to try, both UTF-8, of this thread, until its next call.
 *
 * All of it may be called by several threads. Functions of yours get the context that was given with them, are called by the thread
 * that called the library, and do not call it themselves. Times are ns since the Epoch, 0 where there is none.
 */
#ifndef STACKLINE_BLOCKCLIENT_H
#define STACKLINE_BLOCKCLIENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero is what is usual. */
struct blockclient_options {
    uint32_t transport;      /* 0 TCP, 1 UDP, 2 RTP, 3 blast */
    uint32_t no_check;       /* 1: checksums of blocks are not compared */
    uint32_t report;         /* 1: servers tell what a newer list discards */
    uint32_t reserved;       /* 0 */
    uint64_t age_ns;         /* blocks that were asked for longer ago are dropped at the server; 0: never */
    uint64_t receive_buffer; /* bytes, of each connection; 0: the system's */
    uint64_t pace;           /* bytes a second at which datagrams of each server leave, of UDP and RTP; 0: as fast as they can */
};

struct blockclient_set {
    uint32_t id;
    uint32_t block_size; /* bytes of each block but the last */
    uint64_t blocks;
    uint64_t bytes;
};

enum blockclient_kind {
    BLOCKCLIENT_BLOCK = 1,       /* a block came */
    BLOCKCLIENT_FAILED = 2,      /* a block will not come: words says why */
    BLOCKCLIENT_FLUSHED = 3,     /* a newer list discarded units[0 .. count - 1], where report was asked for, at app_receive */
    BLOCKCLIENT_SERVER_GONE = 4, /* the server words is gone */
    BLOCKCLIENT_SERVER_CAME = 5, /* the server words is there */
    BLOCKCLIENT_MASTER_GONE = 6  /* the master is gone; sets that are open are read on */
};

struct blockclient_event {
    int32_t kind; /* enum blockclient_kind; 0: nothing happened */
    uint32_t set;
    uint64_t number; /* of the block in its set */
    uint64_t unit;   /* of the block on lifelines: that of its list's first block, and its place there */
    uint64_t serial; /* of its list */
    uint16_t server;
    uint16_t disk;
    uint8_t wanted; /* 0: no list that still holds asks for it */
    uint8_t cached; /* 1: it was in the server's memory */
    uint16_t reserved;
    /* When it passed which point. */
    uint64_t app_send;
    uint64_t master_in;
    uint64_t master_out;
    uint64_t server_in;
    uint64_t start_read;
    uint64_t end_read;
    uint64_t start_write;
    uint64_t app_receive;
    /* A unit before it over the same connection, and when its writing ended; 0: none is told. */
    uint64_t before;
    uint64_t before_end_write;
    /* Yours until blockclient_free. */
    const uint8_t *data;
    uint64_t length;
    const uint64_t *units;
    uint64_t count;
    const char *words;
    void *owner;
};

/* Connects to a master, such as "10.0.0.5:7480", to read. options may be NULL. */
int blockclient_connect(const char *master, const struct blockclient_options *options, uint64_t *client);

/* Closes it. Threads that wait for its blocks get an error within a tenth of a second. Events that were taken stay. */
int blockclient_close(uint64_t client);

int blockclient_open(uint64_t client, const char *name, struct blockclient_set *set);

/* Asks for blocks by their numbers, 8192 at most. A list that supersedes discards what is pending of the set; one that does not is
 * for what is asked for again, or in addition. */
int blockclient_request(uint64_t client, uint32_t set, const uint64_t *blocks, uint64_t count, int supersedes);

/* Names up to room blocks that may be needed after those of list, the likeliest first, in next; how many. */
typedef uint64_t (*blockclient_prediction)(void *context, const uint64_t *list, uint64_t count, uint64_t *next, uint64_t room);

/* From now on what function names is asked for behind each list of the set, most of them a list and kept (0: 64). What came so is an
 * event when it is asked for, at once. NULL: no more. */
int blockclient_predict(uint64_t client, uint32_t set, blockclient_prediction function, void *context, uint32_t most);

/* What happens next, within so many ns, below 0 without limit: 1 something did, 0 the time is over. Give every event back. */
int blockclient_next(uint64_t client, int64_t within_ns, struct blockclient_event *event);
void blockclient_free(struct blockclient_event *event);

/* How many blocks of a set are wanted and have not come. */
int64_t blockclient_waiting(uint64_t client, uint32_t set);

/* Hears how many bytes of all are there; not 0: no further. */
typedef int (*blockclient_progress)(void *context, uint64_t done, uint64_t all);

/* Reads count blocks from first on at full speed into memory of size bytes. progress may be NULL. Events of the client that come
 * meanwhile are lost. */
int blockclient_read(uint64_t client, uint32_t set, uint64_t first, uint64_t count, void *memory, uint64_t size,
                     blockclient_progress progress, void *context);

struct blockclient_pace {
    uint64_t interval_ns; /* a block is due so long after the one before */
    uint32_t depth;       /* it begins when so many are held; twice as many are asked for ahead */
    uint32_t wait;        /* 1: a block that is not there when it is due is waited for; 0: it is skipped */
};

struct blockclient_played {
    uint64_t late;    /* blocks that came behind their turn */
    uint64_t skipped; /* blocks that were left out */
    uint64_t stalls;  /* how often all stood still */
};

/* Gets a block when it is due, data NULL where it is left out; not 0: no further. */
typedef int (*blockclient_give)(void *context, uint64_t number, const uint8_t *data, uint64_t length);

/* Plays count blocks from first on in their order. played may be NULL. Events of the client that come meanwhile are lost. */
int blockclient_play(uint64_t client, uint32_t set, uint64_t first, uint64_t count, const struct blockclient_pace *pace,
                     blockclient_give give, void *context, struct blockclient_played *played);

const char *blockclient_error(void);
const char *blockclient_hint(void);

#ifdef __cplusplus
}
#endif

#endif

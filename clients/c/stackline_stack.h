/* A protocol stack of your own, which stackline measures as it measures its own: over plugin("./mystack.so").
 *
 *     cc -O2 -shared -fPIC -o mystack.so mystack.c
 *     stackline run -e '5 rr 32*1000 over tcp, plugin("./mystack.so")'
 *
 * The whole interface is this file: one exported function, stackline_stack, which returns a table of functions. docs/STACKS.md
 * explains it, stack_example.c is a whole stack. Any language that can export C functions will do; examples/stacks has one in Rust.
 *
 * What is carried. A connection carries bytes in both directions: all of them, once and in order, as TCP does. Where one send ends
 * need not be where a receive ends. stackline presents the run's token itself, as the first 16 bytes of each connection, and closes a
 * connection that begins with anything else: a stack does nothing about strangers, but each connection has to begin empty.
 *
 * Threads. Each endpoint (a listener or connector with its connections) has one thread, on which all its functions are called; those
 * of different endpoints are called at the same time. The thread has a table of file descriptors of its own: what one endpoint opens
 * is not open for another. Its stack has 256 KiB. Nothing may leave a function but by return: no exception, no longjmp.
 *
 * Memory. Buffers and texts that are passed in are the caller's and valid until the function returns. What a function returns through
 * a pointer to a pointer is the stack's own, passed back to it, and released by close or close_listener, which is called once for each.
 *
 * Stopping. A function with the parameter stop may block, but has to return soon once *stop is not 0, as a failure. stackline then
 * also sends the thread signals (SIGUSR1) without SA_RESTART, so that a blocked system call returns with EINTR. A function that does not
 * return within 3 s, or connect or listen that takes longer than 10 s, ends the run with an error that names it.
 *
 * Failure. A function returns -1, and last_error, called next on the same thread, says why in a sentence.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef STACKLINE_STACK_H
#define STACKLINE_STACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes whenever anything below does. */
#define STACKLINE_STACK_VERSION 1

/* Bytes of an address, with the 0 at the end. */
#define STACKLINE_ADDRESS_SIZE 256

/* Which endpoint is meant. */
struct stackline_endpoint {
    const char *options; /* the text of `options = "..."`, passed on as it is; "" where none is written */
    const char *bind;    /* where a listener should listen: an IP address of this host, or :: for all */
    uint32_t replica;    /* which pair of several, from 0 */
};

enum stackline_bulk { STACKLINE_GET = 0, STACKLINE_PUT = 1 };

struct stackline_stack {
    uint32_t version; /* STACKLINE_STACK_VERSION */
    const char *name; /* what it is, with its version, for the run's record; may be NULL */

    /* The responder's end. `address` is given to the initiator: a port number alone, such as "4711", as HOST:4711 with the host as the
     * initiator reaches it; any other text, such as the name of a shared memory, as it is. 0, or -1. */
    int (*listen)(const struct stackline_endpoint *endpoint, char address[STACKLINE_ADDRESS_SIZE], void **listener);
    /* Waits for the next connection. 0, or -1. */
    int (*accept)(void *listener, const volatile int *stop, void **connection);
    void (*close_listener)(void *listener);

    /* The initiator's end: makes a connection. 0, or -1. */
    int (*connect)(const struct stackline_endpoint *endpoint, const char *address, const volatile int *stop, void **connection);

    /* Sends some of the bytes, at least one. Returns how many, or -1. */
    int64_t (*send)(void *connection, const void *bytes, size_t count, const volatile int *stop);
    /* Waits for bytes and stores at most `most`, at least one. Returns how many; 0 once the peer has finished; or -1. */
    int64_t (*receive)(void *connection, void *room, size_t most, const volatile int *stop);
    /* Says that no more is sent: once everything has arrived, receive returns 0 at the peer. Bytes still come from it. 0, or -1. */
    int (*finish)(void *connection, const volatile int *stop);
    /* Ends the connection. What was sent before still arrives. Called after finish where the run went well. */
    void (*close)(void *connection);

    /* A sentence without a full stop on the last failure on this thread, valid until the thread's next call. May be NULL. */
    const char *(*last_error)(void);

    /* What follows is for stacks whose protocol has a notion of it. Each group may be NULL as a whole; then stackline uses send and
     * receive: a call is a request and a response of known sizes, a bulk transfer begins with one byte, and one byte back confirms that
     * a put has arrived. */

    /* Remote calls. call sends a request of `request` bytes and waits for the whole response of `response` bytes: 0, or -1. await_call
     * waits for a whole request of that size: 1, 0 once the peer has finished, or -1. reply sends the response: 0, or -1. */
    int (*call)(void *connection, const void *bytes, size_t request, void *room, size_t response, const volatile int *stop);
    int (*await_call)(void *connection, void *room, size_t request, const volatile int *stop);
    int (*reply)(void *connection, const void *bytes, size_t response, const volatile int *stop);

    /* Bulk transfers, whose data goes through send and receive between these. The initiator starts and stops, the responder awaits.
     * stop_bulk returns when nothing is in transit. 0, or -1; await_start_bulk: 1, 0 once the peer has finished, or -1. */
    int (*start_bulk)(void *connection, enum stackline_bulk direction, const volatile int *stop);
    int (*await_start_bulk)(void *connection, enum stackline_bulk direction, const volatile int *stop);
    int (*stop_bulk)(void *connection, enum stackline_bulk direction, const volatile int *stop);
    int (*await_stop_bulk)(void *connection, enum stackline_bulk direction, const volatile int *stop);
};

/* What a stack exports. `version` is stackline's; returns NULL if it is not one that the stack has been made for. The table stays
 * valid and unchanged from then on; the library is never unloaded. Called before any other function, once for each endpoint. */
__attribute__((visibility("default"))) const struct stackline_stack *stackline_stack(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif

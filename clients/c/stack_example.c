/* A whole stack for stackline: frames over TCP, each with its length before it, as many protocols have them.
 *
 *     cc -O2 -shared -fPIC -o mystack.so stack_example.c
 *     stackline run -e '5 rr 32*1000 over tcp, plugin("./mystack.so")'
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "stackline_stack.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LARGEST_FRAME = 1 << 20 };

struct listener { int fd; };
struct connection {
    int fd;
    uint32_t left; /* bytes of the present frame that have not been received */
};

static _Thread_local char why[STACKLINE_ADDRESS_SIZE + 64];

static int failed(const char *what) {
    snprintf(why, sizeof why, "%s: %s", what, strerror(errno));
    return -1;
}

static const char *last_error(void) { return why; }

/* Whether a system call that failed is made again: it was interrupted, and not in order to stop. */
static int again(const volatile int *stop) { return errno == EINTR && !*stop; }

static int start_listening(const struct stackline_endpoint *endpoint, char address[STACKLINE_ADDRESS_SIZE], void **listener) {
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *at;
    if (getaddrinfo(endpoint->bind, "0", &hints, &at)) return snprintf(why, sizeof why, "cannot listen at %s", endpoint->bind), -1;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int is_bound = fd >= 0 && !bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, 1024);
    freeaddrinfo(at);
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    struct listener *made = malloc(sizeof *made);
    if (!is_bound || !made || getsockname(fd, (struct sockaddr *)&bound, &length)) {
        int result = failed("cannot listen");
        free(made);
        if (fd >= 0) close(fd);
        return result;
    }
    /* The port stands at the same place in both families. */
    snprintf(address, STACKLINE_ADDRESS_SIZE, "%u", ntohs(((struct sockaddr_in *)&bound)->sin_port));
    made->fd = fd;
    *listener = made;
    return 0;
}

static int opened(int fd, void **connection) {
    int one = 1;
    struct connection *made = calloc(1, sizeof *made);
    if (!made || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one)) {
        int result = failed("cannot set up a connection");
        free(made);
        close(fd);
        return result;
    }
    made->fd = fd;
    *connection = made;
    return 0;
}

static int accept_next(void *listener, const volatile int *stop, void **connection) {
    struct listener *from = listener;
    int fd;
    while ((fd = accept4(from->fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
        if (!again(stop)) return failed("accept");
    return opened(fd, connection);
}

static void close_listener(void *listener) {
    struct listener *made = listener;
    close(made->fd);
    free(made);
}

static int connect_to(const struct stackline_endpoint *endpoint, const char *address, const volatile int *stop, void **connection) {
    (void)endpoint;
    char host[STACKLINE_ADDRESS_SIZE];
    snprintf(host, sizeof host, "%s", address);
    char *port = strrchr(host, ':'); /* HOST:PORT, the host of IPv6 in brackets */
    if (!port) return snprintf(why, sizeof why, "%s has no port", address), -1;
    *port++ = 0;
    char *name = host;
    if (*name == '[') {
        name++;
        name[strlen(name) - 1] = 0;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *to;
    if (getaddrinfo(name, port, &hints, &to)) return snprintf(why, sizeof why, "%s has no address", name), -1;
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), done = -1;
    if (fd >= 0)
        do done = connect(fd, to->ai_addr, to->ai_addrlen);
        while (done && again(stop));
    freeaddrinfo(to);
    if (done) {
        int result = failed("connect");
        if (fd >= 0) close(fd);
        return result;
    }
    return opened(fd, connection);
}

static int send_all(int fd, const void *bytes, size_t count, int flags, const volatile int *stop) {
    const char *at = bytes;
    while (count > 0) {
        ssize_t sent = send(fd, at, count, flags | MSG_NOSIGNAL);
        if (sent < 0) {
            if (again(stop)) continue;
            return failed("send");
        }
        at += sent;
        count -= (size_t)sent;
    }
    return 0;
}

static int64_t send_some(void *connection, const void *bytes, size_t count, const volatile int *stop) {
    struct connection *to = connection;
    if (count > LARGEST_FRAME) count = LARGEST_FRAME;
    uint32_t length = htonl((uint32_t)count);
    if (send_all(to->fd, &length, sizeof length, MSG_MORE, stop) || send_all(to->fd, bytes, count, 0, stop)) return -1;
    return (int64_t)count;
}

/* Receives up to `most` bytes: how many, 0 at the end, or -1. */
static ssize_t receive_up_to(int fd, void *room, size_t most, const volatile int *stop) {
    ssize_t got;
    while ((got = recv(fd, room, most, 0)) < 0)
        if (!again(stop)) return failed("recv");
    return got;
}

static int64_t receive_some(void *connection, void *room, size_t most, const volatile int *stop) {
    struct connection *from = connection;
    if (from->left == 0) {
        unsigned char head[4];
        size_t have = 0;
        while (have < sizeof head) {
            ssize_t got = receive_up_to(from->fd, head + have, sizeof head - have, stop);
            if (got < 0) return -1;
            if (got == 0 && have == 0) return 0;
            if (got == 0) return snprintf(why, sizeof why, "the peer ended within a frame"), -1;
            have += (size_t)got;
        }
        from->left = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
        if (from->left == 0 || from->left > LARGEST_FRAME) return snprintf(why, sizeof why, "a frame of %u bytes", from->left), -1;
    }
    if (most > from->left) most = from->left;
    ssize_t got = receive_up_to(from->fd, room, most, stop);
    if (got == 0) return snprintf(why, sizeof why, "the peer ended within a frame"), -1;
    if (got > 0) from->left -= (uint32_t)got;
    return got;
}

static int finish(void *connection, const volatile int *stop) {
    (void)stop;
    struct connection *to = connection;
    /* ENOTCONN: the peer has closed already and needs no notice. */
    return shutdown(to->fd, SHUT_WR) && errno != ENOTCONN ? failed("shutdown") : 0;
}

static void close_connection(void *connection) {
    struct connection *made = connection;
    close(made->fd);
    free(made);
}

static const struct stackline_stack STACK = {
    .version = STACKLINE_STACK_VERSION,
    .name = "frames over TCP 1.0",
    .listen = start_listening,
    .accept = accept_next,
    .close_listener = close_listener,
    .connect = connect_to,
    .send = send_some,
    .receive = receive_some,
    .finish = finish,
    .close = close_connection,
    .last_error = last_error,
};

const struct stackline_stack *stackline_stack(uint32_t version) { return version == STACKLINE_STACK_VERSION ? &STACK : NULL; }

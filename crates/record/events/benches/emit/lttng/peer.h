/* The same event as LTTng-UST has it: four numbers. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER stackline_peer
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./peer.h"

#if !defined(PEER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PEER_H
#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    stackline_peer, app_send, LTTNG_UST_TP_ARGS(int64_t, unit, int64_t, stream, int64_t, offset, int64_t, bytes),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int64_t, unit, unit) lttng_ust_field_integer(int64_t, stream, stream)
                            lttng_ust_field_integer(int64_t, offset, offset) lttng_ust_field_integer(int64_t, bytes, bytes)))
#endif
#include <lttng/tracepoint-event.h>

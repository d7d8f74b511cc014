// The tracepoint of ust.c.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER xol_peers

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./ust_event.h"

#if !defined(UST_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define UST_EVENT_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(xol_peers, hit, LTTNG_UST_TP_ARGS(long, x), LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, x, x)))
#endif

#include <lttng/tracepoint-event.h>

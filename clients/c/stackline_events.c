/* The static library: the header's implementation and nothing else. */
#define STACKLINE_EVENTS_IMPLEMENTATION
#include "stackline_events.h"

"""Prints the ns that an event costs the thread that emits it (bursts, with rests in which they are written), then the
processor time of everything until it is in the file."""

import time

import stackline_events as events

BURSTS, BURST = 20, 2000


def main():
    started = events.from_env()
    event, spent, before = events.event, 0, time.process_time_ns()
    for burst in range(BURSTS + 1):
        begin = time.perf_counter_ns()
        for n in range(BURST):
            event("APP_SEND", n, 4, 1500, 1500)
        # The first one is not counted: everything is new to it.
        spent += (time.perf_counter_ns() - begin) if burst else 0
        time.sleep(0.03)
    totals = events.stop()
    cpu = time.process_time_ns() - before
    print(f"{spent / BURSTS / BURST:.3f} {cpu / (BURSTS + 1) / BURST:.3f}")
    if started and totals[1:] != (0, None):
        raise SystemExit(f"not everything was kept: {totals}")


main()

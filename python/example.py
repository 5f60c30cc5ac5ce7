import stackline_events as events

events.from_env()  # STACKLINE_EVENTS=file:app.tape
unit = 17
events.event("APP_SEND", unit, None, 0, 1500)
with events.during("DPSS_START_WRITE", "DPSS_END_WRITE", unit, "set 3"):
    data = bytes(1500)
totals = events.stop()
print(f"{totals.recorded} recorded, {totals.lost} lost")

//! Emits the events of one request.

use stackline_events::{EventRecorder, event};

fn main() -> std::io::Result<()> {
    // STACKLINE_EVENTS=file:app.tape
    let recorder = EventRecorder::from_env()?;
    let unit = 17;
    event!("APP_SEND", unit, None::<i64>, 0, 1500);
    event!("DPSS_START_WRITE", unit, "set 3");
    let totals = recorder.map(EventRecorder::stop).unwrap_or_default();
    println!("{} recorded, {} lost", totals.recorded, totals.lost);
    Ok(())
}

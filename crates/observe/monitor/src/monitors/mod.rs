//! The list of monitors, one file each. A monitor samples one thing of this machine. A new one needs its file and its line in
//! [`ALL`].

mod clock_steps;
mod disks;
mod interfaces;
mod memory;
mod pressure;
mod process;
mod processor;
mod protocols;
pub(crate) mod sample;
mod softnet;
mod system_calls;
pub(crate) mod tcp;
mod throttling;

use sample::{Monitor, MonitorSetup, Started};
use std::collections::BTreeMap;

/// How a monitor starts.
type MonitorStart = fn(&MonitorSetup<'_>) -> Started;

/// Every monitor by its name, in the order in which samples are taken.
const ALL: &[(&str, MonitorStart)] = &[
    ("processor", processor::start),
    (system_calls::NAME, system_calls::start),
    ("memory", memory::start),
    ("pressure/cpu", |_| {
        pressure::start("cpu", "/proc/pressure/cpu")
    }),
    ("pressure/memory", |_| {
        pressure::start("memory", "/proc/pressure/memory")
    }),
    ("pressure/io", |_| {
        pressure::start("io", "/proc/pressure/io")
    }),
    ("throttling", throttling::start),
    ("interfaces", interfaces::start),
    ("protocols", protocols::start),
    ("softnet", softnet::start),
    ("disks", disks::start),
    ("process", process::start),
    ("wall clock", clock_steps::start),
    ("tcp", tcp::start),
];

/// Monitors that run, by name.
pub(crate) type RunningMonitors = Vec<(&'static str, Box<dyn Monitor>)>;

/// Starts every monitor; the second value says which could not be started and why.
pub(crate) fn start(setup: &MonitorSetup<'_>) -> (RunningMonitors, BTreeMap<String, String>) {
    let (mut running, mut absent) = (Vec::new(), BTreeMap::new());
    let asked_for = |name| name != system_calls::NAME || setup.config.system_calls;
    for &(name, start) in ALL.iter().filter(|(name, _)| asked_for(*name)) {
        match start(setup) {
            Ok(monitor) => running.push((name, monitor)),
            Err(reason) => drop(absent.insert(name.into(), reason)),
        }
    }
    (running, absent)
}

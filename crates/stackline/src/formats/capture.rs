//! Captures, pcapng and pcap. Connections that a run's own events name are found by their addresses and ports.

use super::format::{Importer, Shared, put, report, unread};
use crate::exit::Result;
use stackline_core::trace::Import;
use stackline_events::Table;
use stackline_exchange::capture::{Options, Reader};
use stackline_runs::events::{Intake, Log, Wanted, event_files, read_batches, read_index};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::Path;

/// How captures begin: a section header, or the magic of either byte order and resolution.
const MAGIC: [[u8; 4]; 5] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
];

pub(super) const FROM: Importer =
    Importer { name: "capture", recognises: |_, first| MAGIC.iter().any(|magic| first.starts_with(magic)), import };

fn import(log: Log<'_>, into: &mut Intake, shared: &mut Shared) -> Result<Import> {
    let options = match shared.connections.take() {
        Some(options) => options,
        None => known(into.run())?,
    };
    let mut import = Import { source: log.name.to_owned(), form: "capture".to_owned(), ..Import::default() };
    let Log { bytes, name, host, present_ns } = log;
    let mut count = 0;
    {
        let counted = Counted { from: bytes, count: &mut count };
        let log = Log { bytes: &mut io::empty(), name, host, present_ns };
        let mut reader = Reader::open(counted, &options).map_err(|cause| unread(&log, &cause))?;
        while let Some(table) = reader.next_batch() {
            put(&log, table, into, &mut import)?;
        }
        let (mistakes, connections) = reader.finish();
        report(mistakes, &mut import);
        shared.connections = Some(connections);
    }
    import.bytes = count;
    Ok(import)
}

/// What a run has of its connections: who was connected to whom on which stream, and which flows are taken.
fn known(run: &Path) -> Result<Options> {
    const FIELDS: [usize; 3] = [1, 4, 5];
    let mut options = Options::default();
    if event_files(run).is_err() {
        return Ok(options);
    }
    let flows = read_index(run)?.map(|index| index.flows).unwrap_or_default();
    options.first_flow = flows.iter().map(|flow| flow.id + 1).max().unwrap_or(0);
    read_batches(run, &Wanted::fields(&FIELDS), |events| {
        let connected = ["APP_CONNECTED", "APP_ACCEPTED"].map(|keyword| events.names.find(keyword));
        for row in 0..events.len() {
            let Some(stream) = events.number(row, FIELDS[0]) else { continue };
            let flow = u32::try_from(stream >> 1).unwrap_or(0);
            options.first_flow = options.first_flow.max(flow.saturating_add(1));
            if connected.contains(&Some(events.keyword[row]))
                && let (Some(local), Some(remote)) = (address(events, row, FIELDS[1]), address(events, row, FIELDS[2]))
            {
                // The stream is the one that this end sends on.
                options.known.insert((local, remote), stream);
                options.known.insert((remote, local), stream ^ 1);
            }
        }
    })?;
    Ok(options)
}

fn address(events: &Table, row: usize, field: usize) -> Option<SocketAddr> {
    events.value(row, field).text()?.parse().ok()
}

/// Counts what is read.
struct Counted<'r> {
    from: &'r mut (dyn Read + Send),
    count: &'r mut u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        *self.count += read as u64;
        Ok(read)
    }
}

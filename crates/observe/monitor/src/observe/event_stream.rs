//! Decodes the trace records of several kinds of events and returns them in order of time over all cores.
//!
//! Each core has a ring of its own, and the rings are read one after the other. Events later than what has been read of every core
//! are held until the next call. Reading and decoding are separate, so that different threads can do them.

use crate::kernel_trace::{KernelTraceRings, TraceEventFormat, UndecodedTrace};
use std::collections::HashMap;

/// Kernel memory for the records of each core, KiB: about 120,000 records, so that the reader may wait for a core.
const RING_KIB: usize = 8_192;
/// The most kernel memory for all cores together, KiB.
const RINGS_KIB: usize = 131_072;
/// The least kernel memory for each core, KiB.
const LEAST_RING_KIB: usize = 1_024;

/// A trace instance whose events are of kinds `K`.
pub(super) struct TraceEventRings<K> {
    rings: KernelTraceRings,
    kinds: HashMap<u16, (K, TraceEventFormat)>,
}

/// Decodes the records of such an instance to events `E`.
pub(super) struct TraceEventDecoder<K, E> {
    kinds: HashMap<u16, (K, TraceEventFormat)>,
    held: Vec<(u64, E)>,
}

impl<K: Copy> TraceEventRings<K> {
    /// Creates an instance without any event.
    pub(super) fn create() -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let kib = (RINGS_KIB / cores).clamp(LEAST_RING_KIB, RING_KIB);
        Ok(Self {
            rings: KernelTraceRings::create(u32::try_from(kib).unwrap_or(0))?,
            kinds: HashMap::new(),
        })
    }

    /// The instance and its switches.
    pub(super) fn rings(&self) -> &KernelTraceRings {
        &self.rings
    }

    /// Switches an event on, if its records have these fields; the kernel does not write records that do not match the filter.
    pub(super) fn add(
        &mut self,
        kind: K,
        name: &str,
        filter: &str,
        fields: &[&str],
    ) -> Result<(), String> {
        let format = self.rings.format(name)?;
        if let Some(lacks) = fields.iter().find(|field| !format.has(field)) {
            return Err(format!("its records have no field {lacks}"));
        }
        if !filter.is_empty() {
            self.rings.filter(name, filter)?;
        }
        self.rings.enable(name)?;
        self.kinds.insert(format.id, (kind, format));
        Ok(())
    }

    /// Reads the records since the last call.
    pub(super) fn read(&mut self, into: &mut UndecodedTrace) -> Result<(), String> {
        self.rings.read(into)
    }

    /// The decoder for the events that are switched on so far.
    pub(super) fn decoder<E>(&self) -> TraceEventDecoder<K, E> {
        TraceEventDecoder {
            kinds: self.kinds.clone(),
            held: Vec::new(),
        }
    }
}

impl<K: Copy, E> TraceEventDecoder<K, E> {
    /// Gives the events of a reading in order of time, up to `limit_ns`; `decode` is called with the kind, format, core and bytes of
    /// each record. All events before the returned time have been given.
    pub(super) fn decode<I: IntoIterator<Item = E>>(
        &mut self,
        read: &UndecodedTrace,
        limit_ns: u64,
        decode: impl Fn(K, &TraceEventFormat, u32, &[u8]) -> I,
        mut take: impl FnMut(u64, E),
    ) -> u64 {
        let Self { kinds, held } = self;
        let until_ns = read.each(|at_ns, core, record| {
            if let Some((kind, format)) = record
                .first_chunk()
                .and_then(|id| kinds.get(&u16::from_ne_bytes(*id)))
            {
                held.extend(
                    decode(*kind, format, core, record)
                        .into_iter()
                        .map(|event| (at_ns, event)),
                );
            }
        });
        held.sort_by_key(|(at_ns, _)| *at_ns);
        let until_ns = until_ns.min(limit_ns);
        let ready = held.partition_point(|(at_ns, _)| *at_ns <= until_ns);
        held.drain(..ready)
            .for_each(|(at_ns, event)| take(at_ns, event));
        until_ns
    }
}

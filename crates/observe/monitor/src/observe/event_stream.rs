//! Records of several kinds of event, decoded, in the order of time over all cores.
//!
//! Each core has a ring of its own, and they are read one after the other. What is later than what has been read of every core
//! is held until the next call. It does not decode.

use crate::kernel_trace::{Drained, KernelTraceRings, TraceEventFormat};
use std::collections::HashMap;

/// A trace instance whose events are of kinds `K` and are decoded to `E`.
pub(super) struct TraceEventStream<K, E> {
    rings: KernelTraceRings,
    kinds: HashMap<u16, (K, TraceEventFormat)>,
    held: Vec<(u64, E)>,
}

impl<K: Copy, E> TraceEventStream<K, E> {
    /// Without any event yet.
    pub(super) fn create(kib: u32) -> Result<Self, String> {
        Ok(Self {
            rings: KernelTraceRings::create(kib)?,
            kinds: HashMap::new(),
            held: Vec::new(),
        })
    }

    /// The instance and its switches.
    pub(super) fn rings(&self) -> &KernelTraceRings {
        &self.rings
    }

    /// Whether any event is switched on.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Switches an event on, if its records have these fields; records that the filter leaves out are not written.
    pub(super) fn add(
        &mut self,
        kind: K,
        name: &str,
        filter: &str,
        fields: &[&str],
    ) -> Result<(), String> {
        let format = self.rings.format(name)?;
        if let Some(lacks) = fields.iter().find(|field| !format.has(field)) {
            return Err(format!("its records have no {lacks}"));
        }
        if !filter.is_empty() {
            self.rings.filter(name, filter)?;
        }
        self.rings.enable(name)?;
        self.kinds.insert(format.id, (kind, format));
        Ok(())
    }

    /// Gives the events up to now, but not beyond a limit, in the order of time; `decode` is given the core.
    pub(super) fn drain<I: IntoIterator<Item = E>>(
        &mut self,
        limit_ns: u64,
        decode: impl Fn(K, &TraceEventFormat, u32, &[u8]) -> I,
        mut take: impl FnMut(u64, E),
    ) -> Result<Drained, String> {
        let Self { rings, kinds, held } = self;
        let drained = rings.drain(|at_ns, core, record| {
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
        })?;
        held.sort_by_key(|(at_ns, _)| *at_ns);
        let until_ns = drained.until_ns.min(limit_ns);
        let ready = held.partition_point(|(at_ns, _)| *at_ns <= until_ns);
        held.drain(..ready)
            .for_each(|(at_ns, event)| take(at_ns, event));
        Ok(Drained {
            until_ns,
            ..drained
        })
    }
}

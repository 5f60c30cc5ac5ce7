//! Virtual time: flows across one link, packet by packet.

use super::blasts::{Blasts, Packet};
use super::link::Link;
use super::tcp::Tcp;
use crate::tcp::TcpSegment;
use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use stackline_core::time::{Duration, Instant};

pub(super) enum Flow {
    Blasts(Box<Blasts>),
    Tcp(Box<Tcp>),
}

enum What {
    Wake(usize),
    Packet(usize, Packet),
    Segment(usize, TcpSegment),
}

/// All of it.
pub(super) struct Across {
    pub(super) link: Link,
    pub(super) flows: Vec<Flow>,
    pub(super) now: Instant,
    wakes: Vec<[Option<Instant>; 2]>,
    order: u64,
    events: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    things: Vec<Option<(usize, What)>>,
    free: Vec<usize>,
}

impl Across {
    pub(super) fn new(link: Link) -> Self {
        Self {
            link,
            flows: Vec::new(),
            now: Instant(1),
            wakes: Vec::new(),
            order: 0,
            events: BinaryHeap::new(),
            things: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, flow: Flow) {
        let index = self.flows.len();
        self.flows.push(flow);
        self.wakes.push([None; 2]);
        self.step(index, 0);
        self.step(index, 1);
    }

    /// Bytes of data of a flow that have arrived.
    pub(super) fn useful(&self, flow: usize) -> u64 {
        match &self.flows[flow] {
            Flow::Blasts(blasts) => blasts.arrived(),
            Flow::Tcp(tcp) => tcp.got,
        }
    }

    pub(super) fn blasts(&self, flow: usize) -> &Blasts {
        let Flow::Blasts(blasts) = &self.flows[flow] else {
            panic!("not of blasts")
        };
        blasts
    }

    /// The application of a flow has so many bytes more to send.
    pub(super) fn give(&mut self, flow: usize, bytes: u64) {
        let Flow::Blasts(of) = &mut self.flows[flow] else {
            panic!("not of blasts")
        };
        of.left = bytes;
        self.step(flow, 0);
    }

    /// A TCP connection has nothing more to send.
    pub(super) fn stop(&mut self, flow: usize) {
        let Flow::Tcp(tcp) = &mut self.flows[flow] else {
            panic!("not of TCP")
        };
        tcp.stopped = true;
    }

    fn plan(&mut self, at: Instant, flow: usize, what: What) {
        self.order += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.things.push(None);
            self.things.len() - 1
        });
        self.things[place] = Some((flow, what));
        self.events.push(Reverse((at, self.order, place)));
    }

    fn wake(&mut self, flow: usize, end: usize, at: Option<Instant>) {
        let Some(at) = at.map(|at| at.max(self.now)) else {
            return;
        };
        let planned = &mut self.wakes[flow][end];
        if planned.is_none_or(|planned| at < planned) {
            *planned = Some(at);
            self.plan(at, flow, What::Wake(end));
        }
    }

    fn step(&mut self, flow: usize, end: usize) {
        let now = self.now;
        match &mut self.flows[flow] {
            Flow::Blasts(blasts) => {
                let (packets, at) = blasts.poll(now, end);
                for packet in packets {
                    if let Some(arrival) = self.link.carry(now, end, packet.bytes()) {
                        self.plan(arrival, flow, What::Packet(1 - end, packet));
                    }
                }
                self.wake(flow, end, at);
            }
            Flow::Tcp(tcp) => {
                let (segments, at) = tcp.poll(now, end);
                for segment in segments {
                    if let Some(arrival) = self.link.carry(now, end, segment.bytes().into()) {
                        self.plan(arrival, flow, What::Segment(1 - end, segment));
                    }
                }
                self.wake(flow, end, at);
            }
        }
    }

    fn happen(&mut self, flow: usize, what: What) {
        let now = self.now;
        let end = match (&mut self.flows[flow], what) {
            (_, What::Wake(end)) => {
                if self.wakes[flow][end] != Some(now) {
                    return;
                }
                self.wakes[flow][end] = None;
                end
            }
            (Flow::Blasts(blasts), What::Packet(end, packet)) => {
                blasts.arrives(now, end, &packet);
                end
            }
            (Flow::Tcp(tcp), What::Segment(end, segment)) => {
                tcp.ends[end].handle(now, &segment);
                end
            }
            _ => return,
        };
        self.step(flow, end);
    }

    /// For so many seconds.
    pub(super) fn run(&mut self, seconds: f64) {
        let until = self.now + Duration::from_seconds(seconds);
        while let Some(&Reverse((at, _, place))) = self.events.peek()
            && at <= until
        {
            self.events.pop();
            self.now = at;
            self.free.push(place);
            if let Some((flow, what)) = self.things[place].take() {
                self.happen(flow, what);
            }
        }
        self.now = until;
    }
}

//! A path with a script: the test defines which packets are lost, and reads the output as lines of a trace.
//!
//! A line is `ms -> blast.round packet packet?`: the packets of a blast that leave at one instant, `?` after the one
//! that requests an answer, brackets around lost ones. Answers are `ms <- blast.round all` or `missing ..`; other
//! packets have their names. Every packet takes 1 ms. Packets to lose are named `>blast.round:packet`, `<blast.round`
//! or `>NAME`, once for each time.

use super::path::{Fate, Path, START, Sent};
use crate::blast::bitmap::Bitmap;
use crate::blast::wire::{ACK_REQUEST, BlastHeader, BlastPacketKind, COMPLETE, FIN, LIMIT};
use crate::blast::{BlastConnection, BlastOptions, BlastState, BlastStrategy, BlastTimeout};
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;
use stackline_core::time::{Duration, Instant};

pub(super) const MS: u64 = 1_000_000;
/// What loses everything from now on.
pub(super) const ALL: &str = "*";

type Hand = Box<dyn FnMut(usize, &BlastHeader) -> Fate>;

pub(super) struct Script {
    pub(super) path: Path<Hand>,
    losses: Rc<RefCell<Vec<String>>>,
    begin: Instant,
}

/// Blasts of so many packets of 1000 bytes under the paper's conditions: an interval of 10 ms, a receiver that only answers.
pub(super) fn fixed(strategy: BlastStrategy, packets: u32) -> BlastOptions {
    let interval = BlastTimeout::Fixed(Duration(10 * MS));
    BlastOptions {
        interval,
        nak_delay: None,
        ..BlastOptions::blast(strategy, 1000, 1000 * packets)
    }
}

impl Script {
    /// One side dials, nothing has left yet.
    pub(super) fn connecting(options: [BlastOptions; 2]) -> Self {
        let losses = Rc::new(RefCell::new(Vec::new()));
        let named = Rc::clone(&losses);
        let hand: Hand = Box::new(move |side, header| {
            if lost(&mut named.borrow_mut(), &name(side, header)) {
                Vec::new()
            } else {
                [Duration(MS)].to_vec()
            }
        });
        let mut path = Path::new(options, hand);
        path.log = Some(Vec::new());
        Self {
            path,
            losses,
            begin: START,
        }
    }

    /// A connection that is open; the time counts from now.
    pub(super) fn open(options: BlastOptions) -> Self {
        let mut script = Self::connecting([options; 2]);
        assert_eq!(script.until(2), ["0 -> Open", "1 <- Accept"]);
        script.begin = script.path.now;
        script
    }

    pub(super) fn lose(&self, names: &[&str]) {
        self.losses
            .borrow_mut()
            .extend(names.iter().map(ToString::to_string));
    }

    pub(super) fn end(&mut self, side: usize) -> &mut BlastConnection {
        &mut self.path.ends[side].connection
    }

    pub(super) fn state(&self, side: usize) -> BlastState {
        self.path.ends[side].connection.state()
    }

    pub(super) fn close(&mut self, side: usize) {
        let now = self.path.now;
        self.end(side).close(now);
    }

    /// The application of side 1 takes everything that has arrived.
    pub(super) fn take(&mut self) {
        let end = self.end(1);
        end.consume(end.receiver().delivered());
    }

    /// What leaves until `ms` after the beginning.
    pub(super) fn until(&mut self, ms: u64) -> Vec<String> {
        let last = self.begin + Duration(ms * MS);
        let mut steps = 0;
        while self.path.next().is_some_and(|at| at <= last) {
            self.path.step();
            steps += 1;
            assert!(steps < 1_000_000, "nothing ends until {ms} ms");
        }
        self.path.now = self.path.now.max(last);
        let sent = self.path.log.replace(Vec::new()).unwrap_or_default();
        lines(&sent, self.begin)
    }

    /// Side 0 sends `bytes`, what is named is lost, everything arrives until `ms`; the trace.
    pub(super) fn transfer(
        options: BlastOptions,
        bytes: u64,
        losses: &[&str],
        ms: u64,
    ) -> Vec<String> {
        let mut script = Self::open(options);
        script.lose(losses);
        script.path.send(0, bytes);
        let lines = script.until(ms);
        assert!(
            script.losses.borrow().is_empty(),
            "never sent: {:?} {lines:#?}",
            script.losses.borrow()
        );
        assert!(
            script.path.arrived(0, bytes) && script.end(0).sender().is_idle(),
            "{lines:#?}"
        );
        lines
    }
}

fn lost(losses: &mut Vec<String>, name: &str) -> bool {
    if losses.iter().any(|loss| loss == ALL) {
        return true;
    }
    let place = losses.iter().position(|loss| loss == name);
    place.map(|place| losses.remove(place)).is_some()
}

/// The name of a packet in the list of losses.
fn name(side: usize, header: &BlastHeader) -> String {
    let arrow = ['>', '<'][side];
    let BlastHeader {
        blast,
        round,
        index,
        ..
    } = header;
    match header.kind {
        BlastPacketKind::Data => format!("{arrow}{blast}.{round}:{index}"),
        BlastPacketKind::Answer if header.has(LIMIT) => format!("{arrow}limit"),
        BlastPacketKind::Answer => format!("{arrow}{blast}.{round}"),
        kind => format!("{arrow}{kind:?}"),
    }
}

fn lines(sent: &[Sent], begin: Instant) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut group = None;
    for packet in sent {
        let BlastHeader {
            blast,
            round,
            index,
            ..
        } = packet.header;
        let data = packet.header.kind == BlastPacketKind::Data;
        let this = data.then_some((packet.at, packet.side, blast, round));
        let word = if data {
            data_name(&packet.header, index)
        } else {
            control_name(packet)
        };
        let word = if packet.lost {
            format!("({word})")
        } else {
            word
        };
        match lines.last_mut().filter(|_| data && this == group) {
            Some(line) => *line += &format!(" {word}"),
            None => {
                let at = (packet.at - begin).0 as f64 / MS as f64;
                let arrow = ["->", "<-"][packet.side];
                let blast = if data {
                    format!("{blast}.{round} ")
                } else {
                    String::new()
                };
                lines.push(format!("{at} {arrow} {blast}{word}"));
            }
        }
        group = this;
    }
    lines
}

fn data_name(header: &BlastHeader, index: u16) -> String {
    let end = if header.has(FIN) { "end" } else { "" };
    let requests_ack = if header.has(ACK_REQUEST) { "?" } else { "" };
    format!(
        "{}{requests_ack}",
        if end.is_empty() {
            index.to_string()
        } else {
            end.to_string()
        }
    )
}

fn control_name(packet: &Sent) -> String {
    let BlastHeader {
        kind,
        blast,
        round,
        index,
        check,
        start,
        ..
    } = packet.header;
    match kind {
        BlastPacketKind::Answer if packet.header.has(LIMIT) => format!("limit {start}"),
        BlastPacketKind::Answer if packet.header.has(COMPLETE) => format!("{blast}.{round} all"),
        BlastPacketKind::Answer if packet.body.is_empty() => {
            format!("{blast}.{round} missing {index}..")
        }
        BlastPacketKind::Answer => {
            let missing_marks = Bitmap::from_answer(
                u32::from(index),
                &packet.body,
                u32::from(index) + 8 * packet.body.len() as u32,
            );
            let missing: Vec<String> = core::iter::successors(missing_marks.next(0, true), |at| {
                missing_marks.next(at + 1, true)
            })
            .map(|n| n.to_string())
            .collect();
            assert_eq!(missing.len(), check as usize);
            format!("{blast}.{round} missing {}", missing.join(" "))
        }
        kind => format!("{kind:?}"),
    }
}

//! A disk server's connection to its master: it joins, reports its disks, and carries out what the master says.

use super::{AGAIN, DiskServerShared, HEARTBEAT, LOOK, ServedDisk, now};
use crate::connection::{
    self, BlockConnectionEnd, BlockConnectionHalves, BlockMessageReceiver, BlockMessageSender,
};
use stackline_blocks::master::OWNERSHIP_HINT;
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_blocks::wire::master_messages::{Alive, DiskServerJoined, Join};
use stackline_blocks::wire::message::{Message, Why};
use stackline_blocks::wire::server_messages::DiskInfo;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a loader that connects before the master has answered this server is kept waiting.
const JOIN_ANSWER: Duration = Duration::from_secs(5);

/// The number that the master gives this server, or the error with the reason for a refusal.
fn joined_of(answer: Message) -> Result<DiskServerJoined, BlockConnectionEnd> {
    match answer {
        Message::Joined(joined) => Ok(joined),
        Message::Refused(refused) => {
            let hint = match Why::from_number(refused.why) {
                Why::Busy => " (hint: choose another name with --name)".to_owned(),
                Why::Foreign => {
                    format!("; nothing is written to the disk (hint: {OWNERSHIP_HINT})")
                }
                _ => String::new(),
            };
            Err(BlockConnectionEnd::Broken(format!(
                "the master refused this server: {}{hint}",
                refused.words
            )))
        }
        _ => Err(BlockConnectionEnd::Broken(
            "the master's answer is invalid".into(),
        )),
    }
}

impl DiskServerShared {
    /// Talks to the master until the server is stopped; connects again whenever the connection is lost.
    pub(super) fn talk_to_master(&self, address: SocketAddr) {
        let (mut wait, mut said) = (AGAIN.0, String::new());
        while !self.is_stopped() {
            let words = match connection::connect(
                &self.options.master,
                BlockPeerRole::Server,
                Some(&self.options.key),
                None,
            ) {
                Ok(halves) => {
                    let mut joined = false;
                    let ended = self.with_master(halves, address, &mut joined);
                    if joined {
                        (wait, said) = (AGAIN.0, String::new());
                    }
                    ended.err().map(|ended| ended.to_string())
                }
                Err(error) => {
                    let hint = error
                        .hint
                        .map(|hint| format!(" (hint: {hint})"))
                        .unwrap_or_default();
                    Some(format!("{}{hint}", error.message))
                }
            };
            if let Some(words) = words.filter(|words| *words != said) {
                (self.options.say)(&format!("{words}; retrying"));
                said = words;
            }
            thread::sleep(wait);
            wait = (wait * 2).min(AGAIN.1);
        }
    }

    /// Joins, and carries out the master's messages until the connection ends.
    fn with_master(
        &self,
        halves: BlockConnectionHalves,
        address: SocketAddr,
        is_joined: &mut bool,
    ) -> Result<(), BlockConnectionEnd> {
        let (mut receiver, mut sender) = halves;
        self.look_after_disks();
        sender.message(&self.describe_for_join(address).into())?;
        let joined = joined_of(receiver.message()?)?;
        *is_joined = true;
        self.note_joined(&joined);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let looking = scope.spawn(|| self.report_to_master(&mut sender, &over));
            let ended = self.carry_out_orders(&mut receiver);
            over.store(true, Ordering::Relaxed);
            looking.thread().unpark();
            match ended {
                _ if self.is_stopped() => Ok(()),
                BlockConnectionEnd::Closed => Err(BlockConnectionEnd::Broken(
                    "the master is gone; clients with an open set continue".into(),
                )),
                broken => Err(broken),
            }
        })
    }

    /// The message with which the server joins: its name, address and disks.
    fn describe_for_join(&self, address: SocketAddr) -> Join {
        let about = |slot: &ServedDisk| {
            let damaged = slot.damage().count();
            DiskInfo {
                damaged,
                ..slot.disk.about()
            }
        };
        Join {
            name: self.options.name.clone(),
            address: address.to_string(),
            disks: self.disks.iter().map(about).collect(),
            kept: self.disks.iter().map(|slot| slot.disk.kept()).collect(),
            adopt: self.adopts.load(Ordering::Relaxed),
        }
    }

    /// Records the number that the master gave, and makes the disks that master's.
    fn note_joined(&self, joined: &DiskServerJoined) {
        self.adopts.store(false, Ordering::Relaxed);
        let server = joined.server;
        self.id.store(server, Ordering::Relaxed);
        self.state().machine.set_id(server);
        (self.options.say)(&format!(
            "joined the master at {} as server {server}",
            self.options.master
        ));
        self.belong_to(joined.master);
        *self.joined_flag() = true;
        self.first_join.notify_all();
    }

    /// Waits until the server has joined. The master names the server to loaders as soon as it accepts it, so a loader may come before the
    /// master's answer.
    pub(super) fn wait_for_first_join(&self) {
        let _ = self
            .first_join
            .wait_timeout_while(self.joined_flag(), JOIN_ANSWER, |has_joined| !*has_joined);
    }

    fn joined_flag(&self) -> MutexGuard<'_, bool> {
        self.has_joined
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports periodically to the master that the server is alive, and changes of its disks, until `over` is set; then closes the
    /// connection.
    fn report_to_master(&self, sender: &mut BlockMessageSender, over: &AtomicBool) {
        let mut last_heartbeat = std::time::Instant::now();
        while !over.load(Ordering::Relaxed) && !self.is_stopped() {
            thread::park_timeout(LOOK);
            if last_heartbeat.elapsed() >= HEARTBEAT {
                last_heartbeat = std::time::Instant::now();
                let damaged = self.damaged();
                let _ = sender.message(&Alive { damaged }.into());
            }
            for change in self.look_after_disks() {
                let _ = sender.message(&change.into());
            }
        }
        let _ = sender.stream().shutdown(Shutdown::Both);
    }

    /// Carries out the master's messages until its connection ends.
    fn carry_out_orders(&self, receiver: &mut BlockMessageReceiver) -> BlockConnectionEnd {
        loop {
            match receiver.message() {
                Ok(Message::Requests(list)) => self.requests(list),
                Ok(Message::Forget(forget)) => {
                    let mut state = self.state();
                    let woken = state.machine.forget(forget.session);
                    self.wake(&state, &woken);
                }
                Ok(_) => {}
                Err(ended) => return ended,
            }
        }
    }

    /// Stores the master's identity on all disks, which has to be done before a block is written.
    fn belong_to(&self, master: u128) {
        for slot in &self.disks {
            let path = || slot.disk.about().path;
            match slot.disk.belong_to(master) {
                Ok(false) => {}
                Ok(true) => (self.options.say)(&format!(
                    "took over the disk {} from another master",
                    path()
                )),
                Err(error) => {
                    (self.options.say)(&format!(
                        "cannot write to disk {}: {error}; it is now read-only",
                        path()
                    ));
                }
            }
        }
    }

    pub(super) fn requests(
        &self,
        list: stackline_blocks::wire::server_messages::ServerBlockRequests,
    ) {
        let came = now();
        let mut state = self.state();
        match state.machine.requests(came, came, list) {
            Ok(woken) => self.wake(&state, &woken),
            Err(_) => {
                drop(state);
                if let Some(count) = self.refused.happened(std::time::Instant::now()) {
                    let words = "lists refused because their clients had too many requests pending or did not read";
                    (self.options.say)(&format!("{words}: {count}"));
                }
            }
        }
    }
}

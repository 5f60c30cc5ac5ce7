//! Disk servers that keep nothing and decide nothing: they join a master, take what a loader writes without keeping it, and
//! answer lists of a client with blocks from memory, each with one blocking write. No queue, no disk, no stamps, no flush.

use crate::BLOCK;
use crate::common::{ANYWHERE, Site};
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_blocks::wire::master_messages::{DiskOwnerRecord, Join};
use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::{
    Attached, BlockHead, DiskInfo, ServerBlockRequests, Synced,
};
use stackline_blockserver::connection::{self, BlockMessageReceiver, BlockMessageSender};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

/// The name of threads that serve.
pub(crate) const THREAD: &str = "bare";
/// Blocks in memory that are sent in turn.
const IN_MEMORY: usize = 1024;

/// Starts one that joins the site's master.
pub(crate) fn start(site: &Site, number: u16) {
    let listener = TcpListener::bind(SocketAddr::from(ANYWHERE)).unwrap();
    let (master, key) = (site.master.address().to_string(), site.key.clone());
    let (mut receiver, mut sender) =
        connection::connect(&master, BlockPeerRole::Server, Some(&key), None).unwrap();
    let disk = DiskInfo {
        identity: u128::from(number) + 1,
        path: "nowhere".into(),
        capacity: 1 << 40,
        used: 0,
        up: true,
        writable: true,
        damaged: 0,
    };
    let (name, address) = (
        format!("bare{number}"),
        listener.local_addr().unwrap().to_string(),
    );
    let kept = vec![DiskOwnerRecord {
        master: 0,
        used: 0,
        last_set: 0,
    }];
    sender
        .message(
            &Join {
                name,
                address,
                disks: vec![disk],
                kept,
                adopt: false,
            }
            .into(),
        )
        .unwrap();
    let Ok(Message::Joined(joined)) = receiver.message() else {
        panic!("the master does not take it")
    };
    thread::spawn(move || {
        while receiver.message().is_ok() {}
        drop(sender);
    });
    thread::spawn(move || {
        let memory = Arc::new(vec![1_u8; BLOCK * IN_MEMORY]);
        for stream in listener.incoming() {
            let (key, memory) = (key.clone(), Arc::clone(&memory));
            let serve = move || {
                let accepted = connection::accept_connection(stream.unwrap(), Some(&key), None);
                let Ok((role, (receiver, sender))) = accepted else {
                    return;
                };
                match role {
                    BlockPeerRole::Data => read(receiver, sender, joined.server, &memory),
                    _ => write(receiver, sender),
                }
            };
            thread::Builder::new()
                .name(THREAD.into())
                .spawn(serve)
                .unwrap();
        }
    });
}

fn read(
    mut receiver: BlockMessageReceiver,
    mut sender: BlockMessageSender,
    server: u16,
    memory: &[u8],
) {
    while let Ok(message) = receiver.message() {
        let sent = match message {
            Message::Requests(list) => blocks(&mut sender, &list, server, memory),
            _ => sender.message(
                &Attached {
                    server,
                    parts: false,
                }
                .into(),
            ),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn blocks(
    sender: &mut BlockMessageSender,
    list: &ServerBlockRequests,
    server: u16,
    memory: &[u8],
) -> std::io::Result<()> {
    for entry in &list.entries {
        let head = BlockHead {
            unit: list.first_unit + u64::from(entry.index),
            set: list.set,
            number: entry.number,
            serial: list.serial,
            length: entry.length,
            checksum: entry.checksum,
            server,
            disk: entry.disk,
            cached: true,
            app_send: 0,
            master_in: 0,
            master_out: 0,
            server_in: 0,
            start_read: 0,
            end_read: 0,
            start_write: 0,
            before: 0,
            before_end_write: 0,
        };
        let at = entry.number as usize % IN_MEMORY * BLOCK;
        sender.with_data(&head.into(), &memory[at..at + entry.length as usize])?;
    }
    Ok(())
}

fn write(mut receiver: BlockMessageReceiver, mut sender: BlockMessageSender) {
    let mut scratch = vec![0; BLOCK];
    loop {
        let done = match receiver.message() {
            Ok(Message::Store(store)) => {
                receiver.data(&mut scratch[..store.length as usize]).is_ok()
            }
            Ok(Message::Sync(sync)) => sender
                .message(
                    &Synced {
                        request: sync.request,
                    }
                    .into(),
                )
                .is_ok(),
            _ => false,
        };
        if !done {
            return;
        }
    }
}

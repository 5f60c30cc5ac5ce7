//! What the threads of chosen programs do: when they run on which core, wait, are woken and by whom, which blocking calls they
//! make, and the threads and processes they begin, which are followed too.
//!
//! The kernel writes records of the chosen threads alone (`set_event_pid`); a switch or a wake-up is written when either thread
//! of it is chosen, and the other's part is left out here. Calls that merely read, write, open or send are not traced, since
//! they are many. It stops nothing and sees no content. Each event costs the followed thread some 0.5 us; while it is on, every
//! call and wake-up of every other process takes some 0.2 us longer. To start and to stop takes up to 0.1 s each, since the
//! kernel then patches its own code.

mod decode;

use super::event_stream::{TraceEventDecoder, TraceEventRings};
use crate::kernel_trace::UndecodedTrace;
use decode::ThreadTraceKind;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

#[cfg(test)]
mod tests;

/// The list of threads whose records are written.
const CHOSEN: &str = "set_event_pid";
/// The greatest number that a thread can have on any machine.
const GREATEST_THREAD: u32 = (1 << 22) - 1;
/// Most times that the threads of a process are listed, until none is new.
const MOST_LISTS: usize = 20;
/// Most requests to disks that are kept until they end; when there are more, all are cleared.
const MOST_REQUESTS: usize = 1 << 16;

/// An event of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadEvent {
    /// When, on the clock of events, ns.
    pub at_ns: u64,
    /// The thread. The first thread of a process has the number of the process.
    pub thread: u32,
    /// What it did, or what happened to it.
    pub what: ThreadChange,
}

/// What a thread did, or what happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadChange {
    /// It runs.
    Runs {
        /// On this core.
        core: u32,
        /// Behind that thread, 0 for none.
        after: u32,
    },
    /// Its core goes on with another thread.
    Leaves {
        /// The state it is left in.
        state: Left,
    },
    /// Another wakes it; it may not even sleep yet.
    Woken {
        /// The thread that was running there, 0 for none; it need not be one that is followed.
        by: u32,
        /// Whether an interrupt was at work: then that thread need have nothing to do with it.
        in_interrupt: bool,
    },
    /// It waits for a core.
    Ready,
    /// It begins another thread, which is followed from now on.
    Forked {
        /// The new thread.
        child: u32,
        /// Whether it is one of a new process, where the kernel says it.
        is_process: Option<bool>,
    },
    /// It goes on with another program.
    Executes {
        /// The program's file, as it was given.
        name: String,
    },
    /// It ends.
    Exits {
        /// Whether its process ends with it.
        last: bool,
    },
    /// It makes a call.
    Calls {
        /// Which.
        call: Call,
        /// Its first argument: the descriptor, the address of the lock, the process it waits for.
        argument: u64,
    },
    /// A call returns.
    Returns {
        /// Which.
        call: Call,
        /// What it returns; a negative number is an error.
        result: i64,
    },
    /// It touched memory that was not there.
    Faults {
        /// The address.
        address: u64,
    },
    /// It hands a request to a disk. The kernel's own threads do so for others.
    DiskStarts {
        /// The device's number.
        device: u32,
        /// The first sector.
        sector: u64,
        /// Bytes.
        bytes: u32,
        /// What is done.
        operation: DiskOperation,
    },
    /// A request to a disk that it handed over is done.
    DiskEnds {
        /// The device's number.
        device: u32,
        /// The first sector.
        sector: u64,
    },
}

/// The state that a thread is in when it leaves its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// It would go on.
    Preempted,
    /// It sleeps, and a signal may wake it.
    Sleeping,
    /// It sleeps and no signal wakes it: as a rule it waits for a disk, else for a lock in the kernel, or for a child that shares
    /// its memory to execute a program.
    Disk,
    /// It is stopped, parked or traced.
    Stopped,
    /// It has ended.
    Dead,
}

/// What a disk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they say it")]
pub enum DiskOperation {
    Read,
    Write,
    Flush,
    Other,
}

/// A call that may block, or tells what a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "names of system calls")]
pub enum Call {
    Futex,
    FutexWait,
    FutexWaitv,
    Flock,
    Fsync,
    Fdatasync,
    Msync,
    Syncfs,
    Nanosleep,
    ClockNanosleep,
    EpollWait,
    EpollPwait,
    EpollPwait2,
    Poll,
    Ppoll,
    Select,
    Pselect6,
    Accept,
    Accept4,
    Connect,
    Wait4,
    Waitid,
    Vfork,
    Clone,
    Clone3,
    Recvfrom,
    Recvmsg,
}

impl Call {
    /// Those that are traced always, with their names in tracefs.
    const ALWAYS: [(Self, &'static str); 25] = [
        (Self::Futex, "futex"),
        (Self::FutexWait, "futex_wait"),
        (Self::FutexWaitv, "futex_waitv"),
        (Self::Flock, "flock"),
        (Self::Fsync, "fsync"),
        (Self::Fdatasync, "fdatasync"),
        (Self::Msync, "msync"),
        (Self::Syncfs, "syncfs"),
        (Self::Nanosleep, "nanosleep"),
        (Self::ClockNanosleep, "clock_nanosleep"),
        (Self::EpollWait, "epoll_wait"),
        (Self::EpollPwait, "epoll_pwait"),
        (Self::EpollPwait2, "epoll_pwait2"),
        (Self::Poll, "poll"),
        (Self::Ppoll, "ppoll"),
        (Self::Select, "select"),
        (Self::Pselect6, "pselect6"),
        (Self::Accept, "accept"),
        (Self::Accept4, "accept4"),
        (Self::Connect, "connect"),
        (Self::Wait4, "wait4"),
        (Self::Waitid, "waitid"),
        (Self::Vfork, "vfork"),
        (Self::Clone, "clone"),
        (Self::Clone3, "clone3"),
    ];
    /// Those that receive.
    const RECEIVES: [(Self, &'static str); 2] =
        [(Self::Recvfrom, "recvfrom"), (Self::Recvmsg, "recvmsg")];
}

/// What is traced besides switches, wake-ups, births, ends and blocking calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Also {
    /// `recvfrom` and `recvmsg`: then a thread that sleeps in one is known to wait for a socket.
    pub receives: bool,
    /// Page faults.
    pub page_faults: bool,
    /// Requests to disks, of all threads of the machine: their end comes in whichever thread is running.
    pub disk: bool,
}

/// The events of chosen programs, from when it starts until it is dropped.
pub struct ThreadTrace {
    rings: TraceEventRings<ThreadTraceKind>,
    disk: Option<TraceEventRings<ThreadTraceKind>>,
    /// Threads that were chosen since the last reading.
    chosen: Vec<u32>,
}

/// What was read of them.
#[derive(Debug, Default)]
pub struct UndecodedThreads {
    events: UndecodedTrace,
    disk: Option<UndecodedTrace>,
    /// Threads that were chosen before this reading, and not before another.
    chosen: Vec<u32>,
    /// The threads that are followed, where records were lost: the birth of a thread may be among them.
    followed: Vec<u32>,
}

impl UndecodedThreads {
    /// Records the kernel lost since the reading before.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.events.lost + self.disk.as_ref().map_or(0, |disk| disk.lost)
    }

    /// How many bytes of memory that is.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.events.bytes() + self.disk.as_ref().map_or(0, UndecodedTrace::bytes)
    }

    /// Forgets what was read, but keeps its memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.disk.iter_mut().for_each(UndecodedTrace::clear);
        self.chosen.clear();
        self.followed.clear();
    }
}

/// What decodes them.
pub struct ThreadEventDecoder {
    events: TraceEventDecoder<ThreadTraceKind, ThreadEvent>,
    disk: Option<TraceEventDecoder<ThreadTraceKind, ThreadEvent>>,
    followed: HashSet<u32>,
    /// The thread that handed over each request of a disk.
    requests: HashMap<(u32, u64), u32>,
}

/// The last number that a thread can have here, which hardly one ever has: with an empty list the kernel would write records of
/// all threads, and older kernels refuse numbers above this one.
fn last_thread() -> u32 {
    let limit = fs::read_to_string("/proc/sys/kernel/pid_max");
    let limit = limit.ok().and_then(|text| text.trim().parse().ok());
    GREATEST_THREAD.min(limit.unwrap_or(u32::MAX).saturating_sub(1))
}

impl ThreadTrace {
    /// Follows these processes, with all their threads and whatever they begin. The second value says what is not there: events
    /// that this kernel lacks, processes that have ended.
    ///
    /// # Errors
    /// Where there is no tracefs, or not for this user, or the kernel does not say which threads run.
    pub fn start(pids: &[u32], also: Also) -> Result<(Self, BTreeMap<String, String>), String> {
        let mut trace = Self {
            rings: TraceEventRings::create()?,
            disk: None,
            chosen: Vec::new(),
        };
        let mut absent = BTreeMap::new();
        // Before any event, so that none of another thread is written.
        let instance = trace.rings.rings().instance();
        instance.write(CHOSEN, &last_thread().to_string())?;
        instance.write("options/event-fork", "1")?;
        for pid in pids {
            if let Err(reason) = trace.follow(*pid) {
                absent.insert(format!("process {pid}"), reason);
            }
        }
        trace.switch_on(also, &mut absent);
        if absent.contains_key("sched/sched_switch") {
            return Err("this kernel does not report which threads are running".into());
        }
        if also.disk {
            trace.disk = disk(&mut absent);
        }
        Ok((trace, absent))
    }

    fn switch_on(&mut self, also: Also, absent: &mut BTreeMap<String, String>) {
        let mut add = |kind, name: &str, fields: &[&str]| {
            let added = self.rings.add(kind, name, "", fields);
            added
                .map_err(|reason| absent.insert(name.to_owned(), reason))
                .is_ok()
        };
        add(
            ThreadTraceKind::Switch,
            "sched/sched_switch",
            &["prev_pid", "prev_state", "next_pid"],
        );
        add(ThreadTraceKind::Woken, "sched/sched_waking", &["pid"]);
        add(ThreadTraceKind::Ready, "sched/sched_wakeup", &["pid"]);
        add(ThreadTraceKind::Ready, "sched/sched_wakeup_new", &["pid"]);
        // Only the first says whether the thread is of the same process.
        if !add(
            ThreadTraceKind::Begins,
            "task/task_newtask",
            &["pid", "clone_flags"],
        ) {
            add(
                ThreadTraceKind::Forks,
                "sched/sched_process_fork",
                &["child_pid"],
            );
        }
        add(
            ThreadTraceKind::Executes,
            "sched/sched_process_exec",
            &["filename", "pid"],
        );
        add(ThreadTraceKind::Exits, "sched/sched_process_exit", &["pid"]);
        if also.page_faults {
            add(
                ThreadTraceKind::Faults,
                "exceptions/page_fault_user",
                &["address"],
            );
        }
        self.switch_on_calls(also, absent);
    }

    /// A call of which a kernel has no event is one that it does not have, unless it has no event of any.
    fn switch_on_calls(&mut self, also: Also, absent: &mut BTreeMap<String, String>) {
        let receives = Call::RECEIVES.into_iter().filter(|_| also.receives);
        let mut added = 0;
        for (call, name) in Call::ALWAYS.into_iter().chain(receives) {
            let (enter, exit) = (
                format!("syscalls/sys_enter_{name}"),
                format!("syscalls/sys_exit_{name}"),
            );
            let enters = self
                .rings
                .add(ThreadTraceKind::Calls(call), &enter, "", &[]);
            let returns = self
                .rings
                .add(ThreadTraceKind::Returns(call), &exit, "", &["ret"]);
            added += u32::from(enters.is_ok() && returns.is_ok());
        }
        if added == 0 {
            let why = "this kernel does not report them (needs CONFIG_FTRACE_SYSCALLS), so the reasons for waits are not distinguished";
            absent.insert("system calls".into(), why.into());
        }
    }

    /// Follows another process from now on, with all its threads and whatever they begin. Its number is the kernel's: this process is
    /// of the first namespace.
    ///
    /// # Errors
    /// When there is no such process, or the kernel refuses.
    pub fn follow(&mut self, pid: u32) -> Result<(), String> {
        let mut known = HashSet::new();
        // A thread begun by one that is not chosen yet is found in the next list.
        for _ in 0..MOST_LISTS {
            let new: Vec<u32> = threads_of(pid)?
                .into_iter()
                .filter(|thread| known.insert(*thread))
                .collect();
            if new.is_empty() {
                break;
            }
            self.follow_threads(&new)?;
        }
        Ok(())
    }

    /// Follows more threads from now on, by the kernel's numbers, and whatever they begin.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn follow_threads(&mut self, threads: &[u32]) -> Result<(), String> {
        let words: Vec<String> = threads.iter().map(u32::to_string).collect();
        self.rings
            .rings()
            .instance()
            .append(CHOSEN, &words.join("\n"))?;
        self.chosen.extend(threads);
        Ok(())
    }

    /// Reads what was recorded since the last call: every 10 ms or so, before the rings are full. It decodes nothing.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn read(&mut self, into: &mut UndecodedThreads) -> Result<(), String> {
        into.clear();
        into.chosen.append(&mut self.chosen);
        self.rings.read(&mut into.events)?;
        if into.events.lost > 0 {
            let chosen = self.rings.rings().instance().read(CHOSEN)?;
            into.followed.extend(listed(&chosen));
        }
        if let Some(disk) = &mut self.disk {
            disk.read(into.disk.get_or_insert_default())?;
        }
        Ok(())
    }

    /// What decodes the events that are switched on by now, of the threads that are chosen before each reading and what they begin.
    #[must_use]
    pub fn decoder(&self) -> ThreadEventDecoder {
        ThreadEventDecoder {
            events: self.rings.decoder(),
            disk: self.disk.as_ref().map(TraceEventRings::decoder),
            followed: HashSet::new(),
            requests: HashMap::new(),
        }
    }
}

impl ThreadEventDecoder {
    /// Adds the events of what was read to `out`, in the order of time.
    pub fn decode(&mut self, read: &UndecodedThreads, out: &mut Vec<ThreadEvent>) {
        let Self {
            events,
            disk,
            followed,
            requests,
        } = self;
        followed.extend(&read.chosen);
        let before = out.len();
        let take = |at_ns, event| out.extend(of_followed(followed, ThreadEvent { at_ns, ..event }));
        let until_ns = events.decode(&read.events, u64::MAX, decode::decode, take);
        followed.extend(&read.followed);
        if let (Some(disk), Some(read)) = (disk, &read.disk) {
            let take = |at_ns, event| {
                out.extend(with_its_thread(requests, ThreadEvent { at_ns, ..event }))
            };
            disk.decode(read, until_ns, decode::decode, take);
            out[before..].sort_by_key(|event| event.at_ns);
        }
    }
}

/// The requests of all threads, in an instance that chooses none.
fn disk(absent: &mut BTreeMap<String, String>) -> Option<TraceEventRings<ThreadTraceKind>> {
    let fields = ["dev", "sector"];
    let rings = TraceEventRings::create().and_then(|mut rings| {
        rings.add(
            ThreadTraceKind::DiskEnds,
            "block/block_io_done",
            "",
            &fields,
        )?;
        rings.add(
            ThreadTraceKind::DiskStarts,
            "block/block_io_start",
            "",
            &fields,
        )?;
        Ok(rings)
    });
    rings
        .map_err(|reason| absent.insert("block/block_io_start".into(), reason))
        .ok()
}

/// Leaves out threads that are not followed, and follows those that are begun.
fn of_followed(followed: &mut HashSet<u32>, event: ThreadEvent) -> Option<ThreadEvent> {
    if !followed.contains(&event.thread) {
        // A thread that is not its process's first takes the number of the first with the new program.
        let executes = matches!(event.what, ThreadChange::Executes { .. });
        executes.then(|| followed.insert(event.thread))?;
    }
    match event.what {
        ThreadChange::Forked { child, .. } => {
            followed.insert(child);
        }
        ThreadChange::Leaves { state: Left::Dead } => {
            followed.remove(&event.thread);
        }
        _ => {}
    }
    Some(event)
}

/// The end of a request is its beginner's event; one begun before is left out.
fn with_its_thread(
    requests: &mut HashMap<(u32, u64), u32>,
    event: ThreadEvent,
) -> Option<ThreadEvent> {
    match event.what {
        ThreadChange::DiskStarts { device, sector, .. } => {
            if requests.len() >= MOST_REQUESTS {
                requests.clear();
            }
            requests.insert((device, sector), event.thread);
            Some(event)
        }
        ThreadChange::DiskEnds { device, sector } => Some(ThreadEvent {
            thread: requests.remove(&(device, sector))?,
            ..event
        }),
        _ => None,
    }
}

/// The threads of a process now.
fn threads_of(pid: u32) -> Result<Vec<u32>, String> {
    let entries =
        fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| "no such process".to_owned())?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}

/// Numbers, one a line.
fn listed(text: &str) -> impl Iterator<Item = u32> {
    text.lines().filter_map(|line| line.trim().parse().ok())
}

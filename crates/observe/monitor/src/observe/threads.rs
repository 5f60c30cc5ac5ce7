//! The trace events of the threads of chosen programs: when they run on which core, wait, are woken and by whom, which blocking
//! calls they make, and which threads and processes they start, which are followed too.
//!
//! The kernel writes records of the chosen threads only (`set_event_pid`). A switch or wake-up is written if either of its threads
//! is chosen; the other thread's part is left out here. Calls that only read, write, open or send are not traced, since they are
//! many. No thread is stopped, and no contents are seen. Each event costs the followed thread about 0.5 us; while tracing is on,
//! every call and wake-up of every other process takes about 0.2 us longer. Starting and stopping take up to 0.1 s each, since the
//! kernel then patches its own code.

mod decode;

use super::event_stream::{TraceEventDecoder, TraceEventRings};
use crate::kernel_trace::UndecodedTrace;
use decode::ThreadTraceKind;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

#[cfg(test)]
mod tests;

/// The file of the trace instance that lists the threads whose records are written.
const CHOSEN: &str = "set_event_pid";
/// The greatest number that a thread can have on any machine.
const GREATEST_THREAD: u32 = (1 << 22) - 1;
/// How often at most the threads of a process are listed, until no new one is found.
const MOST_LISTS: usize = 20;
/// The most disk requests that are kept until they end; when there are more, all are forgotten.
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
    /// It begins to run on a core.
    Runs {
        /// The core.
        core: u32,
        /// The thread that ran there before; 0 for none.
        after: u32,
    },
    /// Its core changes to another thread.
    Leaves {
        /// The state it is left in.
        state: Left,
    },
    /// It is woken; it may not sleep yet.
    Woken {
        /// The thread that was running where the wake-up came from, 0 for none; it may be one that is not followed.
        by: u32,
        /// Whether an interrupt was being handled: then that thread may have nothing to do with the wake-up.
        in_interrupt: bool,
    },
    /// It has become runnable and waits for a core.
    Ready,
    /// It starts another thread, which is followed from now on.
    Forked {
        /// The new thread.
        child: u32,
        /// Whether it belongs to a new process, if the kernel reports that.
        is_process: Option<bool>,
    },
    /// It executes another program.
    Executes {
        /// The path of the program's file, as it was given.
        name: String,
    },
    /// It ends.
    Exits {
        /// Whether its process ends with it.
        last: bool,
    },
    /// It enters a system call.
    Calls {
        /// The call.
        call: Call,
        /// The call's first argument: the descriptor, the address of the lock, or the process it waits for.
        argument: u64,
    },
    /// A system call returns.
    Returns {
        /// The call.
        call: Call,
        /// Its result; a negative number is an error.
        result: i64,
    },
    /// It accessed memory that was not mapped in (a page fault).
    Faults {
        /// The address.
        address: u64,
    },
    /// It submits a request to a disk. The kernel's own threads do so for other threads.
    DiskStarts {
        /// The device's number.
        device: u32,
        /// The first sector.
        sector: u64,
        /// The bytes to transfer.
        bytes: u32,
        /// The kind of the request.
        operation: DiskOperation,
    },
    /// A disk request that it submitted is done.
    DiskEnds {
        /// The device's number.
        device: u32,
        /// The first sector.
        sector: u64,
    },
}

/// The state in which a thread leaves its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// It is still runnable.
    Preempted,
    /// It sleeps, and a signal may wake it.
    Sleeping,
    /// It sleeps and no signal wakes it: usually it waits for a disk, else for a lock in the kernel, or for a child that shares its
    /// memory to execute a program.
    Disk,
    /// It is stopped, parked or traced.
    Stopped,
    /// It has ended.
    Dead,
}

/// The kind of a disk request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they say it")]
pub enum DiskOperation {
    Read,
    Write,
    Flush,
    Other,
}

/// A system call that may block, or that shows what a wait is for.
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
    /// The calls that are always traced, with their names in tracefs.
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
    /// The receiving calls, which are traced if [`Also::receives`].
    const RECEIVES: [(Self, &'static str); 2] =
        [(Self::Recvfrom, "recvfrom"), (Self::Recvmsg, "recvmsg")];
}

/// What is traced besides switches, wake-ups, starts and ends of threads, and blocking calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Also {
    /// The calls `recvfrom` and `recvmsg`: then a thread that sleeps in one is known to wait for a socket.
    pub receives: bool,
    /// Page faults.
    pub page_faults: bool,
    /// Disk requests, of all threads of the machine: the end of a request is recorded for whichever thread is running.
    pub disk: bool,
}

/// The events of chosen programs, from when it starts until it is dropped.
pub struct ThreadTrace {
    rings: TraceEventRings<ThreadTraceKind>,
    /// The instance for disk requests, in which no thread is chosen.
    disk: Option<TraceEventRings<ThreadTraceKind>>,
    /// Threads that were chosen since the last reading.
    chosen: Vec<u32>,
}

/// The records of one reading.
#[derive(Debug, Default)]
pub struct UndecodedThreads {
    events: UndecodedTrace,
    disk: Option<UndecodedTrace>,
    /// Threads that were chosen since the reading before.
    chosen: Vec<u32>,
    /// If records were lost, all threads that are followed, as the start of a thread may be among the lost records.
    followed: Vec<u32>,
}

impl UndecodedThreads {
    /// How many records the kernel lost since the reading before.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.events.lost + self.disk.as_ref().map_or(0, |disk| disk.lost)
    }

    /// Its approximate size in memory, bytes.
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

/// Decodes the events of chosen threads.
pub struct ThreadEventDecoder {
    events: TraceEventDecoder<ThreadTraceKind, ThreadEvent>,
    disk: Option<TraceEventDecoder<ThreadTraceKind, ThreadEvent>>,
    followed: HashSet<u32>,
    /// The thread that submitted each disk request, by device and first sector.
    requests: HashMap<(u32, u64), u32>,
}

/// The highest number that a thread can have here, which hardly one ever has. It is the first entry of the list: with an empty list
/// the kernel would write records of all threads, and older kernels refuse higher numbers.
fn last_thread() -> u32 {
    let limit = fs::read_to_string("/proc/sys/kernel/pid_max");
    let limit = limit.ok().and_then(|text| text.trim().parse().ok());
    // `pid_max` is one above the greatest number (proc(5)).
    GREATEST_THREAD.min(limit.unwrap_or(u32::MAX).saturating_sub(1))
}

impl ThreadTrace {
    /// Follows these processes, with all their threads and all that they start. The second value says what is missing and why:
    /// events that this kernel lacks, processes that have ended.
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
        // The list is set before any event is switched on, so that no records of other threads are written.
        let instance = trace.rings.rings().instance();
        instance.write(CHOSEN, &last_thread().to_string())?;
        // The kernel then adds the children of chosen threads to the list by itself.
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
        // Only the first of these two events says whether the new thread is in the same process.
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

    /// Switches the events of calls on. A call without an event does not exist in this kernel, unless no call has one.
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

    /// Follows another process from now on, with all its threads and all that they start. `pid` is the kernel's number, so this
    /// process must be in the first PID namespace.
    ///
    /// # Errors
    /// When there is no such process, or the kernel refuses.
    pub fn follow(&mut self, pid: u32) -> Result<(), String> {
        let mut known = HashSet::new();
        // A thread that was started by one that was not chosen yet is found in the next list.
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

    /// Follows more threads from now on, given by the kernel's numbers, and all that they start.
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

    /// Reads the records since the last call, without decoding them. It should be called about every 10 ms, before the rings are
    /// full.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn read(&mut self, into: &mut UndecodedThreads) -> Result<(), String> {
        into.clear();
        into.chosen.append(&mut self.chosen);
        self.rings.read(&mut into.events)?;
        // A fork may be among what was lost: the kernel's own list knows the child.
        if into.events.lost > 0 {
            let chosen = self.rings.rings().instance().read(CHOSEN)?;
            into.followed.extend(listed(&chosen));
        }
        if let Some(disk) = &mut self.disk {
            disk.read(into.disk.get_or_insert_default())?;
        }
        Ok(())
    }

    /// The decoder for the events that are switched on so far, of the threads that are chosen before each reading and all that they
    /// start.
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
    /// Decodes a reading and adds its events to `out`, in order of time.
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

/// Starts the trace of disk requests of all threads; `absent` gets why it is not possible.
fn disk(absent: &mut BTreeMap<String, String>) -> Option<TraceEventRings<ThreadTraceKind>> {
    let fields = ["dev", "sector"];
    let rings = TraceEventRings::create().and_then(|mut rings| {
        // The ends first, so that no start is seen whose end is not.
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

/// Drops the events of threads that are not followed, and follows the threads that followed ones start.
fn of_followed(followed: &mut HashSet<u32>, event: ThreadEvent) -> Option<ThreadEvent> {
    if !followed.contains(&event.thread) {
        // If a thread other than its process's first executes a program, it takes the number of the first.
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

/// Assigns the end of a disk request to the thread that submitted it; if the beginning was not seen, the end is dropped.
fn with_its_thread(
    requests: &mut HashMap<(u32, u64), u32>,
    event: ThreadEvent,
) -> Option<ThreadEvent> {
    match event.what {
        ThreadChange::DiskStarts { device, sector, .. } => {
            // Requests whose end was lost must not stay forever.
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

/// The present threads of a process.
fn threads_of(pid: u32) -> Result<Vec<u32>, String> {
    let entries =
        fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| "no such process".to_owned())?;
    Ok(entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect())
}

/// Parses numbers, one a line.
fn listed(text: &str) -> impl Iterator<Item = u32> {
    text.lines().filter_map(|line| line.trim().parse().ok())
}

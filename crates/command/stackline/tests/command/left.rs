//! Nothing is left behind: not by programs of a trace that ended well, and not by commands that are killed at any moment.
//!
//! `STACKLINE_CENSUS_KILLS` says how many kills there are, `STACKLINE_CENSUS_SEED` which.

use crate::support::{PATIENCE, Place, Process, program, skip, until};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[test]
fn what_a_traced_program_leaves_in_other_groups_and_sessions_ends_with_the_trace() {
    let place = Place::new();
    let leaves = "sleep 600 & setsid sleep 600 & (setsid sh -c 'trap \"\" TERM; sleep 600 & wait' &) ; sleep 0.2; exit 7";
    let ended = place.stackline(&["trace", "--see", "packets", "--", "sh", "-c", leaves]);
    if ended.status.code() == Some(3) {
        return skip(&ended.err);
    }
    // That no process of the place is left, `finish` has seen.
    assert_eq!(ended.status.code(), Some(7), "{}", ended.err);
}

/// What is killed.
#[derive(Clone, Copy, Debug)]
enum Kill {
    /// A signal to the process that was started.
    Signal(Signal),
    /// SIGKILL to the process that does the work, or to the keeper between.
    Worker,
    Keeper,
    /// SIGKILL to the whole process group that a shell knows.
    Group,
    /// SIGKILL to any one of its processes (an agent, an emulator, a program), then SIGTERM to the one that was started.
    Any(u64),
}

const KILLS: [Kill; 11] = [
    Kill::Signal(Signal::SIGINT),
    Kill::Signal(Signal::SIGTERM),
    Kill::Signal(Signal::SIGHUP),
    Kill::Signal(Signal::SIGKILL),
    Kill::Signal(Signal::SIGKILL),
    Kill::Worker,
    Kill::Worker,
    Kill::Keeper,
    Kill::Group,
    Kill::Any(0),
    Kill::Any(0),
];

/// Longest time until a kill: by then all of these have made all that they make.
const LATEST: Duration = Duration::from_millis(1500);

/// Commands that make something, in words; `NETWORK` is a file with a network of its name, `TEXT` a measurement across it, `SLEEPS`
/// a program with children in other groups and sessions.
const COMMANDS: [&str; 13] = [
    "trace here -- sh -c SLEEPS here -- sh -c SLEEPS",
    "trace --see packets --decipher -- sh -c SLEEPS",
    "trace --see ptrace -- sh -c SLEEPS",
    "trace --decipher --on NETWORK a -- sh -c SLEEPS b -- sh -c SLEEPS",
    "net exec NETWORK a -- sh -c SLEEPS",
    "run -e RUNS --trace",
    "run --trace -e TEXT",
    "factors -e TEXT -f FACTOR --replicates 3",
    "factors --on NETWORK -f FACTOR a -- sh -c SLEEPS b -- sh -c SLEEPS",
    "blocks replay --across NETWORK --in emulated --server a --client b --no-history",
    "watch --keep watched",
    "reproduce magic --in emulated --sessions 1",
    "reproduce blast",
];

#[test]
fn a_census_after_kills_at_random_moments_finds_nothing() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let kills = number("STACKLINE_CENSUS_KILLS").unwrap_or(60);
    let seed = number("STACKLINE_CENSUS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("STACKLINE_CENSUS_SEED={seed}");
    let mut state = seed;
    // splitmix64
    let mut random = |below: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    };
    let mut drawn: Vec<(usize, Kill, Duration)> = Vec::new();
    for count in 0..usize::try_from(kills).unwrap() {
        let what = match KILLS[usize::try_from(random(KILLS.len() as u64)).unwrap()] {
            Kill::Any(_) => Kill::Any(random(64)),
            other => other,
        };
        // Half of them early, when things are being made.
        let range = if random(2) == 0 { LATEST / 5 } else { LATEST };
        let after = Duration::from_micros(random(u64::try_from(range.as_micros()).unwrap()));
        drawn.push((count, what, after));
    }
    let next = AtomicUsize::new(0);
    // Most of the time is waited: several at once, each in a place of its own.
    let kills_of_a_thread = || {
        let mut slowest = (Duration::ZERO, String::new());
        while let Some((count, what, after)) = drawn.get(next.fetch_add(1, Ordering::Relaxed)) {
            let census = Census::new();
            // Each kind of command in its turn, whatever is drawn.
            let command = census.words(COMMANDS[count % COMMANDS.len()]);
            let took = census.kill(&command, *what, *after);
            let case = format!("{what:?} after {after:?} of {}", command.join(" "));
            slowest = slowest.max((took, case));
        }
        slowest
    };
    let slowest = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(kills_of_a_thread));
        threads
            .map(|thread| thread.join().unwrap())
            .into_iter()
            .max()
    })
    .unwrap();
    eprintln!(
        "{kills} kills, nothing left; all gone at the latest {:?} after a kill: {}",
        slowest.0, slowest.1
    );
}

/// A place with a network of a name that no other has.
struct Census {
    place: Place,
    network: PathBuf,
    name: String,
    /// tracefs, mounted nowhere else; root's alone.
    tracing: Option<OwnedFd>,
}

fn tracefs() -> rustix::io::Result<OwnedFd> {
    let filesystem = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&filesystem)?;
    fsmount(
        &filesystem,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

impl Census {
    fn new() -> Self {
        let place = Place::new();
        let directory = place
            .path("x")
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let name = format!(
            "census{}",
            directory.replace(|c: char| !c.is_ascii_alphanumeric(), "")
        );
        let text = format!(
            "network {name} {{ host a {{ share 50%; }} host b; link a - b 10 Mbit/s 1 ms; }}\n"
        );
        let network = place.write(&format!("{name}.stackline"), text);
        fs::create_dir(place.path("tmp")).unwrap();
        Self {
            place,
            network,
            name,
            tracing: tracefs().ok(),
        }
    }

    /// A command's arguments.
    fn words(&self, line: &str) -> Vec<String> {
        let text = fs::read_to_string(&self.network).unwrap();
        let name = &self.name;
        let word = |word: &str| match word {
            "NETWORK" => self.network.to_str().unwrap().to_owned(),
            "TEXT" => {
                format!("{text} 1 from a to b bulk_put 1000*1000000 across {name} in emulated")
            }
            "RUNS" => "100000 rr 32*200 over tcp".to_owned(),
            "FACTOR" => "delay x 0.5".to_owned(),
            "SLEEPS" => "sleep 600 & setsid sleep 600 & sleep 600".to_owned(),
            other => other.to_owned(),
        };
        line.split(' ').map(word).collect()
    }

    /// Starts a command, kills it, waits until nothing of it is left: how long that took.
    fn kill(&self, words: &[String], what: Kill, after: Duration) -> Duration {
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        // Whoever runs this may ignore some signals, and programs inherit that.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP,INT,QUIT,TERM", program()])
            .args(&arguments);
        command
            .current_dir(self.place.path(""))
            .env("STACKLINE_RUNS", self.place.path("runs"));
        command
            .env("TMPDIR", self.place.path("tmp"))
            .process_group(0);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(after);
        let mut seen: BTreeSet<Process> = self.place.processes().into_iter().collect();
        send(&child, what, &seen);
        let killed = Instant::now();
        let mut left = Vec::new();
        let gone = until_gone(&mut child, || {
            seen.extend(self.place.processes());
            left = self.left(&seen);
            left.is_empty()
        });
        let case = format!("{what:?} after {after:?} of {}", words.join(" "));
        assert!(
            gone,
            "{case}: it goes on, or left: {left:#?}; {:#?}",
            self.place
                .processes()
                .into_iter()
                .map(state)
                .collect::<Vec<_>>()
        );
        killed.elapsed()
    }

    /// What there is of the command on the machine.
    fn left(&self, seen: &BTreeSet<Process>) -> Vec<String> {
        let processes = self
            .place
            .processes()
            .into_iter()
            .map(|process| format!("process {} {}", process.0, line(process)));
        let files = entries(&self.place.path("tmp"))
            .into_iter()
            .map(|name| format!("TMPDIR/{name}"));
        // Those of other tests have the numbers of other processes.
        let ours = |name: &String| {
            let number = name
                .strip_prefix("stackline-")
                .and_then(|rest| rest.split('-').next()?.parse().ok());
            number.is_some_and(|number| seen.contains(&Process(number)))
        };
        let instances = self.tracing.iter().flat_map(|tracing| {
            entries(Path::new(&format!(
                "/proc/self/fd/{}/instances",
                tracing.as_raw_fd()
            )))
        });
        let instances = instances
            .filter(ours)
            .map(|name| format!("trace instance {name}"));
        let groups = [
            "/sys/fs/cgroup",
            "/sys/fs/cgroup/cpu",
            "/sys/fs/cgroup/cpu,cpuacct",
        ];
        let groups = groups
            .into_iter()
            .flat_map(|at| entries(Path::new(at)))
            .filter(ours)
            .map(|name| format!("control group {name}"));
        let sockets = fs::read_to_string("/proc/net/unix").unwrap();
        let sockets = sockets
            .lines()
            .filter(|line| line.contains(&self.name))
            .map(|line| format!("socket {line}"));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = self.place.path("").display().to_string();
        let mounts = mounts
            .lines()
            .filter(|line| line.contains(&place))
            .map(|line| format!("mount {line}"));
        let memory = entries(Path::new("/dev/shm"))
            .into_iter()
            .filter(|name| name.contains(&self.name) || ours(name));
        let named = entries(Path::new("/run/netns"))
            .into_iter()
            .filter(|name| name.contains(&self.name) || ours(name));
        let rest = instances.chain(groups).chain(memory).chain(named);
        processes
            .chain(files)
            .chain(sockets)
            .chain(mounts)
            .chain(rest)
            .collect()
    }
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// What a process does, and which signals wait for it.
fn state(process: Process) -> String {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/{}/{name}", process.0)).unwrap_or_default();
    let status = read("status");
    let fields = status.lines().filter(|line| {
        ["State", "PPid", "Sig", "ShdPnd"]
            .iter()
            .any(|name| line.starts_with(name))
    });
    let fields = fields.collect::<Vec<_>>().join(", ").replace('\t', " ");
    format!(
        "{} {}: {fields}, in {}, {}",
        process.0,
        process.name(),
        read("wchan"),
        read("syscall").trim()
    )
}

fn line(process: Process) -> String {
    let line = fs::read(format!("/proc/{}/cmdline", process.0)).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// The keeper between and the worker, where there are any already.
fn kept(child: &Child, seen: &BTreeSet<Process>) -> (Option<Process>, Option<Process>) {
    let of = |parent: i32| {
        seen.iter()
            .copied()
            .find(|process| process.parent() == Some(parent))
    };
    let keeper =
        of(i32::try_from(child.id()).unwrap()).filter(|process| process.name() == "sl-keeper");
    (keeper, keeper.and_then(|keeper| of(keeper.0)))
}

/// Kills; where there is no such process yet, or no more, the one that was started.
fn send(child: &Child, what: Kill, seen: &BTreeSet<Process>) {
    let first = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let or_first =
        |process: Option<Process>| process.map_or(first, |process| Pid::from_raw(process.0));
    let (keeper, worker) = kept(child, seen);
    // Whoever has ended meanwhile is gone.
    let _ = match what {
        Kill::Signal(signal) => kill(first, signal),
        Kill::Worker => kill(or_first(worker), Signal::SIGKILL),
        Kill::Keeper => kill(or_first(keeper), Signal::SIGKILL),
        Kill::Group => killpg(first, Signal::SIGKILL),
        Kill::Any(number) => {
            let one = seen
                .iter()
                .nth(usize::try_from(number).unwrap() % seen.len().max(1));
            kill(or_first(one.copied()), Signal::SIGKILL).and(kill(first, Signal::SIGTERM))
        }
    };
}

/// Whether everything is gone before long.
fn until_gone(child: &mut Child, mut is_gone: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    let mut ended = None;
    while begun.elapsed() < PATIENCE {
        ended = ended.or_else(|| child.try_wait().unwrap());
        assert_ne!(
            ended.and_then(|ended| ended.code()),
            Some(2),
            "a command that is refused makes nothing"
        );
        if ended.is_some() && is_gone() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn clean_removes_what_a_killed_process_left_and_says_what() {
    let place = Place::new();
    fs::create_dir_all(place.path("tmp/stackline-keys-left")).unwrap();
    fs::set_permissions(
        place.path("tmp/stackline-keys-left"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    place.write("tmp/stackline-keys-left/keys", "secret");
    place.write("tmp/stackline-keys-left/.stackline-temporary", "");
    // Of somebody whose own directory has such a name.
    place.write("tmp/stackline-thesis/chapter", "text");
    fs::set_permissions(
        place.path("tmp/stackline-thesis"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    let cleaned = |arguments: &[&str]| {
        place.finish(place.command(arguments).env("TMPDIR", place.path("tmp")))
    };
    assert!(
        cleaned(&["clean"])
            .succeeds()
            .out
            .contains("1 temporary directory")
    );
    assert_eq!(entries(&place.path("tmp")), ["stackline-thesis"]);
    assert_eq!(
        cleaned(&["clean", "--json"]).json()["removed"]["temporary_directories"],
        0
    );
}

/// Keys of TLS: what other users could read while a trace goes on, and what is there after it was killed.
#[test]
fn keys_of_a_trace_are_for_its_user_and_go_with_it() {
    let census = Census::new();
    for words in [
        "trace --see packets --decipher -- sh -c KEYS",
        "trace --decipher --on NETWORK a -- sh -c KEYS",
    ] {
        let keys = "stat -Lc %a:%U \"$SSLKEYLOGFILE\" > modes; echo key >> \"$SSLKEYLOGFILE\"; touch ready; sleep 600";
        let words = census.words(words).into_iter().map(|word| {
            if word == "KEYS" {
                keys.to_owned()
            } else {
                word
            }
        });
        let words: Vec<String> = words.collect();
        let mut command = census
            .place
            .command(&words.iter().map(String::as_str).collect::<Vec<_>>());
        command
            .env("TMPDIR", census.place.path("tmp"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let ready = census.place.path("ready");
        until("the program runs, or cannot be traced here", || {
            (ready.exists() || child.try_wait().unwrap().is_some()).then_some(())
        });
        if !ready.exists() {
            return skip("packets cannot be looked at here");
        }
        let modes = fs::read_to_string(census.place.path("modes")).unwrap();
        assert!(modes.starts_with("600:"), "{modes}");
        for entry in entries(&census.place.path("tmp")) {
            let mode = fs::metadata(census.place.path("tmp").join(&entry))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o700, "{entry}");
        }
        fs::remove_file(ready).unwrap();
        let seen = census.place.processes().into_iter().collect();
        send(&child, Kill::Worker, &seen);
        assert!(
            until_gone(&mut child, || census.left(&seen).is_empty()),
            "{:#?}",
            census.left(&seen)
        );
    }
}

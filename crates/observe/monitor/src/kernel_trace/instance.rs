//! A trace instance of this process: a directory of tracefs with its own switches, filters and rings, which is removed when it is
//! dropped. It does not end with a descriptor, so if a process is killed, its instance stays switched on. (The rings of
//! perf_event_open do end with their descriptors, but need one for each event and core, and cannot filter many events at once by
//! their fields.) Therefore an instance is locked while it is in use, and an instance whose lock is free is removed by the keepers
//! of the command, by the next process that creates one, and by `stackline clean`.
//!
//! Where tracefs is not mounted, a detached mount is made, which lasts as long as its descriptor.

use nix::fcntl::{Flock, FlockArg};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use stackline_os::root_directory::describe_file_error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The beginning of every instance's name.
const PREFIX: &str = "stackline-";
/// The most bytes of a file that are read.
const LONGEST: usize = 1 << 17;
/// How many names a process tries for an instance.
const MOST: u32 = 64;

/// A trace instance.
#[derive(Debug)]
pub(crate) struct TraceInstance {
    directory: PathBuf,
    /// Held as long as the instance is in use: an instance whose lock is free was left behind.
    _lock: Flock<File>,
    /// Keeps the detached mount alive.
    _mount: Option<OwnedFd>,
}

impl TraceInstance {
    /// Creates an instance; an error says why not.
    pub(crate) fn create() -> Result<Self, String> {
        // Only one thread of this process creates at a time: a directory that is not locked yet looks as if it was left behind.
        static CREATING: Mutex<()> = Mutex::new(());
        let _one = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
        let (root, mount) = tracefs()?;
        let instances = root.join("instances");
        remove_left(&instances);
        let (directory, lock) = create_directory(&instances)?;
        Ok(Self {
            directory,
            _lock: lock,
            _mount: mount,
        })
    }

    /// The text of one of its files.
    pub(crate) fn read(&self, file: &str) -> Result<String, String> {
        let mut bytes = vec![0; LONGEST];
        let read = |bytes: &mut [u8]| {
            let mut file = File::open(self.directory.join(file))?;
            let mut length = 0;
            // Some of these files answer the first read only, so the buffer has room for all of it.
            while length < bytes.len() {
                match file.read(&mut bytes[length..])? {
                    0 => break,
                    got => length += got,
                }
            }
            io::Result::Ok(length)
        };
        let length = read(&mut bytes)
            .map_err(|error| describe_file_error(&format!("tracefs {file}"), &error))?;
        bytes.truncate(length);
        String::from_utf8(bytes).map_err(|_| format!("tracefs {file} is not UTF-8"))
    }

    /// Writes one of its files.
    pub(crate) fn write(&self, file: &str, text: &str) -> Result<(), String> {
        fs::write(self.directory.join(file), text)
            .map_err(|error| describe_file_error(&format!("tracefs {file}"), &error))
    }

    /// Appends to one of its files that holds a list.
    pub(crate) fn append(&self, file: &str, text: &str) -> Result<(), String> {
        let opened = OpenOptions::new()
            .append(true)
            .open(self.directory.join(file));
        opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| describe_file_error(&format!("tracefs {file}"), &error))
    }

    /// Opens the ring of each core for non-blocking reads; with the path of the core's `stats` file.
    pub(crate) fn rings(&self) -> Result<Vec<(File, PathBuf)>, String> {
        let cores = self.directory.join("per_cpu");
        let ring = |name: &std::ffi::OsStr| {
            let core = cores.join(name);
            let ring = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK)
                .open(core.join("trace_pipe_raw"))?;
            io::Result::Ok((ring, core.join("stats")))
        };
        let rings = fs::read_dir(&cores).and_then(|entries| {
            entries
                .map(|entry| ring(&entry?.file_name()))
                .collect::<io::Result<Vec<_>>>()
        });
        rings.map_err(|error| describe_file_error("tracefs per_cpu", &error))
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        // An error cannot be reported here; the next process that creates an instance removes this one.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// The text of a file in the root of tracefs.
pub(crate) fn read_global(file: &str) -> Result<String, String> {
    let (root, _mount) = tracefs()?;
    fs::read_to_string(root.join(file))
        .map_err(|error| describe_file_error(&format!("tracefs {file}"), &error))
}

/// Creates and locks the directory of an instance. Its name contains this process ID, for people; a process in another PID namespace
/// may have the same.
fn create_directory(instances: &Path) -> Result<(PathBuf, Flock<File>), String> {
    for count in 0..MOST {
        let directory = instances.join(format!("{PREFIX}{}-{count}", std::process::id()));
        match fs::create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(format!("cannot create a trace instance: {error}")),
        }
        // Another process may remove the directory before it is locked, as if it was left behind; then the next name is tried.
        match lock(&directory) {
            Ok(lock) if is_at(&lock, &directory) => return Ok((directory, lock)),
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::WouldBlock
                ) => {}
            Err(error) => {
                let _ = fs::remove_dir(&directory);
                return Err(format!("cannot lock the trace instance: {error}"));
            }
        }
    }
    Err(format!(
        "{MOST} trace instances with this process ID already exist"
    ))
}

fn lock(directory: &Path) -> io::Result<Flock<File>> {
    let opened = File::open(directory)?;
    Flock::lock(opened, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

/// Whether the locked directory is the one at this path.
fn is_at(lock: &Flock<File>, directory: &Path) -> bool {
    let there = fs::metadata(directory).map(|there| (there.dev(), there.ino()));
    lock.metadata()
        .is_ok_and(|locked| there.is_ok_and(|there| there == (locked.dev(), locked.ino())))
}

/// Removes the instances that killed processes left behind; returns how many.
pub(crate) fn sweep() -> usize {
    tracefs().map_or(0, |(root, _mount)| remove_left(&root.join("instances")))
}

/// Removes the instances whose lock is free; returns how many. Between opening and locking, another directory may have taken the
/// path, so that is checked.
fn remove_left(instances: &Path) -> usize {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    let removed = entries.filter(|entry| {
        let (name, path) = (entry.file_name(), entry.path());
        name.to_str().is_some_and(|name| name.starts_with(PREFIX))
            && lock(&path).is_ok_and(|held| is_at(&held, &path) && fs::remove_dir(&path).is_ok())
    });
    removed.count()
}

/// The root of tracefs: where it is mounted, or else a detached mount.
fn tracefs() -> Result<(PathBuf, Option<OwnedFd>), String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| describe_file_error("/proc/self/mountinfo", &error))?;
    let mounts = stackline_os::mounts::parse(&mounts);
    if let Some(mount) = mounts
        .iter()
        .find(|mount| mount.kind == "tracefs" && mount.root == "/")
    {
        let root = PathBuf::from(&mount.point);
        fs::read_dir(root.join("instances"))
            .map_err(|error| describe_file_error(&mount.point, &error))?;
        return Ok((root, None));
    }
    let mount = detached_mount().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "kernel trace events need root (CAP_SYS_ADMIN)".to_owned()
        }
        _ => format!("tracefs is not mounted and cannot be mounted: {error}"),
    })?;
    Ok((
        PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())),
        Some(mount),
    ))
}

fn detached_mount() -> io::Result<OwnedFd> {
    let filesystem = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&filesystem)?;
    Ok(fsmount(
        &filesystem,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_removed_by_its_owner_or_by_the_next() {
        let instance = match TraceInstance::create() {
            Ok(instance) => instance,
            Err(reason) => {
                return stackline_testing::skip(format_args!(
                    "no trace instance can be created here: {reason}"
                ));
            }
        };
        let (root, _mount) = tracefs().unwrap();
        let left = root
            .join("instances")
            .join(format!("{PREFIX}left-by-a-killed-one"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("tracing_on"), "1").unwrap();
        assert!(sweep() >= 1 && !left.exists(), "its lock was free");
        fs::create_dir(&left).unwrap();
        let other = TraceInstance::create().unwrap();
        assert!(!left.exists(), "its lock was free");
        let name = |instance: &TraceInstance| instance.directory.file_name().unwrap().to_owned();
        let names = [&instance, &other].map(|instance| root.join("instances").join(name(instance)));
        assert!(
            names[0] != names[1] && names.iter().all(|directory| directory.exists()),
            "both are held"
        );
        drop((instance, other));
        assert!(
            names.iter().all(|directory| !directory.exists()),
            "both are removed"
        );
    }

    #[test]
    fn an_instance_removed_before_it_is_locked_is_created_again() {
        let root = std::env::temp_dir().join(format!("stackline-instances-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..10_000).map(|_| remove_left(&root)).sum::<usize>());
            for _ in 0..2_000 {
                let (directory, lock) = create_directory(&root).unwrap();
                remove_left(&root);
                assert!(directory.exists(), "held");
                fs::remove_dir(&directory).unwrap();
                drop(lock);
            }
        });
        remove_left(&root);
        fs::remove_dir(&root).unwrap();
    }
}

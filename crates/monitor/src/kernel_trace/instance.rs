//! An instance of the kernel's tracing that is this process's own: a directory of tracefs with switches, filters and rings
//! that nobody else sees, gone when it is dropped. Those that a killed process left are removed by the next.
//!
//! Where tracefs is not mounted it is reached through a mount that hangs nowhere and goes with its descriptor.

use crate::file::reason;
use nix::fcntl::{Flock, FlockArg};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What names of instances begin with.
const PREFIX: &str = "stackline-";
/// No file that is read is longer.
const LONGEST: usize = 1 << 17;
/// Most of one process number.
const MOST: u32 = 64;

/// One instance.
#[derive(Debug)]
pub(crate) struct Instance {
    directory: PathBuf,
    /// Held as long as it lives: who can take it finds an instance that nobody has any more.
    _lock: Flock<File>,
    /// What keeps a mount of our own.
    _mount: Option<OwnedFd>,
}

impl Instance {
    /// Makes one; an error says why not.
    pub(crate) fn make() -> Result<Self, String> {
        // One at a time in this process: what is made and not locked yet looks like one that was left.
        static MAKING: Mutex<()> = Mutex::new(());
        let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let (root, mount) = tracefs()?;
        let instances = root.join("instances");
        remove_left(&instances);
        let (directory, lock) = make_directory(&instances)?;
        Ok(Self { directory, _lock: lock, _mount: mount })
    }

    /// What a file of it says.
    pub(crate) fn read(&self, file: &str) -> Result<String, String> {
        let mut bytes = vec![0; LONGEST];
        let read = |bytes: &mut [u8]| {
            let mut file = File::open(self.directory.join(file))?;
            let mut length = 0;
            // Some of these files give everything to the first read or nothing more: it has room for all of it.
            while length < bytes.len() {
                match file.read(&mut bytes[length..])? {
                    0 => break,
                    got => length += got,
                }
            }
            io::Result::Ok(length)
        };
        let length = read(&mut bytes).map_err(|error| reason(&format!("tracefs {file}"), &error))?;
        bytes.truncate(length);
        String::from_utf8(bytes).map_err(|_| format!("tracefs {file} is no text"))
    }

    /// Writes into a file of it.
    pub(crate) fn write(&self, file: &str, text: &str) -> Result<(), String> {
        fs::write(self.directory.join(file), text).map_err(|error| reason(&format!("tracefs {file}"), &error))
    }

    /// The ring of each core, to be read without waiting, with the path of its counts.
    pub(crate) fn rings(&self) -> Result<Vec<(File, PathBuf)>, String> {
        let cores = self.directory.join("per_cpu");
        let of = |name: &std::ffi::OsStr| {
            let core = cores.join(name);
            let ring =
                OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(core.join("trace_pipe_raw"))?;
            io::Result::Ok((ring, core.join("stats")))
        };
        let rings = fs::read_dir(&cores)
            .and_then(|entries| entries.map(|entry| of(&entry?.file_name())).collect::<io::Result<Vec<_>>>());
        rings.map_err(|error| reason("tracefs per_cpu", &error))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Nobody can be told any more; a later watch tries again.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Makes and locks one. The number of this process tells people whose it is; another namespace may have a process of that
/// number.
fn make_directory(instances: &Path) -> Result<(PathBuf, Flock<File>), String> {
    for count in 0..MOST {
        let directory = instances.join(format!("{PREFIX}{}-{count}", std::process::id()));
        match fs::create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(format!("the kernel makes no instance of its tracing: {error}")),
        }
        // Another process may take what is not locked yet for one that was left, and remove it: then the next number.
        match lock(&directory) {
            Ok(lock) if is_at(&lock, &directory) => return Ok((directory, lock)),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::WouldBlock) => {}
            Err(error) => {
                let _ = fs::remove_dir(&directory);
                return Err(format!("an instance of the kernel's tracing cannot be locked: {error}"));
            }
        }
    }
    Err(format!("there are {MOST} instances of the kernel's tracing of this name"))
}

fn lock(directory: &Path) -> io::Result<Flock<File>> {
    let opened = File::open(directory)?;
    Flock::lock(opened, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

/// Whether what is locked is what is there.
fn is_at(lock: &Flock<File>, directory: &Path) -> bool {
    let there = fs::metadata(directory).map(|there| (there.dev(), there.ino()));
    lock.metadata().is_ok_and(|locked| there.is_ok_and(|there| there == (locked.dev(), locked.ino())))
}

/// Removes instances of ours that no living process holds. What is locked may be gone and another be there by now.
fn remove_left(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX))
            && let Ok(held) = lock(&path)
            && is_at(&held, &path)
        {
            let _ = fs::remove_dir(&path);
        }
    }
}

/// Where tracefs is: where it is mounted, else a mount of our own.
fn tracefs() -> Result<(PathBuf, Option<OwnedFd>), String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| reason("/proc/self/mountinfo", &error))?;
    let mounts = crate::parse::mounts::parse(&mounts);
    if let Some(mount) = mounts.iter().find(|mount| mount.kind == "tracefs" && mount.root == "/") {
        let root = PathBuf::from(&mount.point);
        fs::read_dir(root.join("instances")).map_err(|error| reason(&mount.point, &error))?;
        return Ok((root, None));
    }
    let mount = own_mount().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => "the kernel's trace events take root (CAP_SYS_ADMIN)".to_owned(),
        _ => format!("tracefs is not mounted and cannot be: {error}"),
    })?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), Some(mount)))
}

fn own_mount() -> io::Result<OwnedFd> {
    let filesystem = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&filesystem)?;
    Ok(fsmount(&filesystem, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_goes_with_its_owner_or_with_the_next() {
        let instance = match Instance::make() {
            Ok(instance) => instance,
            Err(reason) => return eprintln!("SKIPPED: no instance is to be had here: {reason}"),
        };
        let (root, _mount) = tracefs().unwrap();
        let left = root.join("instances").join(format!("{PREFIX}left-by-a-killed-one"));
        fs::create_dir(&left).unwrap();
        let other = Instance::make().unwrap();
        assert!(!left.exists(), "nobody held it");
        let name = |instance: &Instance| instance.directory.file_name().unwrap().to_owned();
        let names = [&instance, &other].map(|instance| root.join("instances").join(name(instance)));
        assert!(names[0] != names[1] && names.iter().all(|directory| directory.exists()), "held, both stay");
        drop((instance, other));
        assert!(names.iter().all(|directory| !directory.exists()), "they went");
    }

    #[test]
    fn one_that_another_process_takes_for_left_is_made_again() {
        let root = std::env::temp_dir().join(format!("stackline-instances-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..10_000).for_each(|_| remove_left(&root)));
            for _ in 0..2_000 {
                let (directory, lock) = make_directory(&root).unwrap();
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

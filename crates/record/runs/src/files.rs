//! The names in a run directory, and how its files are opened.
//!
//! A run may have been made by somebody else, who wishes its reader ill: only regular files inside of it are opened, no link is followed, and
//! nothing that blocks or never ends is read. What is written there is for its user alone until the run is shared.

use crate::Error;
use stackline_guard::directory::Directory;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The largest text of a run that is read: specification, plan, environment, status, index, findings; bytes.
const LARGEST_TEXT: u64 = 256 << 20;
/// The largest journal or table of results that is read, bytes.
const LARGEST_RECORDS: u64 = 4 << 30;
/// Files of events of one run, at most.
const MOST_FILES: usize = 100_000;

/// The specification as it was given.
pub(crate) const SPECIFICATION: &str = "specification.stackline";
/// The plan, as JSON.
pub(crate) const PLAN: &str = "plan.json";
/// What the machines were like, as JSON.
pub(crate) const ENVIRONMENT: &str = "environment.json";
/// Whether the run is complete, as JSON.
pub(crate) const STATUS: &str = "status.json";
/// Records as they came, one JSON line each.
pub(crate) const JOURNAL: &str = "runs.jsonl";
/// All records, at the end.
pub(crate) const RESULTS: &str = "results.parquet";

/// What limits it, as JSON.
pub(crate) const FINDINGS: &str = "findings.json";

/// What its user wrote about it.
pub(crate) const NOTE: &str = "note.txt";

/// Its page.
pub(crate) const PAGE: &str = "report.html";

/// What is known about the events, as JSON.
pub(crate) const INDEX: &str = "events/index.json";

/// What a file of sorted events is called behind its host's name.
pub(crate) const SORTED: &str = "parquet";

/// The directory of events.
pub(crate) const EVENTS: &str = "events";

/// The run of a file, and the file's name in it: `RUN/NAME` or `RUN/events/NAME`.
fn within(path: &Path) -> Option<(&Path, &Path)> {
    let directory = path.parent()?;
    let run = if directory.file_name().is_some_and(|name| name == EVENTS) {
        directory.parent()?
    } else {
        directory
    };
    Some((
        if run.as_os_str().is_empty() {
            Path::new(".")
        } else {
            run
        },
        path.strip_prefix(run).ok()?,
    ))
}

/// Opens a regular file of a run.
///
/// # Errors
/// The kernel's; `InvalidInput` with the reason where it is a link, a pipe or the like.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let (run, name) = within(path).ok_or(ErrorKind::NotFound)?;
    Directory::open(run)?.open_file(name)
}

/// Opens a file of a run that has a bound of size: the journal, the results, or a text.
///
/// # Errors
/// As for [`open`]; `FileTooLarge`.
pub(crate) fn open_bounded(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let is_records = path
        .file_name()
        .is_some_and(|name| name == JOURNAL || name == RESULTS);
    let most = if is_records {
        LARGEST_RECORDS
    } else {
        LARGEST_TEXT
    };
    match file.metadata()?.len() {
        size if size > most => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it is {size} bytes long, more than the limit of {most}"),
        )),
        _ => Ok(file),
    }
}

/// Whether something has that name, whatever it is: what is no regular file is refused when it is opened, and not overlooked.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Whether a run belongs to this user, so that something may be written into it.
pub(crate) fn is_own(run: &Path) -> bool {
    Directory::open(run).is_ok_and(|run| run.is_own())
}

/// Who may read a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunFileAccess {
    /// Its user alone: modes 0700 and 0600.
    #[default]
    Private,
    /// All users of this machine: modes 0755 and 0644.
    Shared,
}

impl RunFileAccess {
    /// What is made in a directory may be read by whoever may read the directory.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        let mode = fs::metadata(directory).map_or(0, |about| about.permissions().mode());
        if mode & 0o004 == 0 {
            Self::Private
        } else {
            Self::Shared
        }
    }

    fn within(path: &Path) -> Self {
        path.parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .map_or(Self::Private, Self::of)
    }

    const fn file_mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Shared => 0o644,
        }
    }

    const fn directory_mode(self) -> u32 {
        match self {
            Self::Private => 0o700,
            Self::Shared => 0o755,
        }
    }
}

/// The permissions of a new file of a run.
pub(crate) fn permissions(path: &Path) -> Permissions {
    Permissions::from_mode(RunFileAccess::within(path).file_mode())
}

fn options(path: &Path) -> OpenOptions {
    let mut options = File::options();
    options
        .mode(permissions(path).mode())
        .custom_flags(no_links());
    options
}

/// Makes a file in a directory of a run, and that directory where there is none. A link there is not followed.
///
/// # Errors
/// The kernel's.
pub fn create_within(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent()
        && !is_there(directory)
    {
        make_directory(directory, RunFileAccess::within(directory))?;
    }
    create(path)
}

/// Makes a file of a run, or empties it. A link there is not followed.
///
/// # Errors
/// The kernel's.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    opened(path, options(path).write(true).create(true).truncate(true))
}

/// Opens a file of a run for adding to its end, and makes it where there is none. A link there is not followed.
///
/// # Errors
/// The kernel's.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    opened(path, options(path).create(true).append(true))
}

/// Makes a new file of a run that is added to at its end.
///
/// # Errors
/// The kernel's, `AlreadyExists` too.
pub(crate) fn append_new(path: &Path) -> io::Result<File> {
    opened(path, options(path).create_new(true).append(true))
}

/// Opens a file with the permissions of its run, whatever the umask is.
fn opened(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let file = options.open(path)?;
    if RunFileAccess::within(path) == RunFileAccess::Shared {
        file.set_permissions(permissions(path))?;
    }
    Ok(file)
}

pub(crate) const fn no_links() -> i32 {
    nix::fcntl::OFlag::O_NOFOLLOW.bits()
}

/// Makes a directory for those who may read it.
///
/// # Errors
/// The kernel's, `AlreadyExists` too.
pub(crate) fn make_directory(path: &Path, access: RunFileAccess) -> io::Result<()> {
    DirBuilder::new()
        .mode(access.directory_mode())
        .create(path)?;
    match access {
        RunFileAccess::Private => Ok(()),
        // Whatever the umask is.
        RunFileAccess::Shared => {
            fs::set_permissions(path, Permissions::from_mode(access.directory_mode()))
        }
    }
}

/// Makes the directory of all runs where there is none. One that another user may have put there is refused: a link of theirs, or their
/// directory in a directory for all.
///
/// # Errors
/// The kernel's; `PermissionDenied` with the reason.
pub(crate) fn make_root(root: &Path, access: RunFileAccess) -> io::Result<()> {
    let denied = |what: &str| {
        io::Error::new(
            ErrorKind::PermissionDenied,
            format!("it is {what} owned by another user"),
        )
    };
    let parent = root
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let own = nix::unistd::geteuid().as_raw();
    match fs::symlink_metadata(root) {
        Ok(there) if there.is_dir() && there.uid() == own && access == RunFileAccess::Shared => {
            // Shared runs are reached through it; private ones are private themselves.
            fs::set_permissions(root, Permissions::from_mode(there.mode() & 0o7777 | 0o055))
        }
        Ok(there) if there.uid() == own || there.uid() == 0 => Ok(()),
        Ok(there) if there.is_symlink() => Err(denied("a link")),
        Ok(_) if fs::metadata(parent).is_ok_and(|about| about.mode() & 0o002 != 0) => {
            Err(denied("a directory"))
        }
        Ok(_) => Ok(()),
        Err(_) => {
            let mode = access.directory_mode();
            DirBuilder::new().recursive(true).mode(mode).create(root)?;
            // Whatever the umask is.
            fs::set_permissions(root, Permissions::from_mode(mode))
        }
    }
}

/// That a run belongs to this user: nothing is written into one of another user, who could lead it elsewhere.
///
/// # Errors
/// When it does not.
pub(crate) fn must_be_own(run: &Path) -> Result<(), Error> {
    match Directory::open(run) {
        Ok(directory) if !directory.is_own() => {
            let message = format!(
                "{} belongs to another user, so stackline does not change it",
                run.display()
            );
            Err(Error::new(message, "copy it (`cp -r`) and use the copy"))
        }
        // One that is not there is made, and other mistakes are found where it is used.
        _ => Ok(()),
    }
}

/// Makes the directory of a run's events where there is none, and the run's own. One that is a link is refused.
///
/// # Errors
/// The kernel's.
pub(crate) fn make_events(run: &Path) -> io::Result<()> {
    let events = run.join(EVENTS);
    if !is_there(run) {
        make_directory(run, RunFileAccess::within(run))?;
    }
    match make_directory(&events, RunFileAccess::of(run)) {
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
            match fs::symlink_metadata(&events)?.is_dir() {
                true => Ok(()),
                false => Err(io::Error::new(
                    ErrorKind::NotADirectory,
                    "it is not a directory",
                )),
            }
        }
        made => made,
    }
}

/// The files in a run's directory of events whose names end so, by name; none where there is no such directory.
///
/// # Errors
/// When that directory is a link or cannot be read.
pub(crate) fn of_events(run: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let events = run.join(EVENTS);
    let names = Directory::open(run).and_then(|run| run.names(Path::new(EVENTS), MOST_FILES));
    let names = match names {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Vec::new(),
        names => names.map_err(|cause| Error::reading(&events, &cause))?,
    };
    let mut found: Vec<PathBuf> = names.into_iter().map(|name| events.join(name)).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == extension));
    found.sort_unstable();
    Ok(found)
}

/// Waits until a file that was written is on the disk.
pub(crate) fn sync_file(path: &Path) -> Result<(), Error> {
    open(path)
        .and_then(|file| file.sync_all())
        .map_err(|cause| Error::writing(path, &cause))
}

/// Reads a whole text.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let text = within(path)
        .ok_or_else(|| ErrorKind::NotFound.into())
        .and_then(|(run, name)| Directory::open(run)?.read_text(name, LARGEST_TEXT));
    text.map_err(|cause| Error::reading(path, &cause))
}

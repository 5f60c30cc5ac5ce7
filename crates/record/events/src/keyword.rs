//! Keywords as numbers: each name gets a number in this process when it is first used.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Numbers below this one are reserved for the binary form itself.
pub(crate) const FIRST: u32 = 16;

/// Most names of a process; further ones share the last number.
const MOST: usize = 1 << 16;

/// The names used in this process.
#[derive(Debug, Default)]
pub(crate) struct InternedKeywords {
    by_name: HashMap<&'static str, u32>,
    /// The names in the order of their numbers, from [`FIRST`] on.
    names: Vec<&'static str>,
}

fn names() -> &'static Mutex<InternedKeywords> {
    static NAMES: OnceLock<Mutex<InternedKeywords>> = OnceLock::new();
    NAMES.get_or_init(Mutex::default)
}

/// A keyword at the place where it is emitted; [`crate::event!`] creates a static one at each place.
#[derive(Debug)]
pub struct Keyword {
    name: &'static str,
    /// The keyword's number; 0 until it is first used.
    id: AtomicU32,
}

impl Keyword {
    /// A keyword without a number yet.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            id: AtomicU32::new(0),
        }
    }

    /// The keyword's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The keyword's number in this process.
    #[inline]
    pub fn id(&self) -> u32 {
        match self.id.load(Ordering::Relaxed) {
            0 => self.find(),
            id => id,
        }
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> u32 {
        let id = intern(self.name);
        self.id.store(id, Ordering::Relaxed);
        id
    }
}

/// Locks the table of names, so that no other thread holds the lock while the process forks.
pub(crate) fn lock_names() -> MutexGuard<'static, InternedKeywords> {
    names().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a name that is known only at run time. The name's memory is never freed.
#[must_use]
pub fn intern(name: &str) -> u32 {
    let mut names = names().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(id) = names.by_name.get(name) {
        return *id;
    }
    if names.names.len() == MOST {
        return FIRST + MOST as u32 - 1;
    }
    let id = FIRST + names.names.len() as u32;
    let name: &'static str = Box::leak(name.into());
    names.names.push(name);
    names.by_name.insert(name, id);
    id
}

/// The name of a number of this process.
#[must_use]
pub fn keyword_name(id: u32) -> Option<&'static str> {
    let names = names().lock().unwrap_or_else(PoisonError::into_inner);
    names.names.get(id.checked_sub(FIRST)? as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_one_number() {
        static HERE: Keyword = Keyword::new("KEYWORD_TEST");
        assert_eq!(HERE.id(), intern("KEYWORD_TEST"));
        assert_eq!(keyword_name(HERE.id()), Some("KEYWORD_TEST"));
        assert_eq!((keyword_name(0), keyword_name(u32::MAX)), (None, None));
    }
}

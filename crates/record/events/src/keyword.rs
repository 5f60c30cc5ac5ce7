//! Keywords as numbers: each name has one number in this process, given when it is first used.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Numbers below this mean something of the binary form itself.
pub(crate) const FIRST: u32 = 16;

/// As many names as one process may use; further ones count as the last.
const MOST: usize = 1 << 16;

/// The names of this process.
#[derive(Debug, Default)]
pub(crate) struct InternedKeywords {
    by_name: HashMap<&'static str, u32>,
    names: Vec<&'static str>,
}

fn names() -> &'static Mutex<InternedKeywords> {
    static NAMES: OnceLock<Mutex<InternedKeywords>> = OnceLock::new();
    NAMES.get_or_init(Mutex::default)
}

/// A keyword at the place that emits it; [`crate::event!`] makes a static one for each place.
#[derive(Debug)]
pub struct Keyword {
    name: &'static str,
    id: AtomicU32,
}

impl Keyword {
    /// One that has no number yet.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            id: AtomicU32::new(0),
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its number in this process.
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

/// Holds the names' lock, so that no other thread has it while the process forks.
pub(crate) fn lock_names() -> MutexGuard<'static, InternedKeywords> {
    names().lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a name known only while the program runs. The name is kept for ever.
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

/// The name behind a number of this process.
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

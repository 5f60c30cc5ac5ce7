//! Lines as rows of the events that were taken, before they have their points and names.

/// One line before it has its place among the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawLifeline {
    pub(super) id: u32,
    /// Its events among `LifelineRows::kept`.
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) first_mark: u32,
    pub(super) mark_count: u32,
}

/// All lines, as rows of `UnitEvents`.
#[derive(Debug, Default)]
pub(super) struct LifelineRows {
    pub(super) raw: Vec<RawLifeline>,
    pub(super) kept: Vec<u32>,
    pub(super) marks: Vec<u32>,
}

impl LifelineRows {
    /// The events that a line passes.
    pub(super) fn kept_of(&self, line: &RawLifeline) -> &[u32] {
        &self.kept[line.first as usize..(line.first + line.count) as usize]
    }

    /// What happened beside it.
    pub(super) fn marks_of(&self, line: &RawLifeline) -> &[u32] {
        &self.marks[line.first_mark as usize..(line.first_mark + line.mark_count) as usize]
    }
}

//! Lifelines as rows of [`super::UnitEvents`], before they get their points and names.

/// One lifeline, as ranges of [`LifelineRows`].
#[derive(Clone, Copy, Debug)]
pub(super) struct RawLifeline {
    /// The place of the unit's id.
    pub(super) id: u32,
    /// The first of its events in `LifelineRows::kept`.
    pub(super) first: u32,
    /// The number of its events.
    pub(super) count: u32,
    /// The first of its marks in `LifelineRows::marks`.
    pub(super) first_mark: u32,
    /// The number of its marks.
    pub(super) mark_count: u32,
}

/// All lifelines, as rows of `UnitEvents`.
#[derive(Debug, Default)]
pub(super) struct LifelineRows {
    pub(super) raw: Vec<RawLifeline>,
    /// Rows of the events on the path of the units, line by line.
    pub(super) kept: Vec<u32>,
    /// Rows of the events beside the path (drops, retransmissions), line by line.
    pub(super) marks: Vec<u32>,
}

impl LifelineRows {
    /// Rows of the events on a line's path.
    pub(super) fn kept_of(&self, line: &RawLifeline) -> &[u32] {
        &self.kept[line.first as usize..(line.first + line.count) as usize]
    }

    /// Rows of the events beside a line's path.
    pub(super) fn marks_of(&self, line: &RawLifeline) -> &[u32] {
        &self.marks[line.first_mark as usize..(line.first_mark + line.mark_count) as usize]
    }
}

//! Judgement: what became of a test by its records and libtest's word, of a run by its results, and of two runs by their buffers.

pub(crate) mod against;
pub(crate) mod test_record;
pub(crate) mod verdict;

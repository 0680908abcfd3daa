//! Jobs on all processors.

use crate::KernelsError;
use rayon::prelude::*;

/// Does every job, on all processors, until one fails; the results are in the order of the jobs.
pub(crate) fn in_parallel<J: Sync, T: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<T, KernelsError> + Sync + Send,
) -> Result<Vec<T>, KernelsError> {
    // Each job on its own: some take a hundred times as long as others.
    jobs.par_iter().with_max_len(1).map(work).collect()
}

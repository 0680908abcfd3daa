//! Containment of a test: its process, the group that holds it with everything it starts, and the parts of the machine that it may change.
//!
//! * [`test_process`]: one test's process, from its start to its end;
//! * [`process_tree`]: all of a run's tests, and what they leave behind;
//! * [`containment`]: the best that the machine allows of [`cgroup`] and [`namespaces`];
//! * [`descriptors`]: open files of this process and of its tests.

pub(crate) mod cgroup;
pub(crate) mod containment;
pub(crate) mod descriptors;
pub(crate) mod namespaces;
pub(crate) mod process_tree;
pub(crate) mod test_process;

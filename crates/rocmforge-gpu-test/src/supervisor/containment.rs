//! Containment: what holds the processes of a test together, so that none outlives it.
//!
//! The best that the machine allows: a [control group](super::cgroup), which nothing leaves; else a [PID
//! namespace](super::pid_namespace), whose processes the kernel ends with its first; else scans of `/proc`, repeated until two in a
//! row find nothing.

use super::cgroup::{RunCgroup, TestCgroup};
use super::pid_namespace::PidNamespace;
use std::io;
use std::process::Command;

/// Ways to contain a test, the best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Kind {
    /// A control group for each test.
    #[default]
    Cgroup,
    /// A PID namespace for each test.
    PidNamespace,
    /// Scans of `/proc`.
    Scans,
}

/// How a run contains its tests.
#[derive(Default)]
pub(crate) enum Containment {
    /// A control group for each test.
    Cgroup(RunCgroup),
    /// A PID namespace for each test.
    PidNamespace(PidNamespace),
    /// Scans of `/proc` alone.
    #[default]
    Scans,
}

/// What contains one test.
pub(crate) enum Contained {
    Cgroup(TestCgroup),
    /// A namespace, which ends with its first process, or nothing.
    Otherwise,
}

impl Containment {
    /// The best that works here, or the best that is no better than `most`.
    pub(crate) fn best(most: Kind) -> Self {
        if most <= Kind::Cgroup
            && let Ok(group) = RunCgroup::make()
        {
            return Self::Cgroup(group);
        }
        if most <= Kind::PidNamespace
            && let Some(namespace) = PidNamespace::probe()
        {
            return Self::PidNamespace(namespace);
        }
        Self::Scans
    }

    /// Its name in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Cgroup(_) => "cgroup",
            Self::PidNamespace(_) => "pid_namespace",
            Self::Scans => "scans",
        }
    }

    /// Prepares `command` so that its process begins contained.
    pub(crate) fn contain(&self, command: &mut Command) -> io::Result<Contained> {
        match self {
            Self::Cgroup(run) => {
                let group = run.test()?;
                group.admit(command)?;
                Ok(Contained::Cgroup(group))
            }
            Self::PidNamespace(namespace) => {
                namespace.enter(command);
                Ok(Contained::Otherwise)
            }
            Self::Scans => Ok(Contained::Otherwise),
        }
    }

    /// A process of the supervisor's own that is no test, if there is one.
    pub(crate) fn helper(&self) -> Option<u32> {
        match self {
            Self::Cgroup(run) => Some(run.guard()),
            Self::PidNamespace(_) | Self::Scans => None,
        }
    }
}
